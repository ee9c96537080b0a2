//! P4: once a newer owner was told, a request of a former one that comes later changes nothing.

use crate::edge::{Answered, Reply, Request};
use crate::engine::Producer;
use crate::history::History;

/// Who of a transactional id a request comes from.
#[must_use]
pub fn owner(request: &Request) -> Option<(&str, Producer)> {
    match request {
        Request::Add { id, producer, .. }
        | Request::AddGroup { id, producer, .. }
        | Request::Stage { id, producer, .. }
        | Request::End { id, producer, .. }
        | Request::Produce { id: Some(id), producer: Some(producer), .. } => Some((id, *producer)),
        _ => None,
    }
}

/// Whether a request that arrives now comes from a former owner.
#[must_use]
pub fn is_fenced(request: &Request, history: &History) -> bool {
    owner(request).is_some_and(|(id, producer)| history.is_fenced(id, producer))
}

/// An answer to a request that came from a former owner. A batch that was stored before may be said to be there.
pub fn check(answered: &Answered) {
    if !answered.exchange.fenced {
        return;
    }
    match &answered.reply {
        Reply::Refused(_) => {}
        Reply::Produced(at) => assert!(*at < answered.exchange.log_end, "P4: a former owner wrote: {answered:?}"),
        _ => panic!("P4: a former owner is obeyed: {answered:?}"),
    }
}
