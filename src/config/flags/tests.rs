use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::config::HostPort;

#[test]
fn the_command_line() {
    let parse = |args: &[&str]| parse(args.iter().map(OsString::from)).map(|(command, _)| command);
    for (args, want) in [
        (&[] as &[&str], Command::Serve),
        (&["serve"], Command::Serve),
        (&["config", "--data-dir", "/x"], Command::Config),
        (&["--set", "a=b", "healthcheck"], Command::Healthcheck),
        (&["--version"], Command::Version),
        (&["-h"], Command::Help),
    ] {
        assert_eq!(parse(args), Ok(want), "{args:?}");
    }
    for args in [&["serve", "config"] as &[&str], &["--nonsense"], &["--data-dir"]] {
        assert!(parse(args).is_err(), "{args:?}");
    }
}

#[test]
fn commands_with_flags_of_their_own() {
    let parse = |line: &str| {
        let parsed = parse(line.split_whitespace().map(OsString::from));
        parsed.map(|(command, _)| command).map_err(|error| error.to_string())
    };
    let doctor = |bootstrap: &[HostPort], transaction, seconds| {
        let timeout = Duration::from_secs(seconds);
        Command::Doctor(Doctor { bootstrap: bootstrap.to_vec(), transaction, timeout })
    };
    let (a, b) = (HostPort::new("a", 1), HostPort::new("::1", 2));
    for (line, want) in [
        ("doctor --bootstrap a:1", doctor(std::slice::from_ref(&a), false, 30)),
        ("doctor --transaction --bootstrap a:1,[::1]:2 --timeout-s=5", doctor(&[a.clone(), b], true, 5)),
        ("demo --bootstrap a:1", Command::Demo(Demo { bootstrap: vec![a.clone()], length: None })),
        (
            "demo --seconds 7 --bootstrap=a:1",
            Command::Demo(Demo { bootstrap: vec![a], length: Some(Duration::from_secs(7)) }),
        ),
    ] {
        assert_eq!(parse(line), Ok(want), "{line}");
    }
    for (line, says) in [
        ("doctor", "needs a broker: write --bootstrap HOST:PORT"),
        ("demo --seconds 1", "needs a broker"),
        ("doctor --bootstrap", "missing argument"),
        ("doctor --bootstrap a", "names no port; write HOST:PORT"),
        ("doctor --bootstrap a:0", "port 0"),
        ("doctor --bootstrap a:1,", "write HOST:PORT"),
        ("doctor --bootstrap a:1 --timeout-s 0", "a number of seconds, 1 or more"),
        ("doctor --bootstrap a:1 --timeout-s -1", "a number of seconds"),
        ("demo --bootstrap a:1 --seconds x", "a number of seconds"),
        ("doctor --bootstrap a:1 --seconds 1", "oncelog doctor has no flag --seconds, only --bootstrap"),
        ("demo --bootstrap a:1 --transaction", "oncelog demo has no flag --transaction"),
        ("serve --bootstrap a:1", "oncelog has no flag --bootstrap"),
        ("--bootstrap a:1 doctor", "a command's own flags come after its name"),
        ("doctor --bootstrap a:1 --data-dir x", "reads no settings"),
        ("doctor a:1", "\"a:1\" has no place here"),
    ] {
        let said = parse(line).expect_err(line);
        assert!(said.contains(says), "{line}: {said}");
    }
}

#[test]
fn what_is_asked_of_transactions() {
    let txn = |wish| Txn { wish, ..Txn::default() };
    let id = || "an id".to_owned();
    let cases: &[(&[&str], Txn)] = &[
        (&["txn"], txn(TxnWish::List)),
        (&["txn", "list"], txn(TxnWish::All)),
        (&["txn", "blocked", "--json"], Txn { json: true, ..txn(TxnWish::Blocked) }),
        (&["txn", "show", "an id"], txn(TxnWish::Show(id()))),
        (&["txn", "show", "list"], txn(TxnWish::Show("list".to_owned()))),
        (
            &["txn", "--admin", "h:1", "abort", "an id"],
            Txn { admin: Some("h:1".parse().unwrap()), ..txn(TxnWish::Abort(id())) },
        ),
        (&["txn", "fence", "an id"], txn(TxnWish::Fence(id()))),
        (
            &["txn", "--state", "Ongoing", "--state=Empty", "--prefix", "a", "--longer-than-s", "5"],
            Txn {
                states: vec!["Ongoing".to_owned(), "Empty".to_owned()],
                prefix: Some("a".to_owned()),
                longer_than: Some(Duration::from_secs(5)),
                ..txn(TxnWish::List)
            },
        ),
    ];
    let parse = |words: &[&str]| parse(words.iter().map(Into::into));
    for (words, wanted) in cases {
        assert_eq!(parse(words).unwrap().0, Command::Txn(wanted.clone()), "{words:?}");
    }
    for (words, why) in [
        (&["txn", "commit", "x"][..], "write list, show, blocked, abort or fence"),
        (&["txn", "abort"], "which one?"),
        (&["txn", "list", "x"], "\"x\" has no place here"),
        (&["txn", "show", "x", "y"], "\"y\" has no place here"),
        (&["serve", "x"], "\"x\" has no place here"),
        (&["txn", "--bootstrap", "h:1"], "oncelog txn has no flag --bootstrap"),
    ] {
        let said = parse(words).unwrap_err().to_string();
        assert!(said.contains(why), "{words:?}: {said}");
    }
}
