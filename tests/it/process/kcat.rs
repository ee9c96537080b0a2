//! kcat, as many people know a broker by it.

use std::io::Write;
use std::process::{Command, Stdio};

use super::child::Server;
use super::serve;

/// Runs kcat with these words after the broker's address; gives what it printed.
fn kcat(server: &Server, words: &[&str], input: &str) -> String {
    let mut command = Command::new("kcat");
    // Whoever runs the tests may have put another librdkafka there.
    command.env_remove("LD_LIBRARY_PATH");
    command.args(["-b", &server.address().to_string()]).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kcat {words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn kcat_lists_produces_and_consumes() {
    if Command::new("kcat").arg("-V").output().is_err() {
        eprintln!("skipped: kcat is not installed");
        return;
    }
    let server = serve(&[]);
    assert_eq!(server.connect().create_topic("words", 3), 0);
    let listed = kcat(&server, &["-L"], "");
    for line in [
        format!("broker 1 at {} (controller)", server.address()),
        "topic \"words\" with 3 partitions:".to_owned(),
        "partition 2, leader 1, replicas: 1, isrs: 1".to_owned(),
    ] {
        assert!(listed.contains(&line), "{line:?} is not in {listed}");
    }
    let lines: String = (0..100).map(|n| format!("key-{n}:value-{n}\n")).collect();
    for (part, codec) in [("0", "none"), ("1", "gzip"), ("2", "zstd")] {
        kcat(&server, &["-P", "-t", "words", "-p", part, "-z", codec, "-K", ":", "-X", "acks=all"], &lines);
        let read = kcat(&server, &["-C", "-t", "words", "-p", part, "-o", "beginning", "-e", "-q", "-K", ":"], "");
        assert_eq!(read, lines, "partition {part}, {codec}");
    }
    let last = kcat(&server, &["-C", "-t", "words", "-p", "1", "-o", "-2", "-e", "-q"], "");
    assert_eq!(last, "value-98\nvalue-99\n");
    let at = kcat(&server, &["-Q", "-t", "words:2:-1"], "");
    assert!(at.contains("words [2] offset 100"), "{at}");
    kcat(&server, &["-P", "-t", "made-by-asking"], "one\n");
    let grouped = kcat(&server, &["-G", "group", "-e", "-q", "-X", "auto.offset.reset=earliest", "words"], "");
    assert_eq!(grouped.lines().count(), 300);
    assert_eq!(kcat(&server, &["-C", "-t", "made-by-asking", "-e", "-q"], ""), "one\n");
}
