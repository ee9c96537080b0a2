//! FindCoordinator (T-201 to T-209): this broker coordinates everything.

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::ctx::{Call, Ctx};
use super::service::Reply;
use super::words;
use crate::engine::Refusal;
use crate::engine::catalog::{CreateTopic, OFFSETS};

/// The kind of key that names a group.
const GROUP: i8 = 0;

/// First version that asks for many keys at once (T-208).
const BATCHED: i16 = 4;

/// Where a client is to turn, or nowhere.
struct Place {
    code: i16,
    message: Option<StrBytes>,
    node_id: i32,
    host: StrBytes,
    port: i32,
}

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: FindCoordinatorRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    if request.key_type == GROUP && ctx.broker.catalog().topic(OFFSETS).is_none() {
        make_offsets_topic(ctx).await;
    }
    let place = place(ctx, call, request.key_type);
    if call.version < BATCHED {
        let response = FindCoordinatorResponse::default()
            .with_error_code(place.code)
            .with_error_message(place.message)
            .with_node_id(place.node_id.into())
            .with_host(place.host)
            .with_port(place.port);
        return call.encode(&response);
    }
    let coordinators = request.coordinator_keys.into_iter().map(|key| {
        Coordinator::default()
            .with_key(key)
            .with_error_code(place.code)
            .with_error_message(place.message.clone())
            .with_node_id(place.node_id.into())
            .with_host(place.host.clone())
            .with_port(place.port)
    });
    call.encode(&FindCoordinatorResponse::default().with_coordinators(coordinators.collect()))
}

/// As in Kafka, the topic is there when the first group is (M-211). Nothing depends on it, so the client is answered anyway,
/// and the next one asks again.
async fn make_offsets_topic(ctx: &Ctx) {
    let made = ctx.broker.create_topics(vec![CreateTopic::offsets()]).await;
    let refused = made.map(|made| made.into_iter().find_map(|(_, result)| result.err()));
    match refused {
        Ok(None | Some((Refusal::TopicAlreadyExists, _))) => {}
        Ok(Some((refusal, why))) => tracing::debug!(?refusal, why, "there is no {OFFSETS} yet"),
        Err(refusal) => tracing::debug!(?refusal, "there is no {OFFSETS} yet"),
    }
}

/// The same for every key, even an empty one: InitProducerId is who refuses that (T-209).
fn place(ctx: &Ctx, call: &Call, key_type: i8) -> Place {
    match check_key_type(key_type) {
        Ok(()) => {
            let (host, port) = ctx.address_for(&call.peer.listener);
            Place {
                code: 0,
                message: None,
                node_id: ctx.broker.identity().node_id,
                host: words::text(host),
                port: i32::from(port),
            }
        }
        Err(refusal) => Place {
            code: Codes::new(ctx, call).of(Some(refusal)),
            message: Some(StrBytes::from_static_str("Only groups and transactional ids have a coordinator.")),
            node_id: -1,
            host: StrBytes::new(),
            port: -1,
        },
    }
}

/// Groups and transactional ids have a coordinator; share groups do not exist here (T-202, T-203, G-590).
fn check_key_type(key_type: i8) -> Result<(), Refusal> {
    match key_type {
        0 | 1 => Ok(()),
        _ => Err(Refusal::InvalidRequest),
    }
}
