//! DescribeCluster (60): the one broker there is.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;

/// Every operation on the cluster that there is, as bits (M-215).
pub(super) const ALL_CLUSTER_OPERATIONS: i32 = 0x1fa0;

/// The address in the answer is that of the listener the request came by (M-218).
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeClusterRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    if let Err((refusal, message)) = check_endpoint(request.endpoint_type) {
        let mut codes = Codes::new(ctx, call);
        let code = codes.of(Some(refusal));
        let message = Some(StrBytes::from_static_str(message));
        return call.encode(&DescribeClusterResponse::default().with_error_code(code).with_error_message(message));
    }
    let identity = ctx.broker.identity();
    let (host, port) = ctx.address_for(&call.peer.listener);
    let broker = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(identity.node_id))
        .with_host(StrBytes::from_string(host.to_owned()))
        .with_port(i32::from(port));
    let mut response = DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_string(identity.cluster_id.clone()))
        .with_controller_id(BrokerId(identity.node_id))
        .with_brokers(vec![broker]);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    call.encode(&response)
}

/// M-216, M-217. A version 0 has no such field and asks for brokers.
fn check_endpoint(endpoint_type: i8) -> Result<(), (Refusal, &'static str)> {
    match endpoint_type {
        1 => Ok(()),
        2 => Err((Refusal::MismatchedEndpointType, "This is a listener for clients, not for controllers.")),
        _ => Err((Refusal::UnsupportedEndpointType, "There is no such endpoint type.")),
    }
}

#[cfg(test)]
mod tests;
