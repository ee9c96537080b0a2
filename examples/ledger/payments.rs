//! Payments: as lines of a file, and as records.

use std::fmt;
use std::fs::{File, read_to_string};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Failure;

/// Money that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payment {
    /// Its number; no two payments share one.
    pub(crate) id: u64,
    /// Whose balance it changes.
    pub(crate) account: String,
    /// By how much, in cents; negative for money that leaves.
    pub(crate) cents: i64,
}

impl fmt::Display for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.id, self.account, self.cents)
    }
}

impl Payment {
    /// Reads `id,account,cents`.
    pub(crate) fn parse(line: &str) -> Result<Self, Failure> {
        let mut fields = line.split(',');
        let read = |(id, account, cents): (&str, &str, &str)| {
            let (id, cents) = (id.parse::<u64>().ok()?, cents.parse::<i64>().ok()?);
            Some(Self { id, account: account.to_owned(), cents })
        };
        match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (Some(id), Some(account), Some(cents), None) => read((id, account, cents)),
            _ => None,
        }
        .ok_or_else(|| Failure::Says(format!("{line:?} is not a payment: id,account,cents")))
    }
}

/// Every payment of a file; its first line names the columns.
pub(crate) fn read_file(file: &Path) -> Result<Vec<Payment>, Failure> {
    let text = read_to_string(file).map_err(|error| Failure::Says(format!("{}: {error}", file.display())))?;
    text.lines().skip(1).map(Payment::parse).collect()
}

/// Writes a file of payments that look like chance and are the same every time.
pub(crate) fn make_file(file: &Path, payments: u32) -> Result<(), Failure> {
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "payment,account,cents")?;
    let mut chance: u64 = 0x1ed9_e12b_0a1a_2ce5;
    let mut draw = |below: u64| {
        // xorshift64: enough to look uneven.
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    for id in 1..=u64::from(payments) {
        let account = format!("account-{:02}", draw(40));
        let cents = i64::try_from(draw(150_000)).unwrap_or(0) - 50_000;
        writeln!(out, "{}", Payment { id, account, cents })?;
    }
    Ok(out.flush()?)
}
