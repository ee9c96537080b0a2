//! What is done with all scripts together.

use std::collections::BTreeMap;
use std::fs::{File, read_dir, read_to_string};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::broker::{Inside, Process};
use crate::compare::{Reason, differences};
use crate::coverage;
use crate::normal::Names;
use crate::play::{Exchange, Gate, Player};
use crate::proxy::MarkerGate;
use crate::schema::Schema;
use crate::script::Script;
use crate::tree::{Tree, parse};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance");

/// Asked before anything is: a new Kafka makes its internal topics when somebody looks for a coordinator.
const WARM_UP: &str = "FindCoordinator/3 {Key: warm-up, KeyType: 1}
FindCoordinator/3 {Key: warm-up, KeyType: 0}
InitProducerId/4 {TransactionalId: warm-up, TransactionTimeoutMs: 60000} retry 51
OffsetFetch/7 {GroupId: warm-up, Topics: null}";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    #[default]
    Replay,
    Record,
    Coverage,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    /// Nothing is written: what would be must be there.
    pub(crate) check: bool,
    pub(crate) bootstrap: Option<SocketAddr>,
    pub(crate) broker: Option<PathBuf>,
    /// What a recording says it was taken from.
    pub(crate) source: String,
    /// Where a Kafka broker reaches itself, and where it really listens.
    pub(crate) hold: Option<(SocketAddr, SocketAddr)>,
    pub(crate) jobs: usize,
    pub(crate) names: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            task: Task::default(),
            check: false,
            bootstrap: None,
            broker: None,
            source: "Apache Kafka".to_owned(),
            hold: None,
            jobs: 4,
            names: Vec::new(),
        }
    }
}

/// Whether all is as it should be.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    let scripts = scripts(options)?;
    if options.task == Task::Coverage {
        return coverage(&scripts, options.check);
    }
    let played = play(options, &scripts)?;
    match options.task {
        Task::Record => record(&scripts, &played, &options.source),
        Task::Replay | Task::Coverage => compare(options, &scripts, &played),
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The scripts that were asked for, or all.
fn scripts(options: &Options) -> Result<Vec<Script>, String> {
    let dir = Path::new(HERE).join("scripts");
    let mut paths: Vec<PathBuf> =
        read_dir(&dir).map_err(|error| error.to_string())?.flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "script"));
    paths.sort();
    let common = text_of(&dir.join("common.txt"))?;
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if options.names.is_empty() || options.names.contains(&name) {
            let script = Script::parse(&name, &common, &text_of(&path)?);
            found.push(script.map_err(|wrong| format!("{name}: {wrong}"))?);
        }
    }
    if let Some(name) = options.names.iter().find(|name| !found.iter().any(|script| script.name == **name)) {
        return Err(format!("there is no script `{name}`"));
    }
    Ok(found)
}

type Played = BTreeMap<String, Result<Vec<Exchange>, String>>;

/// Plays each script, several at a time. One that holds markers back runs alone where it must, or not at all.
fn play(options: &Options, scripts: &[Script]) -> Result<Played, String> {
    let schema = Schema::built_in().map_err(|wrong| wrong.to_string())?;
    let failed = |error: std::io::Error| error.to_string();
    let process = match &options.broker {
        Some(program) if options.bootstrap.is_none() => Some(Process::start(program).map_err(failed)?),
        _ => None,
    };
    let address = options.bootstrap.or(process.as_ref().map(|process| process.address));
    let address = address.ok_or("--bootstrap or --broker is wanted")?;
    let warm_up = Script::parse("warm-up", "", WARM_UP).map_err(|wrong| wrong.to_string())?;
    player(&schema, address, None, "warm-up").play(&warm_up)?;
    let gate = options.hold.map(|(from, to)| MarkerGate::between(from, to)).transpose().map_err(failed)?;
    let (holding, plain): (Vec<&Script>, Vec<&Script>) = scripts.iter().partition(|script| script.holds());
    let played = Mutex::new(BTreeMap::new());
    let rest = Mutex::new(plain.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                let next = || rest.lock().next();
                while let Some(script) = next() {
                    let exchanges = player(&schema, address, None, &script.name).play(script);
                    played.lock().insert(script.name.clone(), exchanges);
                }
            });
        }
    });
    let mut played = played.into_inner();
    for script in holding {
        let exchanges = match (&gate, &process) {
            (Some(gate), _) => player(&schema, address, Some(gate), &script.name).play(script),
            (None, Some(_)) => {
                let inside = Inside::start().map_err(failed)?;
                player(&schema, inside.address, Some(&inside), &script.name).play(script)
            }
            (None, None) => {
                println!("skipped {}: markers cannot be held back in a broker that is not ours", script.name);
                continue;
            }
        };
        played.insert(script.name.clone(), exchanges);
    }
    Ok(played)
}

