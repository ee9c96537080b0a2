use super::by_topic;
use crate::engine::catalog::{Catalog, Topic, TopicSettings};
use crate::engine::{PartId, TopicId, TopicName};

/// "a" with the parts 1 and 2, "b" with part 7.
pub(in crate::api) fn catalog() -> Catalog {
    let topic = |name: &str, number: u8, parts: &[i64]| Topic {
        id: TopicId([number; 16]),
        name: TopicName::from(name),
        parts: parts.iter().copied().map(PartId).collect(),
        settings: TopicSettings::default(),
    };
    Catalog::of([topic("a", 1, &[1, 2]), topic("b", 2, &[7])])
}

#[test]
fn parts_are_shown_by_topic_and_number_and_deleted_ones_not_at_all() {
    let parts = [(PartId(7), 'x'), (PartId(2), 'y'), (PartId(99), 'z'), (PartId(1), 'w')];
    let topics = by_topic(&catalog(), parts);
    let shown: Vec<(&str, Vec<(i32, char)>)> = topics
        .iter()
        .map(|(name, parts)| (name.as_str(), parts.iter().map(|(index, known)| (*index, *known)).collect()))
        .collect();
    assert_eq!(shown, [("a", vec![(0, 'w'), (1, 'y')]), ("b", vec![(0, 'x')])]);
}
