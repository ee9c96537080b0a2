//! Who may commit offsets, at once or in a transaction.

use super::{Group, State, Step};
use crate::engine::{Claim, Now, Refusal};

/// A commit to a group that does not exist (O-606, T-244): who claims no generation makes a simple group.
///
/// `names_missing_groups` is set from OffsetCommit 9 and TxnOffsetCommit 6 on, where the refusal has its own name.
///
/// # Errors
/// `IllegalGeneration`, or `GroupIdNotFound` in the versions that know it, when a generation is claimed.
pub fn commit_to_unknown(claim: &Claim, names_missing_groups: bool, now: Now) -> Result<Group, Refusal> {
    match (claim.generation < 0, names_missing_groups) {
        (true, _) => Ok(Group::new(now)),
        (false, true) => Err(Refusal::GroupIdNotFound),
        (false, false) => Err(Refusal::IllegalGeneration),
    }
}

impl Group {
    /// Whether OffsetCommit is accepted of `claim` (O-607). In PreparingRebalance it is, because consumers commit while
    /// their partitions are being revoked; in CompletingRebalance it is not (G-459).
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`, `RebalanceInProgress`.
    pub fn may_commit(&self, claim: &Claim) -> Result<(), Refusal> {
        if self.is_outside(claim) {
            return Ok(());
        }
        if claims_nothing(claim) {
            return Err(Refusal::UnknownMemberId);
        }
        self.check_claim(claim)?;
        match &self.state {
            State::Completing(_) => Err(Refusal::RebalanceInProgress),
            State::Empty { .. } | State::Preparing(_) | State::Stable(_) => Ok(()),
        }
    }

    /// Whether TxnOffsetCommit is accepted of `claim` (T-244). Who claims nothing is let in even when the group is in
    /// use, since old clients cannot say who they are; a rebalance is no obstacle.
    ///
    /// # Errors
    /// `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`.
    pub fn may_stage(&self, claim: &Claim) -> Result<(), Refusal> {
        if self.is_outside(claim) || claims_nothing(claim) {
            return Ok(());
        }
        self.check_claim(claim)
    }

    /// The member has committed: a sign of life (G-452). Nothing durable changes.
    pub fn committed(&self, claim: &Claim, now: Now) -> Step {
        let mut step = Step::of(self);
        match &self.state {
            State::Preparing(_) | State::Stable(_) => step.next.restart_session(&claim.member, now),
            State::Empty { .. } | State::Completing(_) => {}
        }
        step
    }

    /// Nobody uses the group, and the claim is to no generation: an administrator or a consumer without a group.
    fn is_outside(&self, claim: &Claim) -> bool {
        claim.generation < 0 && self.is_empty()
    }

    fn check_claim(&self, claim: &Claim) -> Result<(), Refusal> {
        self.recognise(&claim.member, claim.instance.as_ref())?;
        if claim.generation == self.generation { Ok(()) } else { Err(Refusal::IllegalGeneration) }
    }
}

fn claims_nothing(claim: &Claim) -> bool {
    claim.generation < 0 && claim.member.is_empty() && claim.instance.is_none()
}
