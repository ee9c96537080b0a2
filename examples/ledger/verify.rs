//! The proof: both topics against the file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rdkafka::consumer::Consumer;
use rdkafka::{Offset, TopicPartitionList};

use crate::Failure;
use crate::clients::{AUDIT, AUDIT_PARTITIONS, CHANGES, PARTITIONS, PAYMENTS, reader};
use crate::payments::{Payment, read_file};
use crate::reading::{Record, again, count_all, read_committed};

const CALL: Duration = Duration::from_secs(5);

/// Compares, prints a summary, and fails if anything differs.
pub(crate) fn verify(bootstrap: &str, file: &Path, wait_s: u32) -> Result<(), Failure> {
    let payments: BTreeMap<u64, Payment> = read_file(file)?.into_iter().map(|payment| (payment.id, payment)).collect();
    let left = wait_until_processed(bootstrap, wait_s)?;
    let (changes_of, audit_of): (Vec<i32>, Vec<i32>) = ((0..PARTITIONS).collect(), (0..AUDIT_PARTITIONS).collect());
    let changes = read_committed(bootstrap, CHANGES, &changes_of)?;
    let audit = read_committed(bootstrap, AUDIT, &audit_of)?;
    let written = count_all(bootstrap, CHANGES, &changes_of)? + count_all(bootstrap, AUDIT, &audit_of)?;

    let mut wrong = Vec::new();
    if left > 0 {
        wrong.push(format!("{left} offsets of {PAYMENTS} are not processed"));
    }
    counted_once(CHANGES, &payments, changes.iter().map(|record| (record, change(record).map(|(payment, _)| payment))))
        .into_iter()
        .chain(counted_once(AUDIT, &payments, audit.iter().map(|record| (record, Payment::parse(&record.value)))))
        .for_each(|line| wrong.push(line));
    let balances = follow(&changes, &mut wrong);
    let sums = sums(payments.values());
    if balances != sums {
        wrong.push(format!("balances differ from the file's sums: {balances:?}, not {sums:?}"));
    }
    report((payments.len(), changes.len(), audit.len(), written), &sums, &wrong)
}

fn report(
    (payments, changes, audit, written): (usize, usize, usize, usize),
    sums: &BTreeMap<String, i64>,
    wrong: &[String],
) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let total: i64 = sums.values().sum();
    writeln!(out, "payments in the file    {payments:>8}, {} accounts, {total} cents in all", sums.len())?;
    writeln!(out, "committed changes       {changes:>8}")?;
    writeln!(out, "committed audit records {audit:>8}")?;
    writeln!(
        out,
        "aborted records         {:>8}, in the log and never shown",
        written.saturating_sub(changes + audit)
    )?;
    if wrong.is_empty() {
        writeln!(out, "every payment counted exactly once")?;
        return Ok(());
    }
    wrong.iter().take(20).try_for_each(|line| writeln!(out, "WRONG: {line}"))?;
    Err(Failure::Says(format!("{} things are wrong", wrong.len())))
}

/// Each payment of the file once, as it is in the file, and none that is not there.
fn counted_once<'a>(
    topic: &str,
    payments: &BTreeMap<u64, Payment>,
    found: impl Iterator<Item = (&'a Record, Result<Payment, Failure>)>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for (record, payment) in found {
        match payment {
            Ok(payment) if payments.get(&payment.id) == Some(&payment) => *times.entry(payment.id).or_default() += 1,
            Ok(payment) => wrong.push(format!("{topic}: {payment} is not in the file")),
            Err(error) => wrong.push(format!("{topic}-{}: {error}", record.partition)),
        }
    }
    let missing = payments.keys().filter(|id| !times.contains_key(id));
    wrong.extend(missing.map(|id| format!("{topic}: payment {id} is missing")));
    let doubled = times.iter().filter(|(_, times)| **times > 1);
    wrong.extend(doubled.map(|(id, times)| format!("{topic}: payment {id} is there {times} times")));
    wrong
}

/// Each change starts from the balance that the one before it left. Gives the last balances.
fn follow(changes: &[Record], wrong: &mut Vec<String>) -> BTreeMap<String, i64> {
    let mut balances: BTreeMap<String, i64> = BTreeMap::new();
    for record in changes {
        let Ok((payment, after)) = change(record) else { continue };
        let balance = balances.entry(payment.account.clone()).or_default();
        *balance += payment.cents;
        if *balance != after {
            wrong.push(format!("{CHANGES}: after payment {payment} the balance is {after}, not {balance}"));
            *balance = after;
        }
    }
    balances
}

/// A change is a payment and the balance after it.
fn change(record: &Record) -> Result<(Payment, i64), Failure> {
    let wrong = || Failure::Says(format!("{:?} is not a change", record.value));
    let (payment, balance) = record.value.rsplit_once(',').ok_or_else(wrong)?;
    Ok((Payment::parse(payment)?, balance.parse().map_err(|_| wrong())?))
}

fn sums<'a>(payments: impl Iterator<Item = &'a Payment>) -> BTreeMap<String, i64> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for payment in payments {
        *sums.entry(payment.account.clone()).or_default() += payment.cents;
    }
    sums
}

/// How much of the payments is not processed, after waiting for that to be nothing. A marker at the end of a partition
/// is an offset without a record: a group that has read everything may stand just before it.
fn wait_until_processed(bootstrap: &str, wait_s: u32) -> Result<i64, Failure> {
    let group = reader(bootstrap, "read_committed")?;
    let mut all = TopicPartitionList::new();
    all.add_partition_range(PAYMENTS, 0, PARTITIONS - 1);
    let mut left = i64::MAX;
    for _ in 0..=wait_s {
        left = 0;
        let committed = again(|| group.committed_offsets(all.clone(), CALL));
        for place in committed.as_ref().map(TopicPartitionList::elements).unwrap_or_default() {
            let end = again(|| group.fetch_watermarks(PAYMENTS, place.partition(), CALL))?.1;
            let at = if let Offset::Offset(at) = place.offset() { at } else { 0 };
            left += (end - at - 1).max(0);
        }
        if committed.is_ok() && left == 0 {
            break;
        }
        left = left.max(1);
        if wait_s > 0 {
            sleep(Duration::from_secs(1));
        }
    }
    Ok(left)
}
