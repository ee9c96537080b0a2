//! The doctor's report: a line for each thing looked at, under the heading it belongs to.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use super::Unwell;

/// What was written so far, and what was found wrong.
pub(super) struct Report<'a> {
    out: &'a mut (dyn Write + Send),
    written: io::Result<()>,
    heading: String,
    wrong: Vec<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, written: Ok(()), heading: String::new(), wrong: Vec::new() }
    }

    pub(super) fn heading(&mut self, heading: String) {
        self.line(&heading);
        self.heading = heading;
    }

    pub(super) fn ok(&mut self, what: impl Display) {
        self.line(&format!("  ok    {what}"));
    }

    /// Something that is worth knowing and not wrong.
    pub(super) fn note(&mut self, what: impl Display) {
        self.line(&format!("  note  {what}"));
    }

    /// Something that is wrong: shortly, under its heading, and in a sentence that stands alone and says what to do.
    pub(super) fn wrong(&mut self, what: impl Display, sentence: String) {
        self.line(&format!("  FAIL  {what}"));
        self.wrong.push(sentence);
    }

    pub(super) fn late(&mut self, limit: Duration) {
        let limit = limit.as_secs();
        let sentence = format!("not done within {limit} s (--timeout-s); it was at: {}", self.heading);
        self.wrong(format!("not done within {limit} s"), sentence);
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// The end of the report, and the first thing that is wrong; the others are written here.
    pub(super) fn verdict(mut self) -> Result<(), Unwell> {
        let mut wrong = std::mem::take(&mut self.wrong).into_iter();
        let first = wrong.next();
        for sentence in wrong {
            self.line(&sentence);
        }
        if first.is_none() {
            self.line("everything answers");
        }
        self.written?;
        first.map_or(Ok(()), |sentence| Err(Unwell::Found(sentence)))
    }

    fn line(&mut self, line: &str) {
        if self.written.is_ok() {
            self.written = writeln!(self.out, "{line}");
        }
    }
}
