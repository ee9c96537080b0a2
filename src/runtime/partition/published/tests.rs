use super::*;

#[test]
fn damaged_and_gone_are_final() {
    use Availability::{Damaged, Gone, Open, Unloaded};
    let view = |availability| match availability {
        Open => Published::open(0, 5, 5, None),
        Unloaded | Damaged | Gone => Published::not(availability),
    };
    let check = |steps: &[Availability], last: Availability| {
        let shared = Shared::unloaded();
        steps.iter().for_each(|step| shared.publish(view(*step)));
        assert_eq!(shared.published(), view(last), "{steps:?}");
    };
    check(&[Open], Open);
    check(&[Damaged], Damaged);
    check(&[Open, Damaged, Open], Damaged);
    check(&[Open, Gone, Open], Gone);
    check(&[Damaged, Gone], Gone);
    check(&[Gone, Damaged], Gone);
    check(&[Gone, Unloaded], Gone);
}

#[test]
fn a_sync_in_flight_does_not_bring_a_damaged_partition_back() {
    let shared = Shared::unloaded();
    shared.publish(Published::open(0, 5, 5, None));
    shared.publish(Published::not(Availability::Damaged));
    assert!(shared.synced(9, Published::open(0, 9, 9, None)).is_empty());
    assert_eq!(shared.published().availability, Availability::Damaged);
}

#[test]
fn an_older_view_that_comes_late_names_no_holder() {
    let shared = Shared::unloaded();
    let holder = OldestOpen { producer: Producer { id: 1, epoch: 0 }, started_wall_ms: 7 };
    shared.publish(Published::open(0, 9, 9, None));
    shared.publish(Published::open(0, 5, 3, Some(holder)));
    assert_eq!(shared.published(), Published::open(0, 9, 9, None));
    shared.publish(Published::open(0, 9, 9, Some(holder)));
    assert_eq!(shared.published().oldest_open, Some(holder), "one that is as far knows");
}
