use super::wanted;
use crate::engine::catalog::{Change, ChangeConfigs};
use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::protocol::StrBytes;

#[test]
fn what_is_asked_for() {
    let text = StrBytes::from_static_str;
    let config = |name, value: Option<&'static str>| {
        AlterableConfig::default().with_name(text(name)).with_value(value.map(text))
    };
    let resource = AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("t"))
        .with_configs(vec![config("a", Some("1")), config("b", None), config("a", Some(""))]);
    let pair = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let given = vec![pair("a", Some("1")), pair("b", None), pair("a", Some(""))];
    let expected = ChangeConfigs { kind: 2, name: "t".to_owned(), change: Change::All(given) };
    assert_eq!(wanted(&resource), expected, "A-318: nothing is left out, for the engine judges it");
}
