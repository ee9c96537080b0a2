use super::sort_out;
use crate::api::words::tests::catalog;
use crate::engine::{PartId, Refusal as R};

fn check(named: &[(&str, i32)], expected: Result<&[i64], &[R]>, rule: &str) {
    let expected = expected.map(|parts| parts.iter().copied().map(PartId).collect());
    let expected = expected.map_err(|told| told.iter().copied().map(Some).collect());
    assert_eq!(sort_out(&catalog(), named.iter().copied()), expected, "{rule}");
}

#[test]
fn one_bad_partition_keeps_all_out() {
    let (unknown, closed, kept_out) =
        (R::UnknownTopicOrPartition, R::TopicAuthorizationFailed, R::OperationNotAttempted);
    check(&[], Ok(&[]), "T-214");
    check(&[("a", 1), ("b", 0), ("a", 1)], Ok(&[2, 7, 2]), "T-211");
    check(&[("a", 0), ("a", 2), ("c", 0)], Err(&[kept_out, unknown, unknown]), "T-211");
    check(&[("__consumer_offsets", 0), ("a", 0)], Err(&[closed, kept_out]), "T-211: absent, but closed first");
    check(&[("__transaction_state", 99), ("c", 0)], Err(&[closed, unknown]), "T-211");
    check(&[("__cluster_metadata", 0)], Err(&[unknown]), "T-211");
}
