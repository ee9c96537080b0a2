//! `meta.db` against a real file.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::engine::group::{Group, GroupRow};
use crate::engine::ledger::offsets::Committed;
use crate::engine::ledger::recover::Loaded;
use crate::engine::ledger::rows::{Marks, RecoveryPoint};
use crate::engine::txn::work::{Owed, OwedPart, Stage};
use crate::engine::txn::{Ongoing, Position, Staged, State, Txn};
use crate::engine::{GroupId, Now, Outcome, PartId, Producer, TopicId, TransactionalId};
use crate::store::os_disk::OsDisk;

fn open(root: &Path) -> Result<(Meta, Boot, WalFile), StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new(root).unwrap());
    Meta::open(&disk, root, "first-id")
}

fn position(offset: i64, metadata: &str) -> Position {
    Position { offset, leader_epoch: -1, metadata: metadata.to_owned() }
}

fn txn(state: State) -> Txn {
    Txn {
        producer: Producer { id: i64::MAX, epoch: i16::MAX },
        last_epoch: -1,
        previous_producer_id: i64::MIN,
        timeout_ms: i32::MIN,
        state,
        updated_wall_ms: i64::MIN,
    }
}

fn open_txn() -> State {
    State::Ongoing(Ongoing {
        number: u64::MAX,
        parts: Arc::new(BTreeSet::from([PartId(i64::MIN), PartId(0), PartId(i64::MAX)])),
        groups: Arc::new(BTreeSet::from([GroupId::from(""), GroupId::from("a\0b"), GroupId::from("ü")])),
        staged: Arc::default(),
        started_wall_ms: -1,
        since_mono_ms: 0,
    })
}

fn owed(parts: &[(i64, i64)], outcome: Outcome) -> Owed {
    let due = Stage::Due { at_mono_ms: 0, tries: 0 };
    let parts =
        parts.iter().map(|(part, sealed_end)| (PartId(*part), OwedPart { sealed_end: *sealed_end, stage: due }));
    Owed {
        id: "t\0x".into(),
        number: u64::MAX - 1,
        marker: Producer { id: -9, epoch: -3 },
        outcome,
        parts: parts.collect(),
        offsets: Vec::new(),
        since_mono_ms: 0,
    }
}

/// One row of every kind and shape, with the most unlikely values.
fn every_row() -> BTreeMap<RowKey, RowValue> {
    let part =
        |point| PartRow { topic: TopicId([255; 16]), index: i32::MAX, log_start: i64::MIN, transactional: true, point };
    let point = RecoveryPoint { active_base: i64::MAX, synced_pos: u64::MAX, synced_offset: i64::MIN, snapshot_at: -1 };
    let group = Group::from_row(GroupRow::decode(&group_row()).unwrap(), &settings(), Now::default());
    let committed = |order, offset, expires_wall_ms| {
        RowValue::Offset(Committed {
            order, position: position(offset, "m\0ü"), at_wall_ms: i64::MIN, expires_wall_ms
        })
    };
    let ended = |outcome| State::Ended { outcome, started_wall_ms: i64::MIN };
    let long = "x".repeat(40_000);
    BTreeMap::from([
        (
            RowKey::Marks,
            RowValue::Marks(Marks { producer_ids_end: i64::MAX, next_producer_id: i64::MAX, next_part: 3 }),
        ),
        (RowKey::Part(PartId(i64::MIN)), RowValue::Part(part(None))),
        (RowKey::Part(PartId(i64::MAX)), RowValue::Part(part(Some(point)))),
        (
            RowKey::Part(PartId(0)),
            RowValue::Part(PartRow { transactional: false, ..part(Some(RecoveryPoint::default())) }),
        ),
        (RowKey::Group(GroupId::from("g")), RowValue::Group(group.row().encode())),
        (RowKey::Offset("g".into(), PartId(-1)), committed(0, i64::MIN, None)),
        (RowKey::Offset("".into(), PartId(i64::MAX)), committed(u64::MAX, i64::MAX, Some(i64::MAX))),
        (RowKey::Offset("a\0b".into(), PartId(1)), committed(7, -1, Some(0))),
        (RowKey::Txn("empty".into()), RowValue::Txn(txn(State::Empty))),
        (RowKey::Txn("open".into()), RowValue::Txn(txn(open_txn()))),
        (RowKey::Txn("committed".into()), RowValue::Txn(txn(ended(Outcome::Commit)))),
        (RowKey::Txn(long.as_str().into()), RowValue::Txn(txn(ended(Outcome::Abort)))),
        (
            RowKey::Pending("open".into(), "g".into(), PartId(i64::MIN)),
            RowValue::Pending(Staged { order: u64::MAX, position: position(i64::MAX, &long) }),
        ),
        (RowKey::Owed(0), RowValue::Owed(owed(&[], Outcome::Abort))),
        (RowKey::Owed(5), RowValue::Owed(owed(&[(i64::MIN, i64::MAX), (4, -1)], Outcome::Commit))),
    ])
}

