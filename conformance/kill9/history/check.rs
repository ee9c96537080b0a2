//! What must hold when nobody is at work and everything has been read.

use std::collections::BTreeMap;

use super::{Ack, Attempt, History, Kind, Part, Told, Topic, Value, View, What};

/// Where everything stands at rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rest {
    /// Last stable offset and watermark of each partition.
    pub(crate) ends: Vec<(Part, i64, i64)>,
    /// Transactional ids that are not at rest, and their states.
    pub(crate) open: Vec<String>,
    /// The group of the processors, and where it stands in each partition.
    pub(crate) processors: (String, BTreeMap<i32, i64>),
    /// Where clients stand that stage an offset of a group of their own name.
    pub(crate) own: BTreeMap<String, i64>,
}

impl History {
    /// Everything since the last check, at rest: each partition has been read in both views by [`History::read`], and
    /// the consumers have had time to come as far.
    pub(crate) fn check(&mut self, rest: &Rest) {
        for (part, stable, watermark) in &rest.ends {
            if stable != watermark {
                self.wrong(What::Stuck, None, format!("{part}: last stable offset {stable}, watermark {watermark}"));
            }
        }
        for open in &rest.open {
            self.wrong(What::Stuck, None, format!("not at rest: {open}"));
        }
        for number in self.checked..self.attempts.len() {
            self.check_attempt(number);
        }
        self.check_marks(&rest.own);
        self.check_processed(&rest.processors.1);
        self.check_consumers();
        self.checked = self.attempts.len();
    }

    fn check_attempt(&mut self, number: usize) {
        let attempt = self.attempts[number].clone();
        let mut shown = 0;
        for (n, write) in attempt.writes.iter().enumerate() {
            let value = Value { attempt: number, n };
            let place = self.places.get(&value).copied();
            let committed = place.is_some_and(|place| self.shown.contains(&place));
            shown += usize::from(committed);
            match (write.ack, place) {
                (Ack::At(_), None) => self.wrong(What::LostWrite, Some(value), format!("{value} is nowhere")),
                (Ack::At(Some(told)), Some((_, at))) if told != at => {
                    self.wrong(What::Divergent, Some(value), format!("{value} is at {at}, not at {told}"));
                }
                (Ack::At(_), Some(_)) if attempt.kind == Kind::Plain && !committed => {
                    self.wrong(What::LostWrite, Some(value), format!("{value} is not shown as committed"));
                }
                (Ack::None | Ack::At(_), Some(_)) if attempt.kind == Kind::Fenced => {
                    self.wrong(What::FencedWrite, Some(value), format!("{value} is stored"));
                }
                (Ack::None, None | Some(_)) | (Ack::At(_), Some(_)) => {}
            }
        }
        if attempt.kind == Kind::Transaction {
            self.check_whole(number, &attempt, shown);
        }
    }

    fn check_whole(&mut self, number: usize, attempt: &Attempt, shown: usize) {
        let all = attempt.writes.len();
        let first = Some(Value { attempt: number, n: 0 });
        match attempt.told {
            Told::Committed if shown == 0 && all > 0 => {
                self.wrong(What::LostWrite, first, format!("{number} is committed and nowhere shown"));
            }
            Told::Aborted if shown > 0 => {
                self.wrong(What::AbortedRead, first, format!("{number} is aborted and {shown} of {all} are shown"));
            }
            Told::Nothing | Told::Committed if 0 < shown && shown < all => {
                self.wrong(What::Torn, first, format!("{shown} of {all} records of {number} are shown"));
            }
            Told::Nothing | Told::Committed | Told::Aborted => {}
        }
    }

    /// A client's own group stands where its last visible transaction put it.
    fn check_marks(&mut self, own: &BTreeMap<String, i64>) {
        for number in self.checked..self.attempts.len() {
            let attempt = &self.attempts[number];
            let place = self.places.get(&Value { attempt: number, n: 0 });
            if let (Some(mark), true) = (attempt.mark, place.is_some_and(|place| self.shown.contains(place))) {
                self.marks.insert(attempt.who.clone(), mark);
            }
        }
        for (who, stands) in own {
            let due = self.marks.get(who).copied().unwrap_or(-1);
            let what = if *stands > due { What::OffsetsWithoutRecords } else { What::RecordsWithoutOffsets };
            if *stands != due {
                let staged = |attempt: &Attempt| attempt.who == *who && attempt.mark == Some((*stands).max(due));
                let value = self.attempts.iter().position(staged).map(|attempt| Value { attempt, n: 0 });
                self.wrong(what, value, format!("{who} stands at {stands}, its records at {due}"));
            }
        }
    }

    /// Each record before the processors' offset has its result, and none behind it.
    fn check_processed(&mut self, stands: &BTreeMap<i32, i64>) {
        for (number, stands) in stands {
            let (part, stands) = (Part { topic: Topic::In, number: *number }, (*stands).max(0));
            let from = self.processed.insert(*number, stands).unwrap_or(0).min(stands);
            let read = self.log.range((part, from)..(part, stands)).map(|((_, offset), _)| *offset);
            let without: Vec<_> = read.filter(|offset| !self.results.contains_key(&(*number, *offset))).collect();
            for offset in without {
                let detail = format!("the processors stand at {part} {stands}, and {offset} has no result");
                self.wrong(What::OffsetsWithoutRecords, None, detail);
            }
            let beyond: Vec<_> = self.results.range((*number, stands)..(*number, i64::MAX)).map(|(_, v)| *v).collect();
            for value in beyond {
                let detail = format!("the processors stand at {part} {stands}, before the source of {value}");
                self.wrong(What::RecordsWithoutOffsets, Some(value), detail);
            }
        }
    }

    /// Consumers were given what there was for them.
    fn check_consumers(&mut self) {
        for (view, part, offset, value) in self.not_consumed() {
            let detail = format!("the {view:?} consumer was not given {value} at {part} {offset}");
            self.wrong(What::Missed, Some(value), detail);
        }
        self.live.clear();
    }

    /// What is there for consumers, of all attempts since the last check, and has not come to them.
    pub(crate) fn not_consumed(&self) -> Vec<(View, Part, i64, Value)> {
        let mut missed = Vec::new();
        for number in self.checked..self.attempts.len() {
            for n in 0..self.attempts[number].writes.len() {
                let value = Value { attempt: number, n };
                let Some((part, offset)) = self.places.get(&value).copied() else { continue };
                let shown = self.shown.contains(&(part, offset));
                let views = [View::Uncommitted, View::Committed].into_iter().take(1 + usize::from(shown));
                let gap = views.filter(|view| !self.live.contains(&(*view, part, offset)));
                missed.extend(gap.map(|view| (view, part, offset, value)));
            }
        }
        missed
    }
}
