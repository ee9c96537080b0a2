//! Plays a script against a broker and writes down what is said.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::codec::{Bytes, Form, complete, hex, unhex};
use crate::connection::{Answer, Connection};
use crate::normal::{Names, shown};
use crate::schema::Schema;
use crate::script::{Act, Ask, Owes, Script, Step};
use crate::tree::Tree;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is asked again for what must come about.
const RETRIES: Duration = Duration::from_secs(30);
/// The pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(10);
/// What a broker that has just started says to anything, and one whose partition has just been made.
const LOADING: [i64; 4] = [6, 14, 15, 16];

/// One request, and what was said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) step: String,
    pub(crate) rules: Vec<String>,
    pub(crate) connection: String,
    pub(crate) call: String,
    pub(crate) request: Tree,
    pub(crate) response: Tree,
    /// Paths in the response that hold a name in place of a value.
    pub(crate) normalised: Vec<String>,
}

impl Exchange {
    pub(crate) fn tree(&self) -> Tree {
        let texts = |list: &[String]| Tree::List(list.iter().map(|text| Tree::text(text)).collect());
        let fields = [
            ("step", Tree::text(&self.step)),
            ("rules", texts(&self.rules)),
            ("connection", Tree::text(&self.connection)),
            ("api", Tree::text(&self.call)),
            ("request", self.request.clone()),
            ("response", self.response.clone()),
            ("normalised", texts(&self.normalised)),
        ];
        Tree::Fields(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(crate) fn from_tree(tree: &Tree) -> Option<Self> {
        let text = |name: &str| tree.get(name)?.as_text().map(str::to_owned);
        let texts = |name: &str| {
            let list = tree.get(name)?.as_list()?;
            list.iter().map(|item| item.as_text().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        Some(Self {
            step: text("step")?,
            rules: texts("rules")?,
            connection: text("connection")?,
            call: text("api")?,
            request: tree.get("request")?.clone(),
            response: tree.get("response")?.clone(),
            normalised: texts("normalised")?,
        })
    }
}

/// Keeps markers from the partitions while it is told to.
pub(crate) trait Gate: Sync {
    fn hold(&self);
    fn release(&self);
}

pub(crate) struct Player<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) address: SocketAddr,
    pub(crate) gate: Option<&'a dyn Gate>,
    pub(crate) names: Names,
    pub(crate) connections: BTreeMap<String, Connection>,
    pub(crate) sent: BTreeMap<String, (Ask, i32)>,
    pub(crate) next_id: i32,
}

impl Player<'_> {
    /// The whole script, or which step could not be played and why.
    pub(crate) fn play(&mut self, script: &Script) -> Result<Vec<Exchange>, String> {
        let mut exchanges = Vec::new();
        for step in &script.steps {
            let played = self.step(step);
            match played {
                Ok(exchange) => exchanges.extend(exchange),
                Err(why) => {
                    let kept = shown(&self.names);
                    return Err(format!("{}, step `{}`: {why}\n    kept: {kept:?}", script.name, step.title));
                }
            }
        }
        Ok(exchanges)
    }

    fn step(&mut self, step: &Step) -> Result<Option<Exchange>, String> {
        match &step.act {
            Act::Hold => self.gate.ok_or("markers cannot be held back here")?.hold(),
            Act::Release => self.gate.ok_or("markers cannot be held back here")?.release(),
            Act::Send(name, ask) => {
                let id = self.send(ask)?;
                self.sent.insert(name.clone(), (ask.clone(), id));
            }
            Act::Await(name) => {
                let (ask, id) = self.sent.remove(name).ok_or_else(|| format!("nothing was sent as `{name}`"))?;
                let answer = self.receive(&ask, id)?;
                return self.exchange(step, &ask, answer).map(Some);
            }
            Act::Ask(ask) => {
                let answer = self.ask(ask)?;
                return self.exchange(step, ask, answer).map(Some);
            }
        }
        Ok(None)
    }

    /// Asks until the answer counts.
    fn ask(&mut self, ask: &Ask) -> Result<Tree, String> {
        let began = now();
        loop {
            let id = self.send(ask)?;
            if ask.owes == Owes::Nothing {
                return Ok(Tree::text("none is owed"));
            }
            let answer = self.receive(ask, id)?;
            let again = codes(&answer).iter().any(|code| LOADING.contains(code) || ask.retry.contains(code));
            let pending = ask.until.iter().find(|(path, wanted, positive)| {
                let wanted =
                    self.names.resolve(&Tree::text(wanted)).map_or_else(|_| wanted.clone(), |value| bare(&value));
                answer.at(path).is_some_and(|found| bare(found) == wanted) != *positive
            });
            if !again && pending.is_none() {
                return Ok(answer);
            }
            if began.elapsed() > RETRIES {
                return Err(format!("still {}", answer.compact()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn send(&mut self, ask: &Ask) -> Result<i32, String> {
        self.next_id += 1;
        let id = self.next_id;
        let frame = self.frame(ask, id)?;
        if !self.connections.contains_key(&ask.connection) {
            let opened = Connection::open(self.address).map_err(|error| error.to_string())?;
            self.connections.insert(ask.connection.clone(), opened);
        }
        let connection = self.connections.get_mut(&ask.connection).ok_or("no connection")?;
        if !connection.send(&frame) {
            self.connections.remove(&ask.connection);
            return Err("the connection was closed before".to_owned());
        }
        Ok(id)
    }

    fn frame(&self, ask: &Ask, id: i32) -> Result<Vec<u8>, String> {
        let body = self.names.resolve(ask.body.as_ref().ok_or("no body")?)?;
        let mut bytes = Vec::new();
        if ask.api == "Frame" {
            let int = |name: &str, default: i64| body.get(name).and_then(Tree::as_int).unwrap_or(default);
            let flexible = int("header", 1) > 1;
            put_header((int("key", 0), int("version", 0)), id, flexible, &mut bytes);
            let digits = body.get("body").and_then(Tree::as_text).unwrap_or_default();
            bytes.extend(unhex(digits).map_err(|wrong| wrong.to_string())?);
        } else {
            let api = self.schema.api(&ask.api).map_err(|wrong| wrong.to_string())?;
            let flexible = api.is_flexible(ask.version);
            put_header((api.key.into(), ask.version.into()), id, flexible, &mut bytes);
            let whole = complete(&api.request, ask.version, &body).map_err(|wrong| wrong.to_string())?;
            let form = Form { version: ask.version, flexible, now_ms: self.names.started_ms };
            form.encode(&api.request, &whole, &mut bytes).map_err(|wrong| wrong.to_string())?;
        }
        bytes.truncate(bytes.len() - ask.cut);
        bytes.extend(unhex(&ask.add).map_err(|wrong| wrong.to_string())?);
        let size = body.get("size").and_then(Tree::as_int).and_then(|size| i32::try_from(size).ok());
        let size = size.unwrap_or(i32::try_from(bytes.len()).map_err(|error| error.to_string())?);
        Ok([&size.to_be_bytes(), bytes.as_slice()].concat())
    }

    fn receive(&mut self, ask: &Ask, id: i32) -> Result<Tree, String> {
        let connection = self.connections.get_mut(&ask.connection).ok_or("the connection was closed before")?;
        let patience = ask.patience.map_or(PATIENCE, Duration::from_millis);
        let frame = match connection.receive(id, patience).map_err(|error| error.to_string())? {
            Answer::Frame(frame) => frame,
            Answer::Closed => {
                self.connections.remove(&ask.connection);
                return Ok(Tree::text("closed"));
            }
            Answer::Silent if ask.patience.is_some() => {
                self.connections.remove(&ask.connection);
                return Ok(Tree::text("silent"));
            }
            Answer::Silent => return Err(format!("no answer within {patience:?}")),
        };
        if ask.api == "Frame" {
            return Ok(Tree::Text(hex(&frame)));
        }
        let api = self.schema.api(&ask.api).map_err(|wrong| wrong.to_string())?;
        let version = ask.read_as.unwrap_or(ask.version);
        let mut bytes = Bytes(&frame);
        let unreadable = |wrong| format!("{wrong} in the answer {}", hex(&frame));
        if api.has_response_tags(version) {
            bytes.take(1).map_err(unreadable)?;
        }
        let form = Form { version, flexible: api.is_flexible(version), now_ms: 0 };
        let answer = form.decode(&api.response, &mut bytes).map_err(unreadable)?;
        if bytes.0.is_empty() { Ok(answer) } else { Err(format!("{} bytes behind the answer", bytes.0.len())) }
    }

    fn exchange(&mut self, step: &Step, ask: &Ask, mut answer: Tree) -> Result<Exchange, String> {
        for (name, path) in &ask.keep {
            let value = answer.at(path).ok_or_else(|| format!("no {path} in {}", answer.compact()))?;
            self.names.keep(name, path, value.clone());
        }
        for path in &ask.ignore {
            answer.remove(path);
        }
        let (response, normalised) = self.names.normal(&answer, ask.mine);
        let body = ask.body.as_ref().ok_or("no body")?;
        let request = match self.schema.api(&ask.api) {
            Ok(api) => complete(&api.request, ask.version, body).map_err(|wrong| wrong.to_string())?,
            Err(_) => body.clone(),
        };
        Ok(Exchange {
            step: step.title.clone(),
            rules: step.rules.clone(),
            connection: ask.connection.clone(),
            call: format!("{} {}", ask.api, ask.version),
            request,
            response,
            normalised,
        })
    }
}

fn put_header((key, version): (i64, i64), id: i32, flexible: bool, out: &mut Vec<u8>) {
    out.extend(&key.to_be_bytes()[6..]);
    out.extend(&version.to_be_bytes()[6..]);
    out.extend(id.to_be_bytes());
    out.extend([0, 6]);
    out.extend(b"script");
    if flexible {
        out.push(0);
    }
}

fn bare(value: &Tree) -> String {
    value.as_text().map_or_else(|| value.compact(), str::to_owned)
}

/// Every error code in an answer.
fn codes(tree: &Tree) -> Vec<i64> {
    match tree {
        Tree::List(list) => list.iter().flat_map(codes).collect(),
        Tree::Fields(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value {
                Tree::Int(code) if name == "ErrorCode" => vec![*code],
                other => codes(other),
            })
            .collect(),
        Tree::Null | Tree::Bool(_) | Tree::Int(_) | Tree::Text(_) => Vec::new(),
    }
}

#[expect(clippy::disallowed_methods, reason = "what never comes about must be given up")]
fn now() -> Instant {
    Instant::now()
}