fn settings() -> crate::engine::group::Settings {
    crate::engine::group::Settings {
        min_session_timeout_ms: 1,
        max_session_timeout_ms: 2,
        initial_rebalance_delay_ms: 0,
        max_size: 1,
    }
}

fn group_row() -> Vec<u8> {
    let claim = crate::engine::Claim { generation: -1, member: "".into(), instance: None };
    let group = crate::engine::group::commit_to_unknown(&claim, false, Now { mono_ms: 0, wall_ms: 5 });
    group.unwrap().row().encode()
}

fn put(rows: impl IntoIterator<Item = (RowKey, RowValue)>) -> Rows {
    let mut put = Rows::default();
    rows.into_iter().for_each(|(key, value)| put.put(key, Some(value)));
    put
}

/// What was loaded, as rows again.
fn rows_of(loaded: Loaded) -> BTreeMap<RowKey, RowValue> {
    let mut rows = BTreeMap::new();
    rows.insert(RowKey::Marks, RowValue::Marks(loaded.marks));
    rows.extend(loaded.parts.into_iter().map(|(part, row)| (RowKey::Part(part), RowValue::Part(row))));
    rows.extend(loaded.groups.into_iter().map(|(id, row)| (RowKey::Group(id), RowValue::Group(row.encode()))));
    let offsets = loaded.offsets.into_iter();
    rows.extend(offsets.map(|((group, part), row)| (RowKey::Offset(group, part), RowValue::Offset(row))));
    rows.extend(loaded.txns.into_iter().map(|(id, row)| (RowKey::Txn(id), RowValue::Txn(row))));
    let pending = loaded.pending.into_iter();
    rows.extend(pending.map(|(id, (group, part), row)| (RowKey::Pending(id, group, part), RowValue::Pending(row))));
    rows.extend(loaded.owed.into_iter().map(|(seq, row)| (RowKey::Owed(seq), RowValue::Owed(row))));
    rows
}

#[test]
fn every_kind_of_row_comes_back_as_it_was_and_goes_when_it_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, _) = open(root.path()).unwrap();
    assert_eq!(meta.commit(&put(every_row())).unwrap(), 1);
    assert_eq!(rows_of(meta.load().unwrap()), every_row());
    drop(meta);
    let (mut meta, _, _) = open(root.path()).unwrap();
    assert_eq!(rows_of(meta.load().unwrap()), every_row(), "over a restart");
    // Written over, each by itself, then removed.
    for (key, value) in every_row() {
        meta.commit(&put([(key, value)])).unwrap();
    }
    assert_eq!(rows_of(meta.load().unwrap()), every_row());
    let mut removed = Rows::default();
    every_row().into_keys().filter(|key| *key != RowKey::Marks).for_each(|key| removed.put(key, None));
    meta.commit(&removed).unwrap();
    assert_eq!(rows_of(meta.load().unwrap()).len(), 1, "the marks alone are left");
}

