use super::{distinct, shown};
use crate::engine::catalog::{ConfigEntry, ConfigSource, ConfigType, ConfigValue, Synonym};
use bytes::BytesMut;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn entry(value: ConfigValue) -> ConfigEntry {
    let synonym = Synonym { name: "log.retention.ms".to_owned(), value: "5".to_owned(), source: ConfigSource::Default };
    ConfigEntry {
        name: "retention.ms".to_owned(),
        value,
        source: ConfigSource::Default,
        read_only: false,
        synonyms: vec![synonym],
        kind: ConfigType::Long,
        documentation: Some("How long.".into()),
    }
}

#[test]
fn values() {
    let bare = DescribeConfigsRequest::default();
    let check = |value, expected: Option<&str>, sensitive| {
        let shown = shown(entry(value), &bare);
        assert_eq!((shown.value.as_deref(), shown.is_sensitive), (expected, sensitive), "A-305");
    };
    check(ConfigValue::Text("5".to_owned()), Some("5"), false);
    check(ConfigValue::Absent, None, false);
    check(ConfigValue::Secret, None, true);
}

/// in every version, and C-113.
#[test]
fn extras_in_every_version() {
    for (version, synonyms, documentation) in
        (1..=4).flat_map(|version| [(version, false, false), (version, true, true), (version, false, true)])
    {
        let request =
            DescribeConfigsRequest::default().with_include_synonyms(synonyms).with_include_documentation(documentation);
        let configs = vec![shown(entry(ConfigValue::Text("5".to_owned())), &request)];
        let result = DescribeConfigsResult::default().with_configs(configs);
        let mut bytes = BytesMut::new();
        DescribeConfigsResponse::default().with_results(vec![result]).encode(&mut bytes, version).unwrap();
        let decoded = DescribeConfigsResponse::decode(&mut bytes.freeze(), version).unwrap();
        let shown = &decoded.results[0].configs[0];
        assert_eq!(shown.config_source, 5);
        assert_eq!(shown.synonyms.len(), usize::from(synonyms), "version {version}");
        if version >= 3 {
            assert_eq!(shown.config_type, 5);
            assert_eq!(shown.documentation.is_some(), documentation, "version {version}");
        }
    }
}

#[test]
fn a_resource_is_described_once() {
    let resource = |code, name: &'static str| {
        let one = DescribeConfigsResource::default().with_resource_type(code);
        one.with_resource_name(StrBytes::from_static_str(name))
    };
    let asked = [resource(2, "b"), resource(4, "b"), resource(2, "b"), resource(2, "a")];
    let names: Vec<_> = distinct(&asked).map(|one| (one.resource_type, one.resource_name.as_str())).collect();
    assert_eq!(names, [(2, "b"), (4, "b"), (2, "a")]);
}
