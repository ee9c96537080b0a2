use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::settings::{SETTINGS, variable};
use super::sources::of_kubernetes;
use super::*;

/// Loads with these variables (`NAME=value`), this file and these arguments.
fn load(vars: &[&str], file: &str, args: &[&str]) -> Result<Loaded, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    if !file.is_empty() {
        #[expect(clippy::disallowed_methods, reason = "the file a user would have written")]
        std::fs::write(dir.path().join("oncelog.toml"), file).unwrap();
    }
    let pair = |text: &&str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    let vars = vars.iter().map(pair).collect::<BTreeMap<_, _>>();
    let around = Surroundings { vars, hostname: "box".to_owned(), dir: dir.path().to_owned() };
    let (_, flags) = flags::parse(args.iter().map(OsString::from))?;
    Config::load(&flags, &around)
}

fn env(vars: &[&str]) -> Result<Loaded, ConfigError> {
    load(vars, "", &[])
}

fn shown(loaded: &Loaded, key: &str) -> String {
    let line = loaded.values.iter().find(|shown| shown.key == key).unwrap();
    format!("{} ({})", line.value, line.origin)
}

#[test]
fn nothing_said_gives_the_builtin_defaults() {
    let loaded = env(&[]).unwrap();
    assert_eq!(loaded.config, Config::builtin());
    assert!(loaded.notes.is_empty());
    assert!(loaded.values.iter().all(|shown| shown.origin == Origin::Default));
    assert_eq!(loaded.config.data_dir, PathBuf::from("./data"));
    assert_eq!(loaded.config.admin.bind.to_string(), "127.0.0.1:9644");
    let number = |shown: &Shown| matches!(settings::find(shown.key).unwrap().accepts, settings::Accepts::Number { .. });
    for shown in loaded.values.iter().filter(|shown| number(shown)) {
        assert!(shown.value.parse::<i64>().is_ok(), "{shown:?}");
    }
}

#[test]
fn the_reference_lists_exactly_what_exists() {
    let defaults = figment::value::Value::serialize(settings::Settings::default()).unwrap();
    fn leaves(prefix: &str, value: &figment::value::Value, into: &mut Vec<String>) {
        match value.as_dict() {
            Some(dict) => dict.iter().for_each(|(name, value)| leaves(&format!("{prefix}.{name}"), value, into)),
            None => into.push(prefix.trim_start_matches('.').to_owned()),
        }
    }
    let mut exist = Vec::new();
    leaves("", &defaults, &mut exist);
    let mut listed = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect::<Vec<_>>();
    listed.sort();
    exist.sort();
    assert_eq!(listed, exist);
}

#[test]
fn later_sources_win_and_are_named() {
    let file =
        "durability = \"relaxed\"\n[topics]\ndefault_partitions = 2\nauto_create = false\n[log]\nlevel = \"warn\"";
    let vars = ["KAFKA_NUM_PARTITIONS=3", "ONCELOG_TOPICS__DEFAULT_PARTITIONS=4", "KAFKA_MESSAGE_MAX_BYTES=2048"];
    let loaded = load(&vars, file, &["--set", "topics.default_partitions=5", "--data-dir", "/d"]).unwrap();
    for (key, want) in [
        ("topics.default_partitions", "5 (flag --set topics.default_partitions)"),
        ("topics.max_message_bytes", "2048 (env KAFKA_MESSAGE_MAX_BYTES)"),
        ("durability", "relaxed (file oncelog.toml)"),
        ("topics.auto_create", "false (file oncelog.toml)"),
        ("data_dir", "/d (flag --data-dir)"),
        ("log.format", "text (default)"),
        ("listeners.internal.bind", " (default)"),
    ] {
        assert_eq!(shown(&loaded, key), want);
    }
    assert_eq!(loaded.config.topics.default_partitions, 5);
    assert_eq!(loaded.config.durability, Durability::Relaxed);
    assert_eq!(loaded.config.data_dir, Path::new("/d"));
    let loaded = load(&vars, file, &[]).unwrap();
    assert_eq!(shown(&loaded, "topics.default_partitions"), "4 (env ONCELOG_TOPICS__DEFAULT_PARTITIONS)");
}

