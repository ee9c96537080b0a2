use super::{Named, Positions};
use crate::api::words::tests::catalog;
use crate::engine::Refusal as R;

/// What the coordinator is asked about (partition ids; `None`: it is not asked), and what each partition is told.
fn check(named: &[(&str, i32, &str)], verdict: Result<(), R>, asked: Option<&[i64]>, told: &[Option<R>], rule: &str) {
    let named = named.iter().map(|(topic, index, metadata)| Named {
        topic,
        index: *index,
        offset: 5,
        leader_epoch: -1,
        metadata: Some(metadata),
    });
    let mut positions = Positions::of(&catalog(), named);
    let taken = positions.take_asked().map(|offsets| offsets.into_iter().map(|(part, _)| part.0).collect::<Vec<_>>());
    assert_eq!(taken.as_deref(), asked, "{rule}");
    assert_eq!(positions.verdicts(verdict).collect::<Vec<_>>(), told, "{rule}");
}

#[test]
fn each_partition_is_told_its_own() {
    let (fits, long) = ("m".repeat(4096), "m".repeat(4097));
    // 4096 units of two bytes each; 4098 units of a pair for every four bytes.
    let (umlauts, pairs) = ("ü".repeat(4096), "😀".repeat(2049));
    let (unknown, too_long) = (Some(R::UnknownTopicOrPartition), Some(R::OffsetMetadataTooLarge));
    let fenced = Some(R::FencedInstanceId);
    let refused = Err(R::FencedInstanceId);
    check(&[], Ok(()), None, &[], "O-605 nothing named");
    check(&[("c", 0, ""), ("a", 2, ""), ("a", -1, "")], refused, None, &[unknown; 3], "O-605, T-241 row 6");
    check(&[("a", 0, ""), ("c", 0, ""), ("b", 0, "")], Ok(()), Some(&[1, 7]), &[None, unknown, None], "O-604");
    check(&[("a", 1, &fits), ("a", 0, &long)], Ok(()), Some(&[2]), &[None, too_long], "O-614");
    check(&[("a", 1, &umlauts), ("a", 0, &pairs)], Ok(()), Some(&[2]), &[None, too_long], "O-614 UTF-16");
    check(
        &[("a", 1, ""), ("a", 0, &long), ("c", 0, "")],
        refused,
        Some(&[2]),
        &[fenced, fenced, unknown],
        "T-241 9, 10",
    );
    check(&[("a", 0, &long)], refused, Some(&[]), &[fenced], "T-241 row 9 before 10");
    check(&[("a", 0, &long)], Ok(()), Some(&[]), &[too_long], "T-241 row 10");
}

#[test]
fn absent_metadata_is_the_empty_text() {
    let named = Named { topic: "a", index: 0, offset: -9, leader_epoch: 3, metadata: None };
    let offsets = Positions::of(&catalog(), [named].into_iter()).take_asked().unwrap();
    let (_, position) = &offsets[0];
    assert_eq!((position.offset, position.leader_epoch, position.metadata.as_str()), (-9, 3, ""), "O-617");
}
