//! Says to the broker's sources that they are compiled for the simulator.

fn main() {
    println!("cargo::rustc-cfg=simulator");
    println!("cargo::rustc-env=ONCELOG_RUSTC=any");
}