#[test]
fn the_names_others_rely_on() {
    for name in [
        "ONCELOG_DATA_DIR=/x",
        "ONCELOG_LISTENERS__EXTERNAL__BIND=0.0.0.0:9092",
        "ONCELOG_LISTENERS__EXTERNAL__ADVERTISED=a.example:9092",
        "ONCELOG_LISTENERS__INTERNAL__BIND=0.0.0.0:29092",
        "ONCELOG_ADMIN__BIND=0.0.0.0:9644",
        "ONCELOG_DURABILITY=relaxed",
        "ONCELOG_MARKER_SYNC=redo",
        "ONCELOG_TOPICS__AUTO_CREATE=false",
        "ONCELOG_TOPICS__DEFAULT_PARTITIONS=3",
        "ONCELOG_TRANSACTIONS__MAX_TIMEOUT_MS=1000",
        "ONCELOG_GROUPS__MIN_SESSION_TIMEOUT_MS=10",
        "ONCELOG_GROUPS__INITIAL_REBALANCE_DELAY_MS=3000",
        "ONCELOG_LOG__FORMAT=json",
        "ONCELOG_LOG__LEVEL=info,oncelog::net=debug",
        "ONCELOG_DATA_DIR=2026",
    ] {
        assert!(env(&[name]).is_ok(), "{name}: {:?}", env(&[name]));
    }
}

