//! Starts that cannot be: one sentence that says what to do, an exit code that is not 0, and soon.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::child::{Said, free_port, run};
use super::{oncelog, serve};

/// How long a start may take that fails; a debug build on a busy machine is slow.
const SOON: Duration = Duration::from_secs(5);

/// A start with these settings on free ports.
fn start(dir: &Path, settings: &[&str]) -> Command {
    let mut command = oncelog(dir);
    command.args(["--set", "admin.bind=127.0.0.1:0", "--set", "listeners.external.bind=127.0.0.1:0"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
}

/// Fails with one line that holds all of these words.
fn fails(command: &mut Command, code: i32, words: &[&str]) {
    let Said { code: ended, stdout, stderr, took } = run(command);
    assert_eq!((ended, stdout.as_str()), (Some(code), ""), "{words:?}: {stderr}");
    assert!(took < SOON, "{words:?}: {took:?}");
    let lines: Vec<_> = stderr.lines().filter(|line| !line.contains(" INFO ")).collect();
    assert_eq!(lines.len(), 1, "{words:?}: one sentence: {stderr}");
    assert!(lines[0].starts_with("oncelog: "), "{stderr}");
    for word in words {
        assert!(lines[0].contains(word), "{word:?} is not in {stderr}");
    }
}

#[test]
fn what_cannot_be_set() {
    let dir = TempDir::new().unwrap();
    let rows: [(&str, &[&str]); 8] = [
        ("topics.auto_creat=true", &["topics.auto_creat", "did you mean"]),
        ("topic.auto_create=true", &["did you mean topics.auto_create?", "did you mean"]),
        ("durabilty=strict", &["did you mean durability?", "did you mean"]),
        ("durability=none", &["durability", "none", "write strict or relaxed"]),
        ("topics.default_partitions=0", &["topics.default_partitions", "0"]),
        ("topics.default_partitions=many", &["topics.default_partitions", "many"]),
        ("listeners.internal.bind=nowhere", &["nowhere", "nowhere"]),
        ("log.level=inof", &["log.level", "inof"]),
    ];
    for (setting, words) in rows {
        fails(&mut start(dir.path(), &[setting]), 2, words);
        let (key, value) = setting.split_once('=').unwrap();
        let name = format!("ONCELOG_{}", key.replace('.', "__").to_uppercase());
        fails(start(dir.path(), &[]).env(name, value), 2, &words[1..]);
    }
    assert!(!dir.path().join("data").exists(), "nothing was touched");
    std::fs::create_dir(dir.path().join("conf")).unwrap();
    let file = dir.path().join("conf/oncelog.toml");
    #[expect(clippy::disallowed_methods, reason = "a test writes the file that a user would")]
    std::fs::write(&file, "[topics]\nauto_creat = true\n").unwrap();
    fails(start(dir.path(), &[]).arg("--config").arg(&file), 2, &["oncelog.toml", "did you mean topics.auto_create?"]);
    fails(start(dir.path(), &[]).args(["--config", "none.toml"]), 2, &["none.toml"]);
    fails(oncelog(dir.path()).arg("sevre"), 2, &["sevre", "write serve, config, healthcheck, txn, doctor or demo"]);
    fails(oncelog(dir.path()).arg("--prot"), 2, &["--prot", "--help"]);
}

#[test]
fn ports_and_directories_that_cannot_be_used() {
    let dir = TempDir::new().unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    for setting in ["listeners.external.bind", "listeners.internal.bind", "admin.bind"] {
        let words = [setting, &taken.to_string(), "another process has the port"];
        fails(&mut start(dir.path(), &[&format!("{setting}={taken}")]), 1, &words);
    }
    fails(
        &mut start(dir.path(), &["listeners.external.bind=192.0.2.1:9092"]),
        1,
        &["192.0.2.1:9092", "cannot be bound"],
    );
    assert!(!dir.path().join("data").exists(), "nothing was touched");
    #[expect(clippy::disallowed_methods, reason = "a test puts a file in the way")]
    std::fs::write(dir.path().join("file"), "not a directory").unwrap();
    for place in ["file", "file/below"] {
        fails(&mut start(dir.path(), &[&format!("data_dir={place}")]), 1, &["data_dir", place, "cannot be used"]);
    }
    std::fs::create_dir(dir.path().join("text")).unwrap();
    let text = "this is no database, and long enough to be seen as none".repeat(20);
    #[expect(clippy::disallowed_methods, reason = "a test puts a file in the way")]
    std::fs::write(dir.path().join("text/meta.db"), text).unwrap();
    fails(&mut start(dir.path(), &["data_dir=text"]), 1, &["meta.db"]);
}

#[test]
fn one_broker_a_directory() {
    let server = serve(&[]);
    let data = format!("data_dir={}", server.dir().join("data").display());
    fails(&mut start(server.dir(), &[&data]), 1, &["data_dir", "in use by another broker"]);
    assert_eq!(server.connect().api_versions().error_code, 0, "the other one did no harm");
}

#[test]
fn commands_that_end_by_themselves() {
    let dir = TempDir::new().unwrap();
    let shown =
        run(start(dir.path(), &["topics.default_partitions=7"]).arg("config").env("ONCELOG_DURABILITY", "relaxed"));
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    let line = |key: &str| shown.stdout.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    for (key, value, origin) in [
        ("topics.default_partitions", " 7 ", "--set"),
        ("durability", " relaxed ", "ONCELOG_DURABILITY"),
        ("marker_sync", " answer ", "default"),
    ] {
        assert!(line(key).contains(value) && line(key).contains(origin), "{key}: {:?}", line(key));
    }
    let version = run(oncelog(dir.path()).arg("--version"));
    assert_eq!((version.code, version.stdout), (Some(0), format!("oncelog {}\n", env!("CARGO_PKG_VERSION"))));
    let told = run(oncelog(dir.path()).arg("--help"));
    assert!(told.code == Some(0) && told.stdout.contains("usage: oncelog"), "{told:?}");
    assert!(!dir.path().join("data").exists(), "nothing was touched");

    let server = serve(&[]);
    let ask = |admin: &str| run(oncelog(dir.path()).args(["healthcheck", "--set", &format!("admin.bind={admin}")]));
    let well = ask(&server.admin());
    assert_eq!((well.code, well.stderr.as_str()), (Some(0), ""));
    let ill = ask(&format!("127.0.0.1:{}", free_port()));
    assert!(ill.code == Some(1) && ill.stderr.starts_with("oncelog: not healthy: "), "{ill:?}");
}
