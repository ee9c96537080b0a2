use kafka_protocol::messages::SyncGroupRequest;

use super::is_complete;

#[test]
fn protocol_and_its_type_are_due_from_version_5_on() {
    let check = |protocol_type: Option<&'static str>, protocol: Option<&'static str>, version, expected| {
        let request = SyncGroupRequest::default()
            .with_protocol_type(protocol_type.map(Into::into))
            .with_protocol_name(protocol.map(Into::into));
        assert_eq!(is_complete(&request, version), expected, "G-441 {protocol_type:?} {protocol:?} {version}");
    };
    check(None, None, 4, true);
    check(None, None, 5, false);
    check(Some("consumer"), None, 5, false);
    check(None, Some("range"), 5, false);
    check(Some(""), Some(""), 5, true);
}
