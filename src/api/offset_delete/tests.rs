use super::verdicts;
use crate::engine::{PartId, Refusal};

/// G-466: partitions that there are not keep their place among those that were asked for.
#[test]
fn verdicts_are_in_the_order_of_the_request() {
    let unknown = Some(Refusal::UnknownTopicOrPartition);
    let covered = Some(Refusal::GroupSubscribedToTopic);
    let part = Some(PartId(1));
    assert_eq!(verdicts(&[], Vec::new()), []);
    assert_eq!(verdicts(&[None, None], Vec::new()), [unknown, unknown]);
    let deleted = vec![Ok(()), Err(Refusal::GroupSubscribedToTopic), Ok(())];
    assert_eq!(verdicts(&[None, part, part, None, part], deleted), [unknown, None, covered, unknown, None]);
}
