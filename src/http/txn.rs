//! `oncelog txn`: what `/v1/…` says, as a table for people.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::ask::{Answer, Request, ask};
use super::v1::{Acted, Action, Blocked, Client, Page, Problem, TopicPartition, Transaction};
use crate::config::{HostPort, Txn, TxnWish};

/// How long an abort may take: as long as the broker waits for its markers, and a little.
const PATIENCE: Duration = Duration::from_secs(25);

/// Asks the broker whose admin port is given; `operator` is told to it where something is to be done. Gives what is to be
/// printed.
///
/// # Errors
/// What went wrong, in one sentence.
pub fn run(txn: &Txn, admin: &HostPort, operator: &str) -> Result<String, String> {
    let id = |id: &str| utf8_percent_encode(id, NON_ALPHANUMERIC).to_string();
    let (path, action) = match &txn.wish {
        TxnWish::List | TxnWish::All => (format!("/v1/transactions?{}", query(txn)), None),
        TxnWish::Blocked => ("/v1/partitions/blocked".to_owned(), None),
        TxnWish::Show(name) => (format!("/v1/transactions/{}", id(name)), None),
        TxnWish::Abort(name) => (format!("/v1/transactions/{}/abort", id(name)), Some(Action::Abort)),
        TxnWish::Fence(name) => (format!("/v1/transactions/{}/fence", id(name)), Some(Action::Fence)),
    };
    let request = Request {
        method: if action.is_some() { "POST" } else { "GET" },
        path: &path,
        operator: action.map(|_| operator),
    };
    let Answer { status, body } = ask(&admin.local(), &request, PATIENCE)?;
    if !matches!(status, 200 | 202) {
        let problem = serde_json::from_str::<Problem>(&body).map(|problem| problem.error);
        return Err(problem.unwrap_or_else(|_| format!("the broker answered {status}: {}", body.trim_end())));
    }
    if txn.json {
        return Ok(body);
    }
    match (&txn.wish, action) {
        (TxnWish::List | TxnWish::All, _) => Ok(list(&read(&body)?)),
        (TxnWish::Blocked, _) => Ok(blocked(&read(&body)?)),
        (TxnWish::Show(_) | TxnWish::Abort(_) | TxnWish::Fence(_), None) => Ok(shown(&read(&body)?)),
        (TxnWish::Show(_) | TxnWish::Abort(_) | TxnWish::Fence(_), Some(_)) => {
            let acted: Acted = read(&body)?;
            Ok(format!("{}\n{}", done(&acted), shown(&acted.transaction)))
        }
    }
}

fn read<T: DeserializeOwned>(body: &str) -> Result<T, String> {
    serde_json::from_str(body).map_err(|error| format!("the broker's answer is not understood: {error}"))
}

fn done(acted: &Acted) -> &'static str {
    match (acted.action.as_str(), acted.fenced, acted.done) {
        (_, _, false) => "decided, and its producer is fenced; its markers are still to be written",
        ("abort", true, true) => "aborted, and its producer is fenced",
        ("abort", false, true) => "aborted, as its producer wanted it itself: it is not fenced",
        (_, _, true) => "its producer is fenced",
    }
}

fn query(txn: &Txn) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut query: Vec<String> = txn.states.iter().map(|state| format!("state={}", encoded(state))).collect();
    query.extend(txn.prefix.iter().map(|prefix| format!("prefix={}", encoded(prefix))));
    let longer = txn.longer_than.map(|longer| format!("open_longer_than_ms={}", longer.as_millis()));
    query.extend(longer);
    query.join("&")
}

