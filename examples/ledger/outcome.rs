//! What a transactional call's error asks for. There are three kinds, and the client says which.

use std::thread::sleep;
use std::time::Duration;

use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::types::RDKafkaErrorCode;

/// How long one call may take before it is called again.
pub(crate) const CALL: Duration = Duration::from_secs(5);
/// How often a call is made before the session starts over: minutes, with a broker that is away.
const ATTEMPTS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(200);

/// Why a transaction cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It must be aborted; the producer is good for the next one.
    Abort(KafkaError),
    /// The producer is of no more use, or the outcome is unknown. A new one with the same id finds out: it ends what is
    /// open, and the committed offsets say what was processed.
    StartOver(KafkaError),
}

impl Stop {
    /// Whether somebody else holds the transactional id now, or the broker timed the transaction out: the classic
    /// protocol uses one word for both.
    pub(crate) fn is_fenced(&self) -> bool {
        let Self::StartOver(KafkaError::Transaction(error)) = self else { return false };
        matches!(error.code(), RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced)
    }

    /// What happened.
    pub(crate) fn error(&self) -> &KafkaError {
        match self {
            Self::Abort(error) | Self::StartOver(error) => error,
        }
    }
}

/// Makes a transactional call until it has an outcome.
pub(crate) fn settle(call: impl Fn() -> KafkaResult<()>) -> Result<(), Stop> {
    let mut last = KafkaError::Canceled;
    for _ in 0..ATTEMPTS {
        let Err(error) = call() else { return Ok(()) };
        let KafkaError::Transaction(inner) = &error else { return Err(Stop::StartOver(error)) };
        if inner.is_fatal() {
            return Err(Stop::StartOver(error));
        }
        if inner.txn_requires_abort() {
            return Err(Stop::Abort(error));
        }
        if !inner.is_retriable() {
            return Err(Stop::StartOver(error));
        }
        last = error;
        sleep(PAUSE);
    }
    Err(Stop::StartOver(last))
}
