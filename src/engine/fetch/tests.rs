use super::{Bounds, Isolation, Offer, Position, Room, Standing, check_leader_epoch, judge};
use crate::engine::{Offset, Refusal};

const BOUNDS: Bounds = Bounds { log_start: 10, watermark: 100, last_stable: 60 };
const CURRENT: i32 = 7;

/// Epoch 3 began at 0, epoch 5 at 50; the log ends at 100.
fn epoch_end(asked: i32) -> (i32, Offset) {
    match asked {
        CURRENT => (CURRENT, 100),
        5.. => (5, 100),
        3.. => (3, 50),
        _ => (asked, 0),
    }
}

#[test]
fn positions() {
    let valid = Ok(Standing::Valid);
    let out = Err(Refusal::OffsetOutOfRange);
    for (rule, offset, leader_epoch, last_epoch, expected) in [
        ("T-512 at the start", 10, -1, -1, valid),
        ("T-512 at the end", 100, -1, -1, valid),
        ("T-512 between last stable offset and watermark", 80, -1, -1, valid),
        ("F-732 below", 9, -1, -1, out),
        ("F-732 above", 101, -1, -1, out),
        ("F-732 negative", -1, -1, -1, out),
        ("F-729 ours", 20, 7, -1, valid),
        ("F-729 older", 20, 6, -1, Err(Refusal::FencedLeaderEpoch)),
        ("F-729 newer", 20, 8, -1, Err(Refusal::UnknownLeaderEpoch)),
        ("F-729 comes before the offset", 9, 6, -1, Err(Refusal::FencedLeaderEpoch)),
        ("F-730 newer than all", 20, 7, 8, out),
        ("F-731 as ours", 20, 7, 3, valid),
        ("F-731 at the end of its epoch", 50, 7, 3, valid),
        ("F-731 beyond the end of its epoch", 51, 7, 3, Ok(Standing::Diverged { epoch: 3, end: 50 })),
        ("F-731 an epoch we never had", 20, 7, 4, Ok(Standing::Diverged { epoch: 3, end: 50 })),
        ("F-731 the current one without a batch", 100, 7, 7, valid),
        ("F-731 comes before the upper bound", 101, 7, 5, Ok(Standing::Diverged { epoch: 5, end: 100 })),
        ("F-730 comes before the divergence", 9, 7, 4, out),
    ] {
        let position = Position { offset, leader_epoch, last_epoch };
        assert_eq!(judge(&position, &BOUNDS, CURRENT, epoch_end), expected, "{rule}");
    }
}

#[test]
fn limits() {
    assert_eq!(BOUNDS.limit(Isolation::ReadUncommitted), 100, "T-510");
    assert_eq!(BOUNDS.limit(Isolation::ReadCommitted), 60, "T-510");
    let cut = Bounds { log_start: 70, ..BOUNDS };
    assert_eq!(cut.limit(Isolation::ReadCommitted), 70, "T-541");
    assert_eq!([0, 1].map(Isolation::of), [Ok(Isolation::ReadUncommitted), Ok(Isolation::ReadCommitted)]);
    assert_eq!([-1, 2].map(Isolation::of), [Err(Refusal::InvalidRequest); 2]);
    assert_eq!(check_leader_epoch(-2, 7), Err(Refusal::FencedLeaderEpoch));
}

/// Each partition: what it asks for, what it is offered, what it had.
#[test]
fn rooms() {
    let all = |max_bytes| Some(Offer { max_bytes, at_least_one: true });
    let fitting = |max_bytes| Some(Offer { max_bytes, at_least_one: false });
    for (rule, room, partitions) in [
        ("F-721", 100, vec![(60, all(60), 60), (60, fitting(40), 40), (60, None, 0)]),
        ("F-723 the exemption stays until it is used", 100, vec![(60, all(60), 0), (60, all(60), 60)]),
        ("F-723 a first batch larger than everything", 100, vec![(60, all(60), 500), (60, None, 0)]),
        ("F-723 a first batch larger than its partition's share", 100, vec![(10, all(10), 50), (60, fitting(50), 0)]),
        ("F-725 nothing asked for", 100, vec![(0, all(0), 30), (0, None, 0)]),
        ("F-725 no room", 0, vec![(60, all(0), 30), (60, None, 0)]),
    ] {
        let mut room = Room::of(room);
        for (asks, offered, had) in partitions {
            assert_eq!(room.offer(asks), offered, "{rule}");
            room.took(had);
        }
    }
}
