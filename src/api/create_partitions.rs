//! CreatePartitions (37).

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::catalog::GrowTopic;

#[cfg(test)]
mod tests;

/// The request's time-out plays no part: what is answered is there.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: CreatePartitionsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let specs: Vec<GrowTopic> = request.topics.iter().map(spec).collect();
    let grown = match ctx.broker.grow_topics(specs, request.validate_only).await {
        Ok(grown) => {
            let said = |(name, result): (String, Result<_, _>)| (name, result.map_err(reason));
            grown.into_iter().map(said).collect()
        }
        Err(refusal) => {
            let said = |topic: CreatePartitionsTopic| (topic.name.to_string(), Err(not_now(refusal)));
            request.topics.into_iter().map(said).collect::<Vec<_>>()
        }
    };
    let mut codes = Codes::new(ctx, call);
    let results = grown.into_iter().map(|(name, grown)| match grown {
        Ok(()) => shown(name),
        Err((refusal, message)) => {
            let message = Some(StrBytes::from_string(message));
            shown(name).with_error_code(codes.of(Some(refusal))).with_error_message(message)
        }
    });
    call.encode(&CreatePartitionsResponse::default().with_results(results.collect()))
}

fn reason(refused: crate::engine::catalog::Refused) -> (Refusal, String) {
    (refused.refusal, refused.message)
}

fn not_now(refusal: Refusal) -> (Refusal, String) {
    if refusal == Refusal::KafkaStorageError {
        return (refusal, "The disk is nearly full: delete topics, or make room.".to_owned());
    }
    // Coordinators mean nothing to an admin client; this code it knows, and it may ask again.
    (Refusal::RequestTimedOut, "The broker cannot create partitions at present.".to_owned())
}

fn spec(topic: &CreatePartitionsTopic) -> GrowTopic {
    let assignments = topic
        .assignments
        .as_ref()
        .map(|assignments| assignments.iter().map(|one| one.broker_ids.iter().map(|id| id.0).collect()).collect());
    GrowTopic { name: topic.name.to_string(), count: topic.count, assignments }
}

fn shown(name: String) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult::default().with_name(StrBytes::from_string(name).into()).with_error_message(None)
}
