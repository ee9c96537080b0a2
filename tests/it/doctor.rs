//! `oncelog doctor`: the program itself against brokers that can be reached and brokers that cannot.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tempfile::TempDir;

use crate::broker::TestBroker;
use crate::process::child::{Said, free_port, run};
use crate::process::oncelog;

fn doctor(bootstrap: &str, flags: &[&str]) -> Said {
    let dir = TempDir::new().unwrap();
    run(oncelog(dir.path()).args(["doctor", "--bootstrap", bootstrap]).args(flags))
}

/// A broker that tells its clients to go elsewhere.
fn sending_to(host: &str, port: Option<u16>) -> TestBroker {
    TestBroker::with(|config| {
        config.listeners.external.advertised.host = host.to_owned();
        config.listeners.external.advertised.port = port;
    })
}

fn fails(bootstrap: &str, flags: &[&str], sentences: &[&str]) {
    let said = doctor(bootstrap, flags);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    for sentence in sentences {
        assert!(said.stderr.contains(sentence), "{sentence:?} is not in {said:?}");
    }
    assert!(said.stdout.contains("FAIL"), "{said:?}");
}

#[test]
fn a_broker_that_can_be_reached() {
    let broker = TestBroker::start();
    let at = broker.address();
    for bootstrap in [at.to_string(), format!("localhost:{}", at.port()), format!("{at},localhost:{}", at.port())] {
        let said = doctor(&bootstrap, &[]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        for line in [format!("node 1 is at {at}"), "the same cluster answers".to_owned()] {
            assert!(said.stdout.contains(&line), "{line:?} is not in {said:?}");
        }
        assert!(said.stdout.ends_with("everything answers\n"), "{said:?}");
    }
}

#[test]
fn a_broker_that_sends_clients_elsewhere() {
    let setting = "set ONCELOG_LISTENERS__EXTERNAL__ADVERTISED";
    let broker = sending_to("oncelog-0.oncelog.invalid", Some(9092));
    let at = broker.address().to_string();
    let lead = format!("{at} answers, but tells clients to connect to oncelog-0.oncelog.invalid:9092, ");
    fails(&at, &[], &[&lead, "whose name cannot be resolved here: ", setting]);

    let nowhere = free_port();
    let broker = sending_to("127.0.0.1", Some(nowhere));
    let at = broker.address().to_string();
    let lead = format!("{at} answers, but tells clients to connect to 127.0.0.1:{nowhere}, where nobody listens");
    fails(&at, &[], &[&lead, setting]);

    let other = TestBroker::start();
    let broker = sending_to("127.0.0.1", Some(other.address().port()));
    fails(&broker.address().to_string(), &[], &["where a broker of another cluster", setting]);

    let broker = sending_to("127.0.0.1", Some(other.admin().port()));
    fails(&broker.address().to_string(), &[], &["where no broker answers", setting]);
}

#[test]
fn nobody_or_somebody_else_at_the_bootstrap_address() {
    let nowhere = format!("127.0.0.1:{}", free_port());
    fails(&nowhere, &[], &[&nowhere, "nobody listens there", "ONCELOG_LISTENERS__EXTERNAL__BIND"]);
    fails("broker.invalid:9092", &[], &["broker.invalid:9092: the name cannot be resolved here"]);

    let broker = TestBroker::start();
    let admin = broker.admin().to_string();
    fails(&admin, &[], &[&format!("{admin} is no Kafka listener")]);
    let (one, other) = (broker.address(), TestBroker::start());
    fails(&format!("{one},{}", other.address()), &[], &["belong to different clusters"]);
}

#[test]
fn it_does_not_wait_for_ever() {
    let silent = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let at = silent.local_addr().unwrap().to_string();
    let said = doctor(&at, &["--timeout-s", "1"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let sentence = format!("not done within 1 s (--timeout-s); it was at: bootstrap {at}");
    assert!(said.stderr.contains(&sentence), "{said:?}");
    assert!(said.took < Duration::from_secs(10), "{said:?}");
}

#[test]
fn a_transaction_is_run_and_read_back() {
    let broker = TestBroker::start();
    let said = doctor(&broker.address().to_string(), &["--transaction"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    for line in [
        "read_committed has what was committed, read_uncommitted all",
        "the group's offset is the committed one",
        "topic and group are removed",
    ] {
        assert!(said.stdout.contains(line), "{line:?} is not in {said:?}");
    }
    let mut client = broker.connect();
    let names: Vec<_> = client.metadata(None, false).topics.into_iter().filter_map(|topic| topic.name).collect();
    assert!(names.iter().all(|name| name.starts_with("__")), "{names:?}");
    assert!(client.list_groups(4, &[], &[]).is_empty());
}

#[test]
fn flags_that_cannot_be() {
    let dir = TempDir::new().unwrap();
    for (line, sentence) in [
        ("doctor", "needs a broker: write --bootstrap HOST:PORT"),
        ("doctor --bootstrap here", "names no port"),
        ("doctor --bootstrap a:1 --seconds 2", "oncelog doctor has no flag --seconds"),
        ("demo --bootstrap a:1 --transaction", "oncelog demo has no flag --transaction"),
    ] {
        let said = run(oncelog(dir.path()).args(line.split(' ')));
        assert_eq!(said.code, Some(2), "{line}: {said:?}");
        assert!(said.stderr.contains(sentence), "{line}: {said:?}");
    }
}