/// Variables, file, arguments → what is said.
const WRONG: &[(&[&str], &str, &[&str], &str)] = &[
    (
        &["ONCELOG_TOPICS__AUTO_CRAETE=true"],
        "",
        &[],
        "the environment variable ONCELOG_TOPICS__AUTO_CRAETE is not a setting: did you mean \
         ONCELOG_TOPICS__AUTO_CREATE?",
    ),
    (
        &["ONCELOG_DURABILTY=strict"],
        "",
        &[],
        "the environment variable ONCELOG_DURABILTY is not a setting: did you mean ONCELOG_DURABILITY?",
    ),
    (
        &[],
        "[topic]\ndefault_partitions = 3",
        &[],
        "\"topic.default_partitions\" in oncelog.toml is not a setting: did you mean topics.default_partitions?",
    ),
    (&[], "", &["--set", "x=1"], "\"x\" on the command line is not a setting: `oncelog config` lists every setting"),
    (
        &[],
        "[topics]\nretention_ms = 1.5",
        &[],
        "topics.retention_ms is 1.5 (file oncelog.toml): write a whole number of milliseconds, -1 or more",
    ),
    (&[], "", &["--set", "x"], "--set x has no value: write --set x=VALUE"),
    (&[], "", &["serv"], "\"serv\" is not a command: write serve, config, healthcheck, txn, doctor or demo"),
    (&[], "topics = 3", &[], "\"topics\" in oncelog.toml is not a setting: `oncelog config` lists every setting"),
    (
        &[],
        "[topics]\nauto_create = \"yes\"",
        &[],
        "topics.auto_create is \"yes\" (file oncelog.toml): write true or false",
    ),
    (
        &["ONCELOG_TOPICS__DEFAULT_PARTITIONS=0"],
        "",
        &[],
        "topics.default_partitions is 0 (env ONCELOG_TOPICS__DEFAULT_PARTITIONS): write a whole number of partitions \
         from 1 to 10000",
    ),
    (
        &["KAFKA_NUM_PARTITIONS=many"],
        "",
        &[],
        "topics.default_partitions is \"many\" (env KAFKA_NUM_PARTITIONS): write a whole number of partitions from 1 \
         to 10000",
    ),
    (
        &["ONCELOG_DURABILITY=fsync"],
        "",
        &[],
        "durability is \"fsync\" (env ONCELOG_DURABILITY): write strict or relaxed",
    ),
    (
        &["ONCELOG_ADMIN__BIND=9644"],
        "",
        &[],
        "admin.bind is \"9644\" (env ONCELOG_ADMIN__BIND): write an address with a port, such as 0.0.0.0:9092 or \
         [::1]:9092",
    ),
    (
        &["ONCELOG_LOG__LEVEL=inof"],
        "",
        &[],
        "log.level is \"inof\" (env ONCELOG_LOG__LEVEL): write error, warn, info, debug or trace, or directives like \
         info,oncelog::net=debug",
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__ADVERTISED=0.0.0.0:9092"],
        "",
        &[],
        "listeners.external.advertised is \"0.0.0.0:9092\" (env ONCELOG_LISTENERS__EXTERNAL__ADVERTISED), but no \
         client can connect to 0.0.0.0: write a name clients can reach, such as broker.example.com:9092 or {hostname}",
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__ADVERTISED={pod_name}.x"],
        "",
        &[],
        "listeners.external.advertised is \"{pod_name}.x\" (env ONCELOG_LISTENERS__EXTERNAL__ADVERTISED), but \
         {pod_name} needs the environment variable POD_NAME: write a name clients can reach, such as \
         broker.example.com:9092 or {hostname}",
    ),
    (
        &["ONCELOG_LISTENERS__INTERNAL__ADVERTISED=x"],
        "",
        &[],
        "listeners.internal.advertised has no effect while the internal listener is off: write \
         listeners.internal.bind as well, such as 0.0.0.0:29092",
    ),
    (
        &["ONCELOG_ADMIN__BIND=0.0.0.0:9092"],
        "",
        &[],
        "admin.bind is 0.0.0.0:9092, but listeners.external.bind is 127.0.0.1:9092: write another port",
    ),
    (
        &["ONCELOG_GROUPS__MAX_SESSION_TIMEOUT_MS=10"],
        "",
        &[],
        "groups.max_session_timeout_ms is 10 (env ONCELOG_GROUPS__MAX_SESSION_TIMEOUT_MS), less than \
         groups.min_session_timeout_ms, 6000 (default): write 6000 or more, or lower the other",
    ),
    (
        &["KAFKA_LOG_DIRS=/a,/b"],
        "",
        &[],
        "KAFKA_LOG_DIRS is \"/a,/b\", a list: write one directory: partitions are not spread over several",
    ),
    (
        &["KAFKA_LISTENERS=SASL_SSL://:9092"],
        "",
        &[],
        "KAFKA_LISTENERS asks for SASL_SSL on SASL_SSL: only PLAINTEXT listeners can be set with KAFKA_ variables",
    ),
    (&["KAFKA_LISTENERS=9092"], "", &[], "KAFKA_LISTENERS holds \"9092\": write NAME://host:port"),
    (
        &["KAFKA_LISTENERS=A://:1,B://:2,C://:3"],
        "",
        &[],
        "KAFKA_LISTENERS names A and B for clients: write two listeners at most, and name the one for containers in \
         KAFKA_INTER_BROKER_LISTENER_NAME",
    ),
];

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    for (vars, file, args, want) in WRONG {
        let got = load(vars, file, args).map(|_| "accepted").unwrap_err().to_string();
        assert_eq!(&got, want);
    }
    let broken = load(&[], "topics = [", &[]).unwrap_err().to_string();
    assert!(broken.starts_with("oncelog.toml is not valid TOML: ") && !broken.contains('\n'), "{broken}");
    let missing = load(&[], "", &["--config", "none.toml"]).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the configuration file none.toml: "), "{missing}");
}

#[test]
fn what_others_put_into_the_environment_is_not_ours() {
    let vars = [
        "ONCELOG_TOOLS=/somewhere",
        "ONCELOG_PORT=tcp://10.0.0.1:9092",
        "ONCELOG_PORT_9092_TCP_ADDR=10.0.0.1",
        "ONCELOG_SERVICE_HOST=10.0.0.1",
        "ONCELOG_SERVICE_PORT_KAFKA=9092",
        "ONCELOG_HEADLESS_PORT_9092_TCP=tcp://10.0.0.1:9092",
        "ONCELOG_ADMIN_SERVICE_HOST=10.0.0.1",
        "ONCELOG_ADMIN_PORT=tcp://10.0.0.1:9644",
        "KAFKA_PORT=tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST=10.0.0.1",
        "ONCELOG_DURABILITY=",
        "HOME=/x",
    ];
    let loaded = env(&vars).unwrap();
    assert_eq!(loaded.config, Config::builtin());
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    for setting in SETTINGS {
        let name = variable(setting.key);
        let rest = name.strip_prefix("ONCELOG_").unwrap();
        assert!(!of_kubernetes(rest) && rest != "TOOLS", "{name}");
    }
    let nearly = env(&["ONCELOG_LISTENERS__EXTERNAL__PORT=9094"]).unwrap();
    assert_eq!(
        nearly.notes,
        ["ONCELOG_LISTENERS__EXTERNAL__PORT looks like what Kubernetes sets for a Service and is ignored"]
    );
}

