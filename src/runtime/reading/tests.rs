use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::{LEAST_ROOM_BYTES, Reads, Reserved};

fn now(future: impl Future<Output = Reserved>) -> Option<Reserved> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reserved) => Some(reserved),
        Poll::Pending => None,
    }
}

#[test]
fn a_reader_gets_what_is_there_and_waits_for_the_least() {
    let reads = Reads::of(4 * LEAST_ROOM_BYTES);
    let first = now(reads.reserve(3 * LEAST_ROOM_BYTES)).unwrap();
    assert_eq!(first.bytes(), 3 * LEAST_ROOM_BYTES);
    let second = now(reads.reserve(3 * LEAST_ROOM_BYTES)).unwrap();
    assert_eq!(second.bytes(), LEAST_ROOM_BYTES, "the rest");
    assert!(now(reads.reserve(10)).is_none(), "nothing is left");
    drop(first);
    assert_eq!(now(reads.reserve(10)).unwrap().bytes(), 10);
    drop(second);
    assert_eq!(now(reads.reserve(usize::MAX)).unwrap().bytes(), 4 * LEAST_ROOM_BYTES);
    assert_eq!(reads.free_bytes(), 4 * LEAST_ROOM_BYTES);
}

#[test]
fn memory_goes_with_the_bytes_and_comes_back_with_the_last_slice() {
    let reads = Reads::of(1000);
    let mut reserved = now(reads.reserve(600)).unwrap();
    let bytes = reserved.bind(Bytes::from(vec![0; 100]));
    let slice = bytes.slice(10..20);
    drop(reserved);
    assert_eq!(reads.free_bytes(), 900);
    drop(bytes);
    assert_eq!(reads.free_bytes(), 900);
    drop(slice);
    assert_eq!(reads.free_bytes(), 1000);
}

#[test]
fn a_reservation_grows_if_there_is_room() {
    let reads = Reads::of(1000);
    let mut reserved = now(reads.reserve(600)).unwrap();
    assert!(reserved.grow_to(1000));
    assert!(!reserved.grow_to(1001));
    assert!(reserved.grow_to(1));
    assert_eq!((reserved.bytes(), reads.free_bytes()), (1000, 0));
}
