//! Notes which compiler made the program, for `oncelog_build_info`.

use std::process::Command;

#[allow(clippy::print_stdout, reason = "it is how a build script speaks")]
fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = match Command::new(rustc).arg("--version").output() {
        Ok(said) => String::from_utf8_lossy(&said.stdout).split(' ').nth(1).map(str::to_owned),
        Err(_) => None,
    };
    let version = version.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ONCELOG_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ONCELOG_REVISION");
}
