//! Rules of the tree that no lint can hold.
//!
//! Each test gathers everything that is wrong and says it at once, by file and line.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the tree has failed")]

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// A part of `src/`: the modules of this crate it may name, and words it may not hold at all.
struct Layer {
    part: &'static str,
    may_use: &'static [&'static str],
    may_not_hold: &'static [&'static str],
}

const ASYNC: [&str; 3] = ["async ", ".await", "tokio"];

/// Dependencies point one way: net, http → api → runtime → store → engine. Tests beside the code are free.
const LAYERS: &[Layer] = &[
    Layer {
        part: "engine",
        may_use: &["engine"],
        may_not_hold: &[
            ASYNC[0],
            ASYNC[1],
            ASYNC[2],
            "std::fs",
            "std::net",
            "std::thread",
            "tracing",
            "rand::",
            "::now()",
            "new_v4",
            "kafka_protocol",
            "rusqlite",
        ],
    },
    Layer {
        part: "store",
        may_use: &["known_bugs", "store", "engine"],
        may_not_hold: &[ASYNC[0], ASYNC[1], ASYNC[2], "::now()", "kafka_protocol"],
    },
    Layer {
        part: "wire",
        may_use: &["wire", "engine"],
        may_not_hold: &[ASYNC[0], ASYNC[1], ASYNC[2], "std::fs", "::now()", "rusqlite"],
    },
    Layer {
        part: "runtime",
        may_use: &["known_bugs", "runtime", "store", "engine", "clock", "metrics", "config"],
        may_not_hold: &["kafka_protocol", "rusqlite", "std::fs"],
    },
    Layer {
        part: "api",
        may_use: &["api", "runtime", "wire", "engine", "clock", "metrics", "config"],
        may_not_hold: &["std::fs", "rusqlite"],
    },
    Layer {
        part: "net",
        may_use: &["net", "api", "runtime", "wire", "engine", "config", "metrics", "clock"],
        may_not_hold: &["std::fs", "kafka_protocol", "rusqlite"],
    },
    Layer {
        part: "http",
        may_use: &["http", "api", "runtime", "wire", "engine", "config", "metrics", "clock"],
        may_not_hold: &["std::fs", "kafka_protocol", "rusqlite"],
    },
    Layer {
        part: "client",
        may_use: &["client", "wire", "engine", "config", "clock"],
        may_not_hold: &["std::fs", "rusqlite"],
    },
    Layer { part: "doctor", may_use: &["doctor", "client", "config"], may_not_hold: &["std::fs", "rusqlite"] },
    Layer { part: "demo", may_use: &["demo", "client", "config"], may_not_hold: &["std::fs", "rusqlite"] },
    Layer { part: "clock", may_use: &["engine"], may_not_hold: &["kafka_protocol", "rusqlite", "std::fs"] },
    Layer { part: "config", may_use: &["config"], may_not_hold: &["kafka_protocol", "rusqlite", "tokio"] },
    Layer {
        part: "metrics",
        may_use: &["metrics", "config", "engine"],
        may_not_hold: &["kafka_protocol", "rusqlite", "std::fs", "tokio"],
    },
    Layer {
        part: "known_bugs",
        may_use: &["known_bugs"],
        may_not_hold: &["kafka_protocol", "rusqlite", "std::fs", "tokio"],
    },
    Layer {
        part: "telemetry",
        may_use: &["telemetry", "api", "runtime", "wire", "engine", "config", "metrics"],
        may_not_hold: &["kafka_protocol", "rusqlite", "std::fs"],
    },
];

/// A file is read in one sitting.
const MAX_LINES: usize = 500;

