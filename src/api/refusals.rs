//! The refusals one answer tells its client, each to be counted once.

use std::collections::BTreeSet;

use super::{Call, Ctx};
use crate::engine::Refusal;

/// Gathers the refusals of an answer while it is made.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: BTreeSet<Refusal>,
}

impl Refusals {
    /// What this refusal is called in the answer to `call`.
    pub(super) fn code(&mut self, call: &Call, refusal: Refusal) -> i16 {
        self.told.insert(refusal);
        call.code(refusal)
    }

    /// Counts each refusal that was told, once for the whole answer.
    pub(super) fn count(&self, ctx: &Ctx, call: &Call) {
        for refusal in &self.told {
            ctx.broker.metrics().request_refused(call.api.key(), *refusal);
        }
    }
}
