//! What is measured, as lines.

use std::io::Write;
use std::time::Duration;

/// A line above others.
pub(crate) fn heading(text: &str) {
    say(text);
}

/// One figure.
pub(crate) fn figure(what: &str, value: &str) {
    say(&format!("  {what:<64} {value}"));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).unwrap();
}

/// Durations as their median, 99th percentile and highest.
pub(crate) fn spread(what: &str, mut durations: Vec<Duration>) {
    durations.sort();
    let at = |share: usize| ms(durations[(durations.len() - 1) * share / 100]);
    figure(what, &format!("p50 {}, p99 {}, max {} of {}", at(50), at(99), at(100), durations.len()));
}

pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Resident memory of a process, in KiB.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

/// The most it ever was.
pub(crate) fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What it ran on, as far as it matters.
pub(crate) fn machine() -> String {
    format!("on {} cores", std::thread::available_parallelism().map_or(0, usize::from))
}