/// Words that stand nowhere, and why. They are put together here so that this file does not hold them itself.
const WORDS: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "do it, or write it down where work is planned"),
    (concat!("TO", "DO"), "do it, or write it down where work is planned"),
    (concat!("to", "do!("), "do it"),
    (concat!(".o", "k();"), "an error is dropped: handle it or pass it on"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/Us", "ers/"), "a path of one machine"),
    (concat!("/op", "t/"), "a path of one machine"),
    (concat!("bri", "efing"), "the tree speaks of itself alone"),
    (concat!("hel", "per"), "name it after what it does"),
    (concat!("cla", "ude"), "the tree speaks of itself alone"),
    (concat!("chat", "gpt"), "the tree speaks of itself alone"),
];

/// Endings of names that say nothing.
const EMPTY_NAMES: &[&str] = &["Manager", concat!("Hel", "per"), "Util", "Utils", "Info", "Inner", "Wrapper"];

/// Kinds of request that share a file because they are one exchange.
const SHARED_FILES: &[(&str, &str)] = &[("SaslHandshake", "sasl"), ("SaslAuthenticate", "sasl")];

/// Every file under `dir`, in order; none if it does not exist. Build output and hidden folders are passed over.
fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && (!name.starts_with('.') || name == ".ci") {
                found.extend(files(&path));
            }
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn rust(dir: &str) -> Vec<(PathBuf, String)> {
    let sources = files(Path::new(dir)).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    sources.map(|path| (path.clone(), read_to_string(&path).unwrap())).collect()
}

fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_string_lossy();
    stem == "tests" || stem.ends_with("_tests") || path.parent().unwrap().iter().any(|folder| folder == "tests")
}

/// The lines of a file up to the tests it holds, numbered.
fn own(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().collect::<Vec<_>>();
    let tests = |pair: &[&str]| matches!(pair, ["#[cfg(test)]", next] if next.ends_with('{'));
    let end = lines.windows(2).position(tests).unwrap_or(lines.len());
    lines.into_iter().take(end).enumerate().map(|(n, line)| (n + 1, line))
}

/// Of those, the ones that are code.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    own(text).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn in_part(path: &Path, part: &str) -> bool {
    path.starts_with(Path::new("src").join(part)) || path == Path::new("src").join(format!("{part}.rs"))
}

fn misuse(layer: &Layer, line: &str) -> Vec<String> {
    let part = layer.part;
    let mut wrong = Vec::new();
    for used in line.split("crate::").skip(1) {
        let module = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        if module.is_empty() {
            wrong.push(format!("`{part}`: one `use crate::…` a module, so that what it uses can be seen"));
        } else if !layer.may_use.contains(&module) && module.starts_with(char::is_lowercase) {
            wrong.push(format!("`{part}` may not use `{module}`"));
        }
    }
    let held = layer.may_not_hold.iter().filter(|word| line.contains(**word));
    wrong.extend(held.map(|word| format!("`{part}` may not hold `{}`", word.trim())));
    wrong
}