fn list(page: &Page<Transaction>) -> String {
    let head = ["TRANSACTIONAL ID", "STATE", "OPEN", "LEFT", "PRODUCER", "PARTITIONS", "CLIENT"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(page.items.iter().map(|txn| {
        vec![
            clean(&txn.transactional_id),
            txn.state.clone(),
            time(txn.age_ms),
            time(txn.time_left_ms),
            producer(txn.producer_id, txn.producer_epoch),
            txn.partitions.len().to_string(),
            client(txn.client.as_ref()),
        ]
    }));
    table(&rows) + &more(page)
}

fn blocked(page: &Page<Blocked>) -> String {
    if page.total == 0 {
        return "no partition holds read_committed readers back\n".to_owned();
    }
    let head = ["PARTITION", "RECORDS HELD", "FOR", "TRANSACTIONAL ID", "STATE", "PRODUCER", "LEFT", "CLIENT"]
        .map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(page.items.iter().map(|part| {
        let mut row = vec![place(&part.place), part.held_records.to_string(), time(Some(part.held_ms))];
        match &part.holder {
            Some(holder) => row.extend([
                holder.transactional_id.as_deref().map_or_else(|| "(unknown: it hangs)".to_owned(), clean),
                holder.state.clone().unwrap_or_else(|| "-".to_owned()),
                producer(holder.producer_id, holder.producer_epoch),
                time(holder.time_left_ms),
                client(holder.client.as_ref()),
            ]),
            None => row.extend(["(just ended)", "-", "-", "-", "-"].map(str::to_owned)),
        }
        row
    }));
    table(&rows) + &more(page)
}

fn shown(txn: &Transaction) -> String {
    let parts: Vec<String> = txn.partitions.iter().map(place).collect();
    let rows = [
        ("transactional id", clean(&txn.transactional_id)),
        ("state", txn.state.clone()),
        ("producer", producer(txn.producer_id, txn.producer_epoch)),
        ("client", client(txn.client.as_ref())),
        ("open", time(txn.age_ms)),
        ("timeout", time(Some(i64::from(txn.timeout_ms)))),
        ("left", time(txn.time_left_ms)),
        ("partitions", parts.join(" ")),
        ("groups", txn.groups.iter().map(|group| clean(group)).collect::<Vec<_>>().join(" ")),
    ];
    table(&rows.map(|(name, value)| vec![name.to_owned(), value]))
}

fn more<T>(page: &Page<T>) -> String {
    let shown = page.items.len();
    if page.total > shown { format!("and {} more\n", page.total.saturating_sub(shown)) } else { String::new() }
}

/// An id may be any text: nothing in it may act on a terminal.
fn clean(text: &str) -> String {
    text.escape_debug().to_string()
}

fn place(place: &TopicPartition) -> String {
    format!("{}-{}", clean(&place.topic), place.partition)
}

fn producer(id: i64, epoch: i16) -> String {
    format!("{id}/{epoch}")
}

fn client(client: Option<&Client>) -> String {
    client.map_or_else(
        || "-".to_owned(),
        |client| format!("{} {}", client.client_id.as_deref().map(clean).unwrap_or_default(), client.address),
    )
}

fn time(ms: Option<i64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(ms @ ..1_000) => format!("{ms} ms"),
        Some(ms @ ..60_000) => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        Some(ms @ ..3_600_000) => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        Some(ms) => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Characters of a cell that are shown.
const CELL_CHARS: usize = 120;

fn cut(cell: &str) -> String {
    if cell.chars().count() <= CELL_CHARS {
        return cell.to_owned();
    }
    cell.chars().take(CELL_CHARS).chain(['…']).collect()
}

/// Columns under one another. The last one is as long as it is; the others are cut, for anybody chooses how long an id is.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let last = columns.saturating_sub(1);
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cut(cell).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..last).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell = cut(cell);
            let missing = width.saturating_sub(cell.chars().count()).saturating_add(2);
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', missing));
        }
        line.push_str(row.get(last).map_or("", String::as_str));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let cases = [
            (None, "-"),
            (Some(7), "7 ms"),
            (Some(41_230), "41.2 s"),
            (Some(61_000), "1 min 1 s"),
            (Some(3_661_000), "1 h 1 min"),
        ];
        for (ms, text) in cases {
            assert_eq!(time(ms), text);
        }
    }

    #[test]
    fn a_table_stands_in_columns_and_ids_do_nothing_to_a_terminal() {
        let rows = [vec!["A".to_owned(), "B".to_owned()], vec![clean("x\u{1b}[31m"), "2".to_owned()]];
        assert_eq!(table(&rows), "A            B\nx\\u{1b}[31m  2\n");
        let long = [vec!["x".repeat(100_000), "y".repeat(100_000)]];
        assert_eq!(table(&long).chars().count(), CELL_CHARS + 1 + 2 + 100_000 + 1);
    }
}
