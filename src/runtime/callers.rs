//! Which client last spoke for a transactional id: what an operator asks when a transaction hangs. Kept in memory only, and
//! nothing is decided by it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use parking_lot::Mutex;

use crate::engine::TransactionalId;
use crate::runtime::broker::Broker;

/// Ids that are remembered; when there are more, the half that was silent for longest is forgotten.
const MOST: usize = 50_000;
/// Characters of a client's name for itself that are kept.
const NAME_CHARS: usize = 128;

/// A client, as it was last met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name for itself: anything it likes.
    pub client_id: Option<String>,
    /// Its address.
    pub address: SocketAddr,
    /// When it was met, wall clock.
    pub seen_wall_ms: i64,
}

/// All that are remembered.
#[derive(Debug, Default)]
pub struct Callers(Mutex<BTreeMap<TransactionalId, Caller>>);

impl Callers {
    fn note(&self, id: &TransactionalId, (client_id, address): (Option<&str>, SocketAddr), wall_ms: i64) {
        let mut callers = self.0.lock();
        if let Some(known) = callers.get_mut(id)
            && known.address == address
        {
            known.seen_wall_ms = wall_ms;
            return;
        }
        if callers.len() >= MOST && !callers.contains_key(id) {
            forget_half(&mut callers);
        }
        let client_id = client_id.map(|name| name.chars().take(NAME_CHARS).collect());
        callers.insert(id.clone(), Caller { client_id, address, seen_wall_ms: wall_ms });
    }
}

fn forget_half(callers: &mut BTreeMap<TransactionalId, Caller>) {
    let mut seen: Vec<i64> = callers.values().map(|caller| caller.seen_wall_ms).collect();
    seen.sort_unstable();
    let Some(middle) = seen.get(seen.len() / 2).copied() else { return };
    callers.retain(|_, caller| caller.seen_wall_ms > middle);
}

impl Broker {
    /// A client spoke for this id, and was heard.
    pub fn note_caller(&self, id: &TransactionalId, caller: (Option<&str>, SocketAddr)) {
        self.callers.note(id, caller, self.clock().now().wall_ms);
    }

    /// Who last spoke for this id since the start.
    #[must_use]
    pub fn caller(&self, id: &TransactionalId) -> Option<Caller> {
        self.callers.0.lock().get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_are_remembered_and_the_latest_stay() {
        let (callers, address) = (Callers::default(), SocketAddr::from(([127, 0, 0, 1], 9)));
        for n in 0..=MOST {
            let id = TransactionalId::from(format!("id-{n:06}").as_str());
            callers.note(&id, (Some("a client"), address), i64::try_from(n).unwrap());
        }
        let kept = callers.0.lock();
        assert_eq!(kept.len(), MOST / 2);
        assert!(kept.contains_key(&TransactionalId::from(format!("id-{MOST:06}").as_str())));
        assert!(!kept.contains_key(&TransactionalId::from("id-000000")));
    }

    #[test]
    fn a_name_is_cut_and_a_client_that_moves_is_met_anew() {
        let (callers, id) = (Callers::default(), TransactionalId::from("id"));
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        callers.note(&id, (Some(&"x".repeat(1_000)), at(1)), 5);
        callers.note(&id, (Some("other"), at(1)), 6);
        let first = callers.0.lock().get(&id).cloned().unwrap();
        assert_eq!((first.client_id.unwrap().len(), first.seen_wall_ms), (NAME_CHARS, 6));
        callers.note(&id, (Some("other"), at(2)), 7);
        assert_eq!(callers.0.lock().get(&id).unwrap().client_id.as_deref(), Some("other"));
    }
}
