//! `oncelog demo`: the program itself as a load on a broker in a process of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::child::{Server, eventually, free_port, run};
use crate::process::{oncelog, serve};

/// What the load has to bring about, whatever else it does.
const MOVES: &[&str] = &[
    "oncelog_transactions_completed_total{outcome=\"commit\",reason=\"client\"}",
    "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"client\"}",
    "oncelog_transactions_completed_total{outcome=\"abort\",reason=\"fenced\"}",
    "oncelog_fencing_events_total{reason=\"init_producer_id\"}",
    "oncelog_fencing_events_total{reason=\"stale_epoch\"}",
    "oncelog_producer_duplicate_batches_total",
    "oncelog_producer_sequence_errors_total{error=\"out_of_order\"}",
    "oncelog_producer_sequence_errors_total{error=\"invalid_epoch\"}",
    "oncelog_request_errors_total{api=\"Produce\",error=\"invalid_txn_state\"}",
    "oncelog_producer_sequence_errors_total{error=\"invalid_txn_state\"}",
    "oncelog_transaction_open_age_seconds_max",
    "oncelog_partition_lso_lag_records{topic=\"demo-audit\"}",
];

/// The value of a series, 0 while it is not there.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn metrics(server: &Server) -> Option<String> {
    let mut stream = TcpStream::connect(server.admin()).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The demo, ended however the test ends.
struct Load(Child);

impl Load {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    fn terminate(&mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let status = eventually("the end of the demo", || self.0.try_wait().unwrap());
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// Looks until each of the series has been above zero at one time or another.
fn all_move(server: &Server, mut still: Vec<&str>) {
    while !still.is_empty() {
        let names = still.join(", ");
        eventually(&format!("a move of {names}"), || {
            let text = metrics(server)?;
            let before = still.len();
            still.retain(|series| value(&text, series) <= 0.0);
            (still.len() < before).then_some(())
        });
    }
}

#[test]
fn everything_moves_and_goes_on_after_a_kill_of_the_broker() {
    let mut server = serve(&[]);
    let dir = TempDir::new().unwrap();
    let at = server.address().to_string();
    let mut load = Load::start(oncelog(dir.path()).args(["demo", "--bootstrap", &at]));
    all_move(&server, MOVES.to_vec());
    server.kill();
    server.start_again();
    all_move(&server, MOVES[..2].to_vec());
    let (code, said) = load.terminate();
    assert_eq!(code, Some(0), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("ended: ") && last.contains(" committed, "), "{said}");
}

#[test]
fn its_time_is_kept_and_a_broker_that_is_away_is_said() {
    let dir = TempDir::new().unwrap();
    let server = serve(&[]);
    let at = server.address().to_string();
    let said = run(oncelog(dir.path()).args(["demo", "--seconds", "3", "--bootstrap", &at]));
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.took >= Duration::from_secs(3), "{said:?}");

    let nowhere = format!("127.0.0.1:{}", free_port());
    let said = run(oncelog(dir.path()).args(["demo", "--seconds", "1", "--bootstrap", &nowhere]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("no transaction was committed") && said.stderr.contains(&nowhere), "{said:?}");
}
