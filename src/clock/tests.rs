use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

#[test]
fn a_manual_clock_moves_only_when_told() {
    let clock = Clock::manual(1_000);
    let same = clock.clone();
    assert_eq!(clock.now(), Now { mono_ms: 0, wall_ms: 1_000 });
    clock.advance(250);
    assert_eq!(same.now(), Now { mono_ms: 250, wall_ms: 1_250 });
    same.set_wall(5);
    assert_eq!(clock.now(), Now { mono_ms: 250, wall_ms: 5 });
    assert_eq!(clock.sleep_until(300), None);
}

#[test]
fn watchers_are_told_of_every_move_and_may_read_the_clock() {
    let clock = Clock::manual(0);
    let seen = Arc::new(AtomicI64::new(-1));
    let (reader, store) = (clock.clone(), Arc::clone(&seen));
    clock.subscribe(Box::new(move || store.store(reader.now().mono_ms, Ordering::SeqCst)));
    clock.advance(7);
    assert_eq!(seen.load(Ordering::SeqCst), 7);
    clock.set_wall(99);
    assert_eq!(seen.load(Ordering::SeqCst), 7);
    clock.advance(1);
    assert_eq!(seen.load(Ordering::SeqCst), 8);
}

#[test]
fn the_system_clock_starts_at_zero_and_does_not_go_back() {
    let clock = Clock::system();
    let first = clock.now();
    let second = clock.now();
    assert!(first.mono_ms >= 0 && second.mono_ms >= first.mono_ms);
    assert!(first.wall_ms > 1_700_000_000_000, "{first:?}");
    assert_eq!(clock.sleep_until(-1), Some(Duration::ZERO));
    clock.advance(1_000_000);
    assert!(clock.now().mono_ms < 1_000_000);
}