#[test]
fn layers_point_one_way() {
    let mut wrong = Vec::new();
    for (path, text) in rust("src").iter().filter(|(path, _)| !is_test(path)) {
        for layer in LAYERS.iter().filter(|layer| in_part(path, layer.part)) {
            for (n, line) in code(text) {
                wrong.extend(misuse(layer, line).iter().map(|what| format!("{}:{n}: {what}", path.display())));
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_part_has_its_layer() {
    let free = ["lib", "main", "server"];
    let parts = rust("src").into_iter().map(|(path, _)| path).filter(|path| {
        let unknown = !LAYERS.iter().any(|layer| in_part(path, layer.part));
        unknown && !free.iter().any(|part| in_part(path, part))
    });
    none(&parts.map(|path| format!("{}: no line of LAYERS covers it", path.display())).collect::<Vec<_>>());
}

#[test]
fn the_layer_check_sees_what_it_should() {
    let engine = &LAYERS[0];
    for (line, seen) in [
        ("use crate::engine::batch;", 0),
        ("use crate::clock::Clock;", 1),
        ("pub(crate) async fn f() {}", 1),
        ("let at = std::time::Instant::now();", 1),
        ("use crate::{engine, store};", 1),
        ("use crate::Config;", 0),
        ("tokio::spawn(crate::net::accept()).await;", 3),
    ] {
        assert_eq!(misuse(engine, line).len(), seen, "{line}");
    }
}

#[test]
fn no_file_is_longer_than_it_can_be_read() {
    let mut wrong = Vec::new();
    for (path, text) in rust("src").iter().filter(|(path, _)| !is_test(path)) {
        let lines = own(text).count();
        if lines > MAX_LINES {
            wrong.push(format!("{}: {lines} lines, {MAX_LINES} at most", path.display()));
        }
    }
    none(&wrong);
}

/// A file that no `mod` names is not compiled, and nobody notices.
#[test]
fn every_file_is_named_by_a_mod() {
    let mut wrong = Vec::new();
    for root in ["src", "tests/it", "tests/sim/src"] {
        let sources = rust(root).into_iter().collect::<BTreeMap<_, _>>();
        let entry = |path: &Path| {
            let name = path.file_name().unwrap();
            path.parent() == Some(Path::new(root)) && (name == "lib.rs" || name == "main.rs")
        };
        for path in sources.keys().filter(|path| !entry(path)) {
            let own = path.file_name().is_some_and(|name| name == "mod.rs");
            let named = if own { path.parent().unwrap() } else { path };
            let module = named.file_stem().unwrap().to_string_lossy().into_owned();
            let folder = named.parent().unwrap();
            let above = folder.with_extension("rs");
            let mut parents = vec![folder.join("mod.rs"), folder.join("lib.rs"), folder.join("main.rs"), above];
            parents.retain(|parent| parent != path);
            let says = |text: &String| text.lines().any(|line| line.trim().ends_with(&format!("mod {module};")));
            if !parents.iter().filter_map(|parent| sources.get(parent)).any(says) {
                wrong.push(format!("{}: no `mod {module};` names it", path.display()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn no_word_stands_that_may_not() {
    let mut wrong = Vec::new();
    for path in files(Path::new(".")) {
        // Whatever is no text is none of this test's business.
        let Ok(text) = read_to_string(&path) else { continue };
        let is_style = path.extension().is_some_and(|end| end == "css");
        for (n, line) in text.lines().enumerate() {
            for (word, why) in WORDS.iter().filter(|(word, _)| holds(line, word)) {
                wrong.push(format!("{}:{}: `{word}`: {why}", path.display(), n + 1));
            }
            if names_an_issue(line) && !is_style {
                wrong.push(format!("{}:{}: a number of a tracker: say what it says", path.display(), n + 1));
            }
        }
    }
    none(&wrong);
}

/// Whether the word stands in the line. Letters alone are looked for as a whole word; in capitals only if it is so.
fn holds(line: &str, word: &str) -> bool {
    let loud = word == word.to_uppercase();
    let line = if loud { line.to_owned() } else { line.to_lowercase() };
    let word = if loud { word.to_owned() } else { word.to_lowercase() };
    let letters = word.chars().all(char::is_alphanumeric);
    let edge = |c: Option<char>| !letters || !c.is_some_and(char::is_alphanumeric);
    line.match_indices(&word)
        .any(|(at, found)| edge(line[..at].chars().next_back()) && edge(line[at + found.len()..].chars().next()))
}

/// `#` and digits, as trackers number things. A colour has three, four, six or eight hexadecimal digits and a quote.
fn names_an_issue(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let digits = line[at + 1..].chars().take_while(char::is_ascii_digit).count();
        digits > 0 && before.is_none_or(|c| c == ' ' || c == '(')
    })
}

#[test]
fn names_say_something() {
    let mut wrong = Vec::new();
    for (path, text) in rust("src") {
        for (n, line) in code(&text) {
            let mut words =
                line.split_whitespace().skip_while(|word| !["struct", "enum", "trait", "type"].contains(word));
            let name = words.nth(1).unwrap_or_default().split(|c: char| !c.is_alphanumeric()).next().unwrap();
            if let Some(end) = EMPTY_NAMES.iter().find(|end| name.ends_with(**end)) {
                wrong.push(format!("{}:{n}: `{name}`: `{end}` says nothing", path.display()));
            }
        }
    }
    none(&wrong);
}

/// The names before a comma, a brace or a `=` in the block that begins with `opening`.
fn block<'a>(text: &'a str, opening: &str) -> Vec<&'a str> {
    let (_, rest) = text.split_once(opening).unwrap();
    let (inside, _) = rest.split_once("\n}").unwrap();
    let lines = inside.lines().map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    lines.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap()).collect()
}

#[test]
fn every_refusal_has_a_code() {
    let refusals = read_to_string("src/engine/refusal.rs").unwrap();
    let Ok(codes) = read_to_string("src/wire/codes.rs") else {
        return;
    };
    let has = |name: &str| codes.lines().any(|line| line.trim().starts_with(&format!("Refusal::{name} => ")));
    let names = block(&refusals, "pub enum Refusal {");
    assert!(names.len() > 50, "the list of refusals could not be read: {names:?}");
    let missing = names.into_iter().filter(|name| !has(name));
    none(&missing.map(|name| format!("src/wire/codes.rs: no code for {name}")).collect::<Vec<_>>());
}

/// `EndTxn` is answered in `end_txn.rs`. While `src/api/` answers nothing yet, there is nothing to miss.
#[test]
fn every_api_has_its_file() {
    let Ok(table) = read_to_string("src/wire/apis.rs") else {
        return;
    };
    let row = |line: &'_ str| {
        let (name, rest) = line.trim().split_once(" = ")?;
        let (key, _) = rest.split_once(": listed ")?;
        key.parse::<i16>().is_ok().then(|| name.to_owned())
    };
    let apis = table.lines().filter_map(row).collect::<Vec<_>>();
    assert!(apis.iter().any(|name| name == "EndTxn"), "the version table could not be read: {apis:?}");
    let there = rust("src/api").into_iter().map(|(path, _)| path.file_stem().unwrap().to_string_lossy().into_owned());
    let there = there.collect::<Vec<_>>();
    let missing = apis.iter().filter(|name| !there.contains(&file_of(name))).collect::<Vec<_>>();
    if missing.len() < apis.len() {
        none(&missing.iter().map(|name| format!("src/api/{}.rs is missing", file_of(name))).collect::<Vec<_>>());
    }
}

fn file_of(api: &str) -> String {
    if let Some((_, file)) = SHARED_FILES.iter().find(|(name, _)| *name == api) {
        return (*file).to_owned();
    }
    let mut file = String::new();
    for letter in api.chars() {
        if letter.is_uppercase() && !file.is_empty() {
            file.push('_');
        }
        file.push(letter.to_ascii_lowercase());
    }
    file
}

#[test]
fn the_word_check_sees_what_it_should() {
    for (line, word, seen) in [
        (concat!("// FIX", "ME later"), concat!("FIX", "ME"), true),
        ("an aftertaste", "after", false),
        ("let x = take().now();", ".now();", true),
        ("todo = 1", concat!("TO", "DO"), false),
        ("see a/b", "/b", true),
    ] {
        assert_eq!(holds(line, word), seen, "{line}");
    }
    for (line, seen) in [
        (concat!("see ", "#12"), true),
        (concat!("(", "#7)"), true),
        ("# 1. One", false),
        ("color: \"#123\"", false),
        ("r#1", false),
    ] {
        assert_eq!(names_an_issue(line), seen, "{line}");
    }
}

/// Tests of other people's suites that do not pass: a list that may only get shorter.
#[test]
fn what_does_not_pass_elsewhere_gets_no_more() {
    const LISTED: usize = 17;
    let text = read_to_string("conformance/clients/kgo-suite/not-passed.txt").unwrap();
    let listed = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    assert_eq!(listed, LISTED, "one that passes by now is taken off here as well; none is added");
}
