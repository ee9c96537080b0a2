use super::distinct;
use kafka_protocol::protocol::StrBytes;

/// G-465.
#[test]
fn each_group_once() {
    let names = |names: &[&'static str]| names.iter().map(|name| StrBytes::from_static_str(name).into()).collect();
    let check = |asked: &[&'static str], once: &[&'static str]| {
        let expected: Vec<_> = names(once);
        assert_eq!(distinct(names(asked)), expected, "{asked:?}");
    };
    check(&[], &[]);
    check(&["b", "a", "b", "", "a", ""], &["b", "a", ""]);
}
