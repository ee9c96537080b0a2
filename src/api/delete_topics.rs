//! DeleteTopics (20), by name.

use std::collections::BTreeMap;

use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName as WireName};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::{Refusal, TopicName};
use crate::runtime::post::TopicKey;

#[cfg(test)]
mod tests;

/// The request's time-out plays no part: what is answered is gone.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DeleteTopicsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let (once, repeated) = sort_out(&request.topic_names);
    let keys: Vec<_> = once.iter().map(|name| TopicKey::Name(TopicName::from(name.as_str()))).collect();
    let deleted = if keys.is_empty() { Ok(Vec::new()) } else { ctx.broker.delete_topics(keys).await };
    let results: Vec<Result<(), Refusal>> = match deleted {
        Ok(results) => results.into_iter().map(|result| result.map(drop)).collect(),
        // Coordinators mean nothing to an admin client; this code it knows, and it may ask again.
        Err(_stopping) => vec![Err(Refusal::RequestTimedOut); once.len()],
    };
    let mut codes = Codes::new(ctx, call);
    let mut responses = Vec::with_capacity(once.len() + repeated.len());
    for (name, result) in once.into_iter().zip(results) {
        responses.push(match result {
            Ok(()) => shown(name),
            Err(refusal) => refused(name, codes.of(Some(refusal)), reason(refusal)),
        });
    }
    for name in repeated {
        let code = codes.of(Some(Refusal::InvalidRequest));
        responses.push(refused(name, code, "Duplicate topic name."));
    }
    call.encode(&DeleteTopicsResponse::default().with_responses(responses))
}

/// The names that stand there once, in their order, and the others, each of which is refused and answered once
/// (M-231).
fn sort_out(names: &[WireName]) -> (Vec<WireName>, Vec<WireName>) {
    let mut times: BTreeMap<&WireName, usize> = BTreeMap::new();
    for name in names {
        *times.entry(name).or_default() += 1;
    }
    let once = names.iter().filter(|name| times.get(name) == Some(&1)).cloned().collect();
    let repeated = times.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name.clone()).collect();
    (once, repeated)
}

fn reason(refusal: Refusal) -> &'static str {
    if refusal == Refusal::UnknownTopicOrPartition {
        "There is no such topic."
    } else if refusal == Refusal::InvalidRequest {
        "The topic is the broker's own."
    } else {
        "The broker cannot delete topics at present."
    }
}

fn shown(name: WireName) -> DeletableTopicResult {
    DeletableTopicResult::default().with_name(Some(name))
}

fn refused(name: WireName, code: i16, message: &'static str) -> DeletableTopicResult {
    shown(name).with_error_code(code).with_error_message(Some(StrBytes::from_static_str(message)))
}
