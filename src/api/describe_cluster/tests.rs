use super::check_endpoint;
use crate::engine::Refusal;

/// M-216, M-217.
#[test]
fn endpoint_types() {
    let rows = [
        (1, None),
        (2, Some(Refusal::MismatchedEndpointType)),
        (0, Some(Refusal::UnsupportedEndpointType)),
        (3, Some(Refusal::UnsupportedEndpointType)),
        (-1, Some(Refusal::UnsupportedEndpointType)),
    ];
    for (endpoint_type, expected) in rows {
        let refusal = check_endpoint(endpoint_type).err().map(|(refusal, _)| refusal);
        assert_eq!(refusal, expected, "endpoint type {endpoint_type}");
    }
}
