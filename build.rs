//! Notes which compiler made the program, for `oncelog_build_info`.

use std::process::Command;

#[allow(clippy::print_stdout, reason = "it is how a build script speaks")]
fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let said = Command::new(rustc).arg("--version").output().ok();
    let said = said.and_then(|said| String::from_utf8(said.stdout).ok()).unwrap_or_default();
    let version = said.split(' ').nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=ONCELOG_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ONCELOG_REVISION");
}