#[test]
fn owed_rows_come_in_the_order_of_their_decisions() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, _) = open(root.path()).unwrap();
    let rows = [9, 2, 300].map(|seq| (RowKey::Owed(seq), RowValue::Owed(owed(&[(1, 1)], Outcome::Abort))));
    meta.commit(&put(rows)).unwrap();
    let order: Vec<u64> = meta.load().unwrap().owed.into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(order, [2, 9, 300]);
}

#[test]
fn unstaging_comes_before_what_the_same_commit_stages() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, _) = open(root.path()).unwrap();
    let staged = |id: &str, part, order| {
        let key = RowKey::Pending(id.into(), "g".into(), PartId(part));
        (key, RowValue::Pending(Staged { order, position: position(1, "") }))
    };
    meta.commit(&put([staged("a", 1, 1), staged("a", 2, 2), staged("b", 1, 3)])).unwrap();
    let mut rows = put([staged("a", 5, 4)]);
    rows.unstage(&TransactionalId::from("a"));
    let (key, value) = staged("a", 2, 6);
    rows.put(key, Some(value));
    meta.commit(&rows).unwrap();
    let mut left: Vec<(String, i64, u64)> = (meta.load().unwrap().pending.into_iter())
        .map(|(id, key, staged)| (id.as_str().to_owned(), key.1.0, staged.order))
        .collect();
    left.sort_unstable();
    assert_eq!(left, [("a".to_owned(), 2, 6), ("b".to_owned(), 1, 3)]);
}

#[test]
fn the_incarnation_rises_and_only_a_closed_directory_is_clean() {
    let root = tempfile::tempdir().unwrap();
    let (meta, first, _) = open(root.path()).unwrap();
    assert_eq!((first.incarnation, first.clean, first.cluster_id.as_str()), (0, true, "first-id"));
    Box::new(meta).close().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new(root.path()).unwrap());
    let (meta, second, _) = Meta::open(&disk, root.path(), "another-id").unwrap();
    assert_eq!((second.incarnation, second.clean, second.cluster_id.as_str()), (1, true, "first-id"));
    drop(meta);
    let (meta, third, _) = open(root.path()).unwrap();
    assert_eq!((third.incarnation, third.clean), (2, false), "nobody closed it");
    Box::new(meta).close().unwrap();
    let (_, fourth, _) = open(root.path()).unwrap();
    assert_eq!((fourth.incarnation, fourth.clean), (3, true));
}

#[test]
fn commits_survive_a_kill_and_a_tidied_log() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, wal) = open(root.path()).unwrap();
    for n in 0..50 {
        let key = RowKey::Offset("g".into(), PartId(n));
        let committed = Committed { order: 1, position: position(n, ""), at_wall_ms: 0, expires_wall_ms: None };
        meta.commit(&put([(key, RowValue::Offset(committed))])).unwrap();
        if n == 20 {
            checkpoint(&meta.db, "RESTART").unwrap();
        }
        wal.sync().unwrap();
    }
    meta.tidy(true).unwrap();
    assert_eq!(meta.written(), 50);
    drop(meta);
    let (meta, _, _) = open(root.path()).unwrap();
    assert_eq!(meta.load().unwrap().offsets.len(), 50);
}

#[test]
fn a_torn_write_ahead_log_loses_its_end_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, _) = open(root.path()).unwrap();
    let row = |n| {
        let committed = Committed { order: 1, position: position(n, ""), at_wall_ms: 0, expires_wall_ms: None };
        (RowKey::Offset("g".into(), PartId(n)), RowValue::Offset(committed))
    };
    meta.commit(&put([row(1)])).unwrap();
    let disk = OsDisk::new(root.path()).unwrap();
    let wal = disk.open(Path::new("meta.db-wal")).unwrap();
    let kept = wal.size().unwrap();
    meta.commit(&put([row(2)])).unwrap();
    drop(meta);
    wal.truncate(kept + 40).unwrap();
    let (meta, _, _) = open(root.path()).unwrap();
    let parts: Vec<i64> = meta.load().unwrap().offsets.into_iter().map(|((_, part), _)| part.0).collect();
    assert_eq!(parts, [1]);
}

