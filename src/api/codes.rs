//! The error codes of one answer.

use std::collections::BTreeSet;

use super::ctx::{Call, Ctx};
use super::traces::Fact;
use crate::engine::Refusal;
use crate::wire::codes;

/// Turns refusals into codes and counts them: each once per answer, however many partitions it meets.
pub(super) struct Codes<'a> {
    ctx: &'a Ctx,
    call: &'a Call,
    counted: BTreeSet<Refusal>,
}

impl<'a> Codes<'a> {
    /// For the answer to `call`.
    pub(super) fn new(ctx: &'a Ctx, call: &'a Call) -> Self {
        Self { ctx, call, counted: BTreeSet::new() }
    }

    /// The code of a verdict; 0 when nothing is refused.
    pub(super) fn of(&mut self, refusal: Option<Refusal>) -> i16 {
        let Some(refusal) = refusal else { return codes::NONE };
        if self.counted.insert(refusal) {
            self.ctx.broker.metrics().request_refused(self.call.api.key(), refusal);
            self.call.note(Fact::Refused(refusal));
        }
        self.call.code(refusal)
    }
}
