#![expect(clippy::arithmetic_side_effects, reason = "a test may count freely: an overflow fails it")]

use super::*;
use crate::engine::batch::marker::Marker;
use crate::engine::batch::samples;
use crate::engine::partition::tests::{Sent, Want, answer, header, now};
use crate::engine::partition::{Aborted, Grant, MarkOrder, MarkStep, OpenTransaction};
use crate::engine::{Epoch, Now, Offset, Outcome, Producer, TransactionalId};
use proptest::prelude::*;

/// What the log holds: a batch's header, the marker's bytes if it is one, and when it arrived.
type Log = Vec<(Header, Option<Vec<u8>>, Now)>;

fn replayed(log: &Log, from: Partition) -> (Partition, Vec<Aborted>) {
    let mut partition = from;
    let aborted =
        log.iter().filter_map(|(header, control, now)| partition.replay(header, control.as_deref(), *now)).collect();
    (partition, aborted)
}

fn seen(partition: &Partition) -> (Vec<u8>, Offset, Option<Offset>, Vec<OpenTransaction>) {
    let open = partition.open_transactions().collect();
    (partition.snapshot(), partition.log_end(), partition.first_unstable(), open)
}

fn data(offset: Offset, epoch: Epoch, sequence: i32, count: i32) -> Header {
    let sent = Sent { id: 7, epoch, sequence, count, txn: Some("t") };
    Header { base_offset: offset, ..header(&sent) }
}

fn mark(offset: Offset, outcome: Outcome) -> (Header, Vec<u8>) {
    let marker = Marker { producer: Producer { id: 7, epoch: 0 }, outcome, coordinator_epoch: 2 };
    let bytes = marker::write(&marker, offset, 0, 0, false).to_vec();
    (Header::read(&bytes).unwrap(), bytes)
}

/// T-714: what is in the log is so, whatever a client would have been told.
#[test]
fn nothing_is_refused() {
    let mut partition = Partition::new(0, 0);
    assert_eq!(partition.replay(&data(0, 3, 9, 2), None, now(0)), None);
    partition.replay(&data(2, 3, 50, 2), None, now(0));
    assert_eq!(partition.describe()[0].last_sequence, 51);
    // No continuity of epochs either.
    partition.replay(&data(4, 1, 0, 1), None, now(0));
    assert_eq!((partition.describe()[0].epoch, partition.first_unstable()), (1, Some(0)));

    // Emptied and unknown control batches end nothing.
    let emptied = Header { attributes: 0x30, base_offset: 5, producer_id: 7, producer_epoch: 1, ..samples::header(0) };
    let emptied = Header { last_offset_delta: 0, ..emptied };
    assert_eq!(partition.replay(&emptied, Some(&samples::seal(&emptied, &[])), now(0)), None);
    assert_eq!((partition.log_end(), partition.first_unstable()), (6, Some(0)));
    let (header, bytes) = mark(6, Outcome::Abort);
    let aborted = Aborted { producer_id: 7, first_offset: 0, last_offset: 6, last_stable_offset: 7 };
    assert_eq!(partition.replay(&header, Some(&bytes), now(0)), Some(aborted));
    assert_eq!((partition.log_end(), partition.first_unstable()), (7, None));
    assert_eq!(partition.describe()[0].coordinator_epoch, 2);

    // T-555: a batch that compaction has emptied keeps sequence and epoch and opens nothing.
    let emptied = Header { count: 0, ..data(7, 4, 40, 3) };
    partition.replay(&emptied, None, now(0));
    let known = partition.describe()[0];
    assert_eq!((known.epoch, known.last_sequence, known.current_txn_start), (4, 42, None));
    assert_eq!(partition.log_end(), 10);
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// Producer, sequence less the next one, records, transactional.
    Send(i64, i32, i32, bool),
    /// The producer sends its last batch once more.
    Resend(i64),
    Add(i64),
    /// Ends the producer's transaction; whether its epoch rises.
    End(i64, Outcome, bool),
    /// A new epoch of a producer that has no transaction.
    Bump(i64),
}

fn deed() -> impl Strategy<Value = Deed> {
    let id = 0_i64..4;
    let outcome = prop_oneof![Just(Outcome::Commit), Just(Outcome::Abort)];
    prop_oneof![
        8 => (id.clone(), prop_oneof![9 => Just(0), 1 => -2..3], 1..5_i32, any::<bool>())
            .prop_map(|(id, off, count, txn)| Deed::Send(id, off, count, txn)),
        2 => id.clone().prop_map(Deed::Resend),
        3 => id.clone().prop_map(Deed::Add),
        3 => (id.clone(), outcome, any::<bool>()).prop_map(|(id, outcome, bump)| Deed::End(id, outcome, bump)),
        1 => id.prop_map(Deed::Bump),
    ]
}

/// A producer as it sees itself.
#[derive(Debug, Clone, Copy, Default)]
struct Client {
    epoch: Epoch,
    next: i32,
    last: Option<(i32, i32, bool)>,
    txn_no: u64,
    added: bool,
}

struct World {
    partition: Partition,
    log: Log,
    aborted: Vec<Aborted>,
    clients: [Client; 4],
    ms: i64,
}

impl World {
    fn new() -> Self {
        // The first producer's sequences wrap early on (T-351).
        let mut clients = [Client::default(); 4];
        clients[0].next = i32::MAX - 3;
        Self { partition: Partition::new(0, 0), log: Vec::new(), aborted: Vec::new(), clients, ms: 0 }
    }

