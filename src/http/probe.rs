//! `oncelog healthcheck`.

use std::time::Duration;

use super::ask::{Request, ask};
use crate::config::HostPort;

/// Asks `/readyz` of the broker whose `admin.bind` is given.
///
/// # Errors
/// Why it is not ready, or why it could not be asked, in one sentence.
pub fn ready(admin: &HostPort) -> Result<(), String> {
    if admin.port == 0 {
        return Err("admin.bind has port 0, which any free port may be: write a port to make it known".to_owned());
    }
    let address = admin.local();
    let request = Request { method: "GET", path: "/readyz", operator: None };
    let answer = ask(&address, &request, Duration::ZERO)?;
    match answer.status {
        200 => Ok(()),
        503 => Err(answer.body.trim_end().replace("\n- ", "; ")),
        _ => Err(format!("what answers at {address} is not oncelog's admin port")),
    }
}
