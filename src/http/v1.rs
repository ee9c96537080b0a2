//! `/v1/…`: what operators and their tools ask, as JSON.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::answer;
use crate::engine::ledger::show::Shown;

/// Items on a page, unless it is said.
const LIMIT: usize = 1_000;
/// Most items on a page.
const LIMIT_MOST: usize = 10_000;

/// Some of what there is, and how much that is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Page<T> {
    /// How many there are.
    pub total: usize,
    /// The first of them.
    pub items: Vec<T>,
}

/// A transactional id, and its transaction.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transaction {
    /// The id.
    pub transactional_id: String,
    /// Kafka's name of the state (T-811).
    pub state: String,
    /// Its owner's producer id.
    pub producer_id: i64,
    /// Its owner's epoch.
    pub producer_epoch: i16,
    /// Who last spoke for it since the start; `null` if nobody has.
    pub client: Option<Client>,
    /// Start of the transaction, wall clock; `null` if none was begun.
    pub started_unix_ms: Option<i64>,
    /// How long it has been open; `null` if it is not.
    pub age_ms: Option<i64>,
    /// The producer's `transaction.timeout.ms`.
    pub timeout_ms: i32,
    /// Until it is aborted by the broker; `null` if it is not open. Counted anew after a restart.
    pub time_left_ms: Option<i64>,
    /// Its partitions: all while it is open; those that lack their marker afterwards.
    pub partitions: Vec<TopicPartition>,
    /// Groups whose offsets it carries.
    pub groups: Vec<String>,
}

/// A partition by its name.
#[derive(Debug, Serialize, Deserialize)]
pub struct TopicPartition {
    /// Its topic.
    pub topic: String,
    /// Its index.
    pub partition: i32,
}

/// A client as it was last met.
#[derive(Debug, Serialize, Deserialize)]
pub struct Client {
    /// Its name for itself.
    pub client_id: Option<String>,
    /// Its address.
    pub address: String,
    /// When it last took the id, or put a partition or a group into its transaction.
    pub last_joined_unix_ms: i64,
}

/// A partition whose read_committed readers are held back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Blocked {
    /// Which.
    #[serde(flatten)]
    pub place: TopicPartition,
    /// What readers have reached, at most.
    pub last_stable_offset: i64,
    /// What they could have.
    pub watermark: i64,
    /// Offsets between the two.
    pub held_records: i64,
    /// Since when, in milliseconds.
    pub held_ms: i64,
    /// Who holds them back; `null` if it has just ended.
    pub holder: Option<Holder>,
}

/// Who holds readers back.
#[derive(Debug, Serialize, Deserialize)]
pub struct Holder {
    /// `null` if the coordinator knows of none: the transaction hangs (KIP-664).
    pub transactional_id: Option<String>,
    /// Its state there.
    pub state: Option<String>,
    /// Its producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Who last spoke for it.
    pub client: Option<Client>,
    /// Start of the transaction, wall clock; of one that hangs, its first batch here, or the start that found it.
    pub started_unix_ms: i64,
    /// How long ago that is.
    pub age_ms: i64,
    /// Its timeout.
    pub timeout_ms: Option<i32>,
    /// What is left of it.
    pub time_left_ms: Option<i64>,
}

/// A door, and what is said behind it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListenerShown {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub bind: String,
    /// What clients are told to connect to.
    pub advertised: String,
}

/// Which transactions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Those in these states; all if it is empty.
    pub states: Vec<Shown>,
    /// Those whose id begins with it.
    pub prefix: String,
    /// Those open for longer.
    pub open_longer_than_ms: Option<i64>,
    /// So many.
    pub limit: usize,
}

/// What an operator wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the open transaction, and fence its producer.
    Abort,
    /// Fence the owner, whether something is open or not.
    Fence,
}

/// Who wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// As the request says.
    pub operator: String,
    /// Where it came from.
    pub address: String,
}

/// It is done.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "two facts that a script asks for")]
pub struct Acted {
    /// What.
    pub action: String,
    /// Whether the producer that held the id is fenced: not by an abort that was its own.
    pub fenced: bool,
    /// Whether all of it is; if not it is decided, and its markers are still to be written.
    pub done: bool,
    /// How the id stands now.
    pub transaction: Transaction,
}

/// It is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotActed {
    /// There is no such id.
    Unknown,
    /// Not as things stand.
    Conflict(String),
    /// Not now.
    Unavailable(String),
}

/// An error in words.
#[derive(Debug, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong, and what to do.
    pub error: String,
}

impl Action {
    /// As it is written in a path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Fence => "fence",
        }
    }
}

impl Filter {
    /// Reads a query.
    ///
    /// # Errors
    /// What is not understood: a filter that is not applied would show what was not asked for.
    pub fn of(query: &str) -> Result<Self, String> {
        let mut filter = Self { states: Vec::new(), prefix: String::new(), open_longer_than_ms: None, limit: LIMIT };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(&value.replace('+', " "))?;
            let number = || value.parse::<i64>().map_err(|_| format!("{name}={value} is not a number"));
            match name {
                "state" => filter.states.push(state(&value)?),
                "prefix" => filter.prefix = value,
                "open_longer_than_ms" => filter.open_longer_than_ms = Some(number()?),
                "limit" => filter.limit = usize::try_from(number()?).unwrap_or(0).min(LIMIT_MOST),
                _ => return Err(format!("{name} is not a filter: state, prefix, open_longer_than_ms and limit are")),
            }
        }
        Ok(filter)
    }
}

fn state(written: &str) -> Result<Shown, String> {
    let same = Shown::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(written));
    same.ok_or_else(|| format!("{written} is not a state: {} are", Shown::ALL.map(Shown::name).join(", ")))
}

/// What a piece of an address stands for.
///
/// # Errors
/// It is not text.
pub fn decoded(piece: &str) -> Result<String, String> {
    let text = percent_decode_str(piece).decode_utf8().map_err(|_| format!("{piece} is not UTF-8"))?;
    Ok(text.into_owned())
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_vec_pretty(body) {
        Ok(mut text) => {
            text.push(b'\n');
            answer(status, "application/json", text)
        }
        Err(error) => super::text(StatusCode::INTERNAL_SERVER_ERROR, &format!("cannot be shown: {error}\n")),
    }
}

pub(super) fn problem(status: StatusCode, error: impl Into<String>) -> Response<Full<Bytes>> {
    json(status, &Problem { error: error.into() })
}

pub(super) fn acted(result: Result<Acted, NotActed>) -> Response<Full<Bytes>> {
    match result {
        Ok(acted) => json(if acted.done { StatusCode::OK } else { StatusCode::ACCEPTED }, &acted),
        Err(why) => not_acted(why),
    }
}

pub(super) fn not_acted(why: NotActed) -> Response<Full<Bytes>> {
    match why {
        NotActed::Unknown => problem(StatusCode::NOT_FOUND, "there is no such transactional id"),
        NotActed::Conflict(why) => problem(StatusCode::CONFLICT, why),
        NotActed::Unavailable(why) => problem(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}