    fn client(&mut self, id: i64) -> &mut Client {
        &mut self.clients[usize::try_from(id).unwrap()]
    }

    fn send(&mut self, id: i64, sequence: i32, count: i32, transactional: bool) -> Want {
        let client = *self.client(id);
        let sent = Sent { id, epoch: client.epoch, sequence, count, txn: transactional.then_some("t") };
        let (header, now) = (header(&sent), now(self.ms));
        let txn = sent.txn.map(TransactionalId::from);
        let answer = answer(self.partition.admit(&header, txn.as_ref(), now));
        if let Want::At(base_offset) = answer {
            self.log.push((Header { base_offset, ..header }, None, now));
            let client = self.client(id);
            client.next = header.last_sequence().wrapping_add(1) & i32::MAX;
            client.last = Some((sequence, count, transactional));
        }
        answer
    }

    fn end(&mut self, id: i64, outcome: Outcome, bump: bool) {
        let client = *self.client(id);
        let epoch = if bump { client.epoch + 1 } else { client.epoch };
        let producer = Producer { id, epoch };
        let sealed_end = self.partition.seal(id, client.txn_no);
        let order =
            MarkOrder { producer, outcome, coordinator_epoch: 1, sealed_end, txn_no: Some(client.txn_no), redo: false };
        let MarkStep::Write(written) = self.partition.mark(&order, now(self.ms)) else {
            panic!("{order:?} was not written");
        };
        let marker = Marker { producer, outcome, coordinator_epoch: 1 };
        let bytes = marker::write(&marker, written.offset, 0, now(self.ms).wall_ms, false).to_vec();
        self.log.push((Header::read(&bytes).unwrap(), Some(bytes), now(self.ms)));
        self.aborted.extend(written.aborted);
        let again = MarkOrder { redo: true, ..order };
        assert_eq!(self.partition.mark(&again, now(self.ms)), MarkStep::AlreadyDone, "a marker is written once");
        self.client(id).added = false;
        if bump {
            self.bump(id);
        }
    }

    fn bump(&mut self, id: i64) {
        let client = self.client(id);
        (client.epoch, client.next, client.last) = (client.epoch + 1, 0, None);
    }

    fn carry_out(&mut self, deed: Deed) {
        self.ms += 1;
        let before = (seen(&self.partition), self.log.len());
        match deed {
            Deed::Send(id, off, count, transactional) => {
                let client = *self.client(id);
                let sequence = client.next.wrapping_add(off) & i32::MAX;
                let answer = self.send(id, sequence, count, transactional);
                let unverified = transactional && !client.added;
                assert_eq!(answer == Want::Unverified, unverified, "{deed:?}");
                let gap = off != 0 && client.last.is_some();
                assert!(!gap || !matches!(answer, Want::At(_)), "{deed:?}: T-354");
            }
            Deed::Resend(id) => {
                let client = *self.client(id);
                let Some((sequence, count, transactional)) = client.last else {
                    return;
                };
                let answer = self.send(id, sequence, count, transactional);
                let wanted_repeat = !transactional || client.added;
                assert_eq!(matches!(answer, Want::Repeat(_)), wanted_repeat, "{deed:?}: P5");
            }
            Deed::Add(id) => {
                let client = self.client(id);
                if !client.added {
                    (client.added, client.txn_no) = (true, client.txn_no + 1);
                    let producer = Producer { id, epoch: client.epoch };
                    let grant = Grant { txn: "t".into(), producer, txn_no: client.txn_no, row: 0 };
                    self.partition.grant(grant);
                }
            }
            Deed::End(id, outcome, bump) => {
                if self.client(id).added {
                    self.end(id, outcome, bump);
                }
            }
            Deed::Bump(id) => {
                if !self.client(id).added {
                    self.bump(id);
                }
            }
        }
        if self.log.len() == before.1 {
            assert_eq!(seen(&self.partition), before.0, "{deed:?}: nothing stored, nothing changed");
        }
    }
}

proptest! {
    /// The log says all that the live state knows, from its start or from a snapshot at any place.
    #[test]
    fn log_is_the_state(deeds in proptest::collection::vec(deed(), 1..120), cut in 0_usize..120) {
        let mut world = World::new();
        let mut snapshot = None;
        for (at, deed) in deeds.iter().enumerate() {
            if at == cut {
                let partition = &world.partition;
                snapshot = Some((partition.snapshot(), partition.log_end(), world.log.len(), world.aborted.len()));
            }
            world.carry_out(*deed);
        }
        let (from_start, aborted) = replayed(&world.log, Partition::new(0, 0));
        prop_assert_eq!(seen(&from_start), seen(&world.partition));
        prop_assert_eq!(&aborted, &world.aborted);

        let Some((bytes, log_end, at, aborted_before)) = snapshot else { return Ok(()) };
        let mut loaded = Partition::new(0, log_end);
        loaded.restore(&bytes, now(world.ms)).unwrap();
        prop_assert_eq!(loaded.snapshot(), bytes, "a snapshot says what it was made of");
        let (loaded, aborted) = replayed(&world.log.split_off(at), loaded);
        prop_assert_eq!(&aborted[..], &world.aborted[aborted_before..]);
        prop_assert_eq!(loaded.log_end(), world.partition.log_end());
        prop_assert_eq!(loaded.first_unstable(), world.partition.first_unstable());
        prop_assert_eq!(loaded.describe(), world.partition.describe());
    }
}