/// Variables → the start-up table.
const WELCOME: &[(&[&str], &[&str])] = &[
    (&[], &["who connects to 127.0.0.1:9092 (external) is told localhost:9092"]),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__BIND=0.0.0.0:9092", "ONCELOG_LISTENERS__INTERNAL__BIND=0.0.0.0:29092"],
        &[
            "who connects to 0.0.0.0:9092 (external) is told localhost:9092",
            "who connects to 0.0.0.0:29092 (internal) is told box:29092",
        ],
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__BIND=10.1.2.3:9092"],
        &["who connects to 10.1.2.3:9092 (external) is told 10.1.2.3:9092"],
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__BIND=[::]:9092"],
        &["who connects to [::]:9092 (external) is told localhost:9092"],
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__ADVERTISED=b{ordinal}.{hostname}:31000", "POD_NAME=oncelog-7"],
        &["who connects to 127.0.0.1:9092 (external) is told b7.box:31000"],
    ),
    (
        &["ONCELOG_LISTENERS__EXTERNAL__ADVERTISED=[{pod_ip}]", "POD_IP=fd00::1"],
        &["who connects to 127.0.0.1:9092 (external) is told [fd00::1]:9092"],
    ),
    (
        &["KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093"],
        &["who connects to 0.0.0.0:9092 (external) is told localhost:9092"],
    ),
    (
        &[
            "KAFKA_LISTENERS=PLAINTEXT_HOST://:9092,PLAINTEXT://:19092,CONTROLLER://:29093",
            "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
            "KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        ],
        &[
            "who connects to 0.0.0.0:9092 (external) is told localhost:9092",
            "who connects to 0.0.0.0:19092 (internal) is told broker:19092",
        ],
    ),
    (
        &["KAFKA_ADVERTISED_LISTENERS=INTERNAL://kafka:29092,EXTERNAL://localhost:9092"],
        &[
            "who connects to 0.0.0.0:9092 (external) is told localhost:9092",
            "who connects to 0.0.0.0:29092 (internal) is told kafka:29092",
        ],
    ),
];

#[test]
fn who_connects_where_is_told_what() {
    for (vars, want) in WELCOME {
        let config = env(vars).unwrap_or_else(|error| panic!("{vars:?}: {error}")).config;
        let names = [ListenerName::External, ListenerName::Internal];
        let bound = names.iter().filter_map(|name| Some((*name, config.listener(*name)?.bind.port)));
        assert_eq!(&config.welcome(&bound.collect::<Vec<_>>()), want);
    }
    let config = env(&["ONCELOG_LISTENERS__EXTERNAL__BIND=127.0.0.1:0"]).unwrap().config;
    let told = config.welcome(&[(ListenerName::External, 41_234)]);
    assert_eq!(told, ["who connects to 127.0.0.1:41234 (external) is told localhost:41234"]);
}

#[test]
fn meaningless_kafka_variables_are_named_once() {
    let vars = ["KAFKA_NODE_ID=1", "KAFKA_PROCESS_ROLES=broker,controller", "KAFKA_NUM_PARTITIONS=3", "CLUSTER_ID=x"];
    let loaded = env(&vars).unwrap();
    let want = "these variables have no meaning here and are ignored: KAFKA_NODE_ID, KAFKA_PROCESS_ROLES";
    assert_eq!(loaded.notes, [want]);
    assert_eq!(loaded.config.topics.default_partitions, 3);
}

