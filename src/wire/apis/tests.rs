use super::{Api, Order};
use kafka_protocol::messages::ApiKey;

/// Our headers and names are those of an independent codec, for every API and version (V-102, V-103).
#[test]
fn the_table_agrees_with_the_codec() {
    for &api in Api::ALL {
        let key = ApiKey::try_from(api.key()).expect("a key the codec knows");
        assert_eq!(format!("{key:?}"), api.name());
        assert_eq!(Api::from_key(api.key()), Some(api));
        let (range, ours) = (key.valid_versions(), api.versions());
        assert!(range.min <= ours.lowest && ours.highest <= range.max, "{api}: the codec decodes {range}");
        for version in ours.lowest..=ours.highest {
            let (request, response) = (key.request_header_version(version), key.response_header_version(version));
            assert_eq!(request == 2, api.is_flexible(version), "{api} {version}: request header");
            assert_eq!(response == 1, api.has_response_tags(version), "{api} {version}: response header");
        }
    }
}

#[test]
fn only_produce_lists_what_it_does_not_serve_and_runs_ahead() {
    for &api in Api::ALL {
        let row = api.versions();
        assert_eq!(row.listed < row.lowest, api == Api::Produce, "{api}: T-001");
        assert_eq!(row.order == Order::Ahead, api == Api::Produce, "{api}: V-131");
        assert!(!api.serves(row.lowest - 1) && !api.serves(row.highest + 1), "{api}: V-104");
        assert!(api.serves(row.lowest) && api.serves(row.highest), "{api}: V-104");
    }
    assert_eq!(Api::from_key(9999), None);
    assert_eq!(Api::from_key(-1), None);
    assert_eq!(Api::from_key(4), None, "LeaderAndIsr is between brokers");
}
