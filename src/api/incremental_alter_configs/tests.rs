use super::wanted;
use crate::engine::catalog::{Change, ChangeConfigs};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::protocol::StrBytes;

#[test]
fn what_is_asked_for() {
    let text = StrBytes::from_static_str;
    let config = |name, operation, value: Option<&'static str>| {
        AlterableConfig::default().with_name(text(name)).with_config_operation(operation).with_value(value.map(text))
    };
    let resource = AlterConfigsResource::default()
        .with_resource_type(4)
        .with_resource_name(text(""))
        .with_configs(vec![config("a", 0, Some("1")), config("b", 1, None), config("a", 9, Some(""))]);
    let key = |name: &str, operation, value: Option<&str>| (name.to_owned(), operation, value.map(str::to_owned));
    let keys = vec![key("a", 0, Some("1")), key("b", 1, None), key("a", 9, Some(""))];
    let expected = ChangeConfigs { kind: 4, name: String::new(), change: Change::Keys(keys) };
    assert_eq!(wanted(&resource), expected, "A-311: nothing is left out, for the engine judges it");
}
