//! Why something that was asked of a broker did not come about.

use std::io;
use std::time::Duration;

use kafka_protocol::ResponseError;

/// Why something that was asked of a broker did not come about. Displays as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nobody can be connected to.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke.
    #[error("{what}: the connection broke: {error}")]
    Broken {
        /// What was asked.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// No answer came in time.
    #[error("{what}: no answer within {after:?}")]
    Silent {
        /// What was asked.
        what: &'static str,
        /// How long it was waited.
        after: Duration,
    },
    /// The answer is none that this client understands, or does not say what was asked for.
    #[error("{what}: {why}")]
    Foreign {
        /// What was asked.
        what: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// The broker said no.
    #[error("{what}: refused with {}", name(*code))]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Kafka's number for the reason.
        code: i16,
    },
}

impl Failure {
    pub(super) fn foreign(what: &'static str, why: impl Into<String>) -> Self {
        Self::Foreign { what, why: why.into() }
    }

    /// Kafka's number for the reason, if the broker gave one.
    #[must_use]
    pub fn code(&self) -> Option<i16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Unreachable(_) | Self::Broken { .. } | Self::Silent { .. } | Self::Foreign { .. } => None,
        }
    }
}

/// Kafka's name for an error code, as its documentation writes it.
fn name(code: i16) -> String {
    let Some(error) = ResponseError::try_from_code(code) else {
        return format!("error {code}");
    };
    let mut name = String::new();
    for letter in format!("{error:?}").chars().take_while(|letter| letter.is_ascii_alphanumeric()) {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    format!("{name} ({code})")
}

#[cfg(test)]
mod tests;