#[test]
fn no_room_changes_nothing_and_goes_over() {
    let root = tempfile::tempdir().unwrap();
    let (mut meta, _, _) = open(root.path()).unwrap();
    let row = |n, bytes: usize| {
        let position = position(n, &"x".repeat(bytes));
        let committed = Committed { order: 1, position, at_wall_ms: 0, expires_wall_ms: None };
        (RowKey::Offset("g".into(), PartId(n)), RowValue::Offset(committed))
    };
    meta.commit(&put([row(1, 10)])).unwrap();
    let pages: i64 = meta.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |meta: &Meta, pages: i64| {
        meta.db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    limit(&meta, pages + 1);
    let written = meta.written();
    let refused = meta.commit(&put([row(2, 10), row(3, 100_000), row(4, 10)]));
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert_eq!(meta.written(), written, "no number was given");
    assert_eq!(meta.load().unwrap().offsets.len(), 1, "all or none");
    meta.commit(&put([row(5, 10)])).expect("what fits is taken");
    limit(&meta, pages + 1_000);
    meta.commit(&put([row(2, 10), row(3, 100_000), row(4, 10)])).unwrap();
    drop(meta);
    let (meta, _, _) = open(root.path()).unwrap();
    assert_eq!(meta.load().unwrap().offsets.len(), 5);
}

#[test]
fn files_of_other_programs_and_newer_releases_are_refused_and_left_alone() {
    let table: &[(&str, &str)] = &[
        ("belongs to another program", "PRAGMA application_id = 77; PRAGMA user_version = 1;"),
        ("belongs to another program", "CREATE TABLE theirs (x); PRAGMA user_version = 1; PRAGMA application_id = 0;"),
        ("version 999", "PRAGMA user_version = 999;"),
    ];
    for (why, change) in table {
        let root = tempfile::tempdir().unwrap();
        let (meta, _, _) = open(root.path()).unwrap();
        Box::new(meta).close().unwrap();
        let db = Connection::open(root.path().join("meta.db")).unwrap();
        db.execute_batch(change).unwrap();
        drop(db);
        match open(root.path()).map(drop) {
            Err(StoreError::Damaged(text)) => assert!(text.contains(why), "{text}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_no_database_is_damaged() {
    let root = tempfile::tempdir().unwrap();
    let disk = OsDisk::new(root.path()).unwrap();
    let file = disk.create(Path::new("meta.db")).unwrap();
    file.write_at(&[std::io::IoSlice::new(&[0x5a; 8192])], 0).unwrap();
    assert!(matches!(open(root.path()).map(drop), Err(StoreError::Damaged(_))));
}

#[test]
fn a_row_that_cannot_be_read_names_its_table() {
    let tables = [
        ("txn", "INSERT INTO txn VALUES ('a', x'01')"),
        ("owed", "INSERT INTO owed VALUES (1, x'09')"),
        ("pending", "INSERT INTO pending VALUES ('a', 'g', 1, x'')"),
        ("offset", "INSERT INTO offset VALUES ('g', 1, x'0100')"),
        ("grp", "INSERT INTO grp VALUES ('g', x'ff')"),
        ("topic", "INSERT INTO topic VALUES (x'00', x'ff')"),
    ];
    for (table, sql) in tables {
        let root = tempfile::tempdir().unwrap();
        let (meta, _, _) = open(root.path()).unwrap();
        meta.db.execute_batch(sql).unwrap();
        match meta.load().map(drop) {
            Err(StoreError::Damaged(text)) => assert!(text.contains(table), "{text}"),
            other => panic!("{table}: {other:?}"),
        }
    }
}

#[test]
fn bodies_cut_short_anywhere_are_refused() {
    let (txn, owed) = (body::txn_bytes(&txn(open_txn())), body::owed_bytes(&owed(&[(1, 2), (3, 4)], Outcome::Commit)));
    assert!(body::txn(&txn).is_some() && body::owed(&owed).is_some());
    assert!((0..txn.len()).all(|cut| body::txn(&txn[..cut]).is_none()));
    assert!((0..owed.len()).all(|cut| body::owed(&owed[..cut]).is_none()));
}