#[test]
fn addresses_are_read_as_they_are_written() {
    for (text, host, port) in
        [("localhost:9092", "localhost", 9092), ("[::1]:0", "::1", 0), ("0.0.0.0:65535", "0.0.0.0", 65_535)]
    {
        let address = text.parse::<HostPort>().unwrap();
        assert_eq!((address.host.as_str(), address.port, address.to_string()), (host, port, text.to_owned()));
    }
    for text in ["", ":9092", "9092", "a:b", "a:70000", "::1:9092", "[::1", "[::1]9092", "a b:1", "http://x:1"] {
        assert!(text.parse::<HostPort>().is_err(), "{text}");
    }
    for host in ["localhost", "LOCALHOST", "a.localhost", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        assert!(HostPort::new(host, 1).is_loopback(), "{host}");
    }
    for host in ["localhost.example", "mylocalhost", "10.0.0.1", "::2", "0.0.0.0"] {
        assert!(!HostPort::new(host, 1).is_loopback(), "{host}");
    }
    assert_eq!(HostPort::new("0.0.0.0", 1).local(), HostPort::new("127.0.0.1", 1));
    assert_eq!(HostPort::new("::", 1).local(), HostPort::new("::1", 1));
    assert_eq!(HostPort::new("h", 1).local(), HostPort::new("h", 1));
}

/// Variables → where traces go, who said it, how many; or what is wrong.
#[test]
fn where_traces_go() {
    type Said<'a> = Result<(&'a str, &'a str, &'a str), &'a str>;
    let table: &[(&[&str], Said<'_>)] = &[
        (&[], Ok(("", "default", ""))),
        (
            &["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"],
            Ok(("http://c:4318/v1/traces", "env OTEL_EXPORTER_OTLP_ENDPOINT", "")),
        ),
        (
            &["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/all/", "OTEL_TRACES_SAMPLER=always_off"],
            Ok(("http://c:4318/all/v1/traces", "env OTEL_EXPORTER_OTLP_ENDPOINT", "")),
        ),
        (
            &["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://[::1]:9/t"],
            Ok(("http://[::1]:9/t", "env OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")),
        ),
        (&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_SDK_DISABLED=TRUE"], Ok(("", "default", ""))),
        (&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_TRACES_EXPORTER=none"], Ok(("", "default", ""))),
        (
            &[
                "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318",
                "ONCELOG_TRACING__ENDPOINT=http://own:4318",
                "ONCELOG_TRACING__SAMPLE_RATIO=0.25",
            ],
            Ok(("http://own:4318/v1/traces", "env ONCELOG_TRACING__ENDPOINT", "0.25")),
        ),
        (&["ONCELOG_TRACING__SAMPLE_RATIO=1"], Ok(("", "default", "1"))),
        (&["ONCELOG_TRACING__SAMPLE_RATIO=1.01"], Err("write a number from 0 to 1, such as 0.1")),
        (&["ONCELOG_TRACING__SAMPLE_RATIO=half"], Err("write a number from 0 to 1, such as 0.1")),
        (
            &["OTEL_EXPORTER_OTLP_ENDPOINT=c:4318"],
            Err("(env OTEL_EXPORTER_OTLP_ENDPOINT): write where to post traces, such as http://localhost:4318"),
        ),
        (&["ONCELOG_TRACING__ENDPOINT=https://c:4318"], Err("https is not spoken")),
        (&["ONCELOG_TRACING__ENDPOINT=http://"], Err("such as http://localhost:4318")),
        (&["ONCELOG_TRACING__ENDPOINT=http://c:0"], Err("such as http://localhost:4318")),
        (&["ONCELOG_TRACING__ENDPOINT=http://c d:1"], Err("such as http://localhost:4318")),
    ];
    for (vars, said) in table {
        match (env(vars), said) {
            (Ok(loaded), Ok((endpoint, origin, ratio))) => {
                let tracing = &loaded.config.tracing;
                assert_eq!(tracing.endpoint.as_ref().map_or("", Endpoint::as_str), *endpoint, "{vars:?}");
                assert_eq!(tracing.sample_ratio.map(|ratio| ratio.share().to_string()).unwrap_or_default(), *ratio);
                assert!(shown(&loaded, "tracing.endpoint").ends_with(&format!("({origin})")), "{vars:?}");
            }
            (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{vars:?}: {error}"),
            (got, _) => panic!("{vars:?}: {got:?}"),
        }
    }
    let loaded = load(&[], "[tracing]\nsample_ratio = 1\nendpoint = \"http://c:4318\"", &[]).unwrap();
    assert_eq!(loaded.config.tracing.sample_ratio.map(Ratio::share), Some(1.0));
    let grpc = env(&["OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"]).unwrap();
    assert!(grpc.notes.iter().any(|note| note.contains("grpc") && note.contains("4318")), "{:?}", grpc.notes);
}