fn player<'a>(schema: &'a Schema, address: SocketAddr, gate: Option<&'a dyn Gate>, script: &str) -> Player<'a> {
    let started_ms = now_ms();
    let own = script.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let suffix = format!("-{:06x}{:04x}", (started_ms / 100) & 0xff_ffff, own & 0xffff);
    Player {
        schema,
        address,
        gate,
        names: Names::new(suffix, started_ms),
        connections: BTreeMap::new(),
        sent: BTreeMap::new(),
        next_id: 0,
    }
}

#[expect(clippy::disallowed_methods, reason = "times near now are left out of recordings")]
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn recording(name: &str) -> PathBuf {
    Path::new(HERE).join("recordings").join(format!("{name}.json"))
}

fn record(scripts: &[Script], played: &Played, source: &str) -> Result<bool, String> {
    let mut good = true;
    let mut count = 0;
    for script in scripts {
        match played.get(&script.name) {
            Some(Ok(exchanges)) => {
                count += exchanges.len();
                let fields = [
                    ("script", Tree::text(&script.name)),
                    ("about", Tree::text(&script.about)),
                    ("recorded from", Tree::text(source)),
                    ("exchanges", Tree::List(exchanges.iter().map(Exchange::tree).collect())),
                ];
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                write(&recording(&script.name), &Tree::Fields(fields).pretty())?;
            }
            Some(Err(wrong)) => {
                println!("NOT RECORDED {wrong}");
                good = false;
            }
            None => {}
        }
    }
    println!("recorded {} scripts, {count} exchanges", played.len());
    Ok(good)
}

fn recorded(name: &str) -> Result<Vec<Exchange>, String> {
    let path = recording(name);
    let tree = parse(&text_of(&path)?).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
    let list = tree.get("exchanges").and_then(Tree::as_list).unwrap_or_default();
    let exchanges = list.iter().map(Exchange::from_tree).collect::<Option<Vec<_>>>();
    exchanges.ok_or_else(|| format!("{}: not a recording", path.display()))
}

fn reasons(options: &Options) -> Result<Vec<Reason>, String> {
    // Against Kafka itself nothing may be different.
    if options.check {
        return Ok(Vec::new());
    }
    let path = Path::new(HERE).join("reasons.json");
    let tree = parse(&text_of(&path)?).map_err(|wrong| wrong.to_string())?;
    Reason::all(&tree).map_err(|wrong| wrong.to_string())
}

fn compare(options: &Options, scripts: &[Script], played: &Played) -> Result<bool, String> {
    let reasons = reasons(options)?;
    let mut used = vec![false; reasons.len()];
    let (mut exchanges, mut same, mut reasoned, mut different) = (0, 0, 0, 0);
    for script in scripts.iter().filter(|script| played.contains_key(&script.name)) {
        let found = match played[&script.name].as_ref() {
            Ok(played) => recorded(&script.name).and_then(|theirs| {
                exchanges += theirs.len();
                differences(&script.name, &theirs, played)
            }),
            Err(wrong) => Err(wrong.clone()),
        };
        let found = match found {
            Ok(found) => found,
            Err(wrong) => {
                println!("FAILED {wrong}");
                different += 1;
                continue;
            }
        };
        let mut steps: BTreeMap<&str, bool> = BTreeMap::new();
        for difference in &found {
            let reason = reasons.iter().position(|reason| reason.explains(difference));
            if let Some(reason) = reason {
                used[reason] = true;
            } else {
                println!(
                    "DIFFERENT {}, step `{}`, {}: recorded {}, here {}",
                    difference.script, difference.step, difference.field, difference.theirs, difference.ours
                );
            }
            *steps.entry(&difference.step).or_insert(true) &= reason.is_some();
        }
        let unreasoned = steps.values().filter(|is_reasoned| !**is_reasoned).count();
        reasoned += steps.len() - unreasoned;
        different += unreasoned;
        same += played[&script.name].as_ref().map_or(0, Vec::len) - steps.len();
    }
    if options.names.is_empty() {
        for (reason, _) in reasons.iter().zip(&used).filter(|(_, used)| !**used) {
            println!("NOT SO ANY MORE {reason}");
            different += 1;
        }
    }
    let count = played.len();
    println!("scripts {count} exchanges {exchanges} same {same} reasoned {reasoned} different {different}");
    Ok(different == 0)
}

fn coverage(scripts: &[Script], check: bool) -> Result<bool, String> {
    let left_out = text_of(&Path::new(HERE).join("scripts/left-out.txt"))?;
    let page = coverage::page(scripts, &left_out);
    let path = Path::new(HERE).join("COVERAGE.md");
    if !check {
        write(&path, &page)?;
        return Ok(true);
    }
    let is_current = text_of(&path)? == page;
    if !is_current {
        println!("COVERAGE.md is not what the scripts say: conformance/replay --coverage writes it");
    }
    Ok(is_current)
}
