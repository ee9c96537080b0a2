use super::*;
use crate::engine::ledger::rows::RowValue;
use crate::store::disk::File;
use crate::store::mem_disk::MemDisk;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn write(disk: &MemDisk, name: &str, bytes: u64) -> io::Result<()> {
    let file: Arc<dyn File> = disk.create(Path::new(name))?;
    file.write_at(&[IoSlice::new(&vec![1; usize::try_from(bytes).unwrap()])], 0)
}

fn full(disk: &MemDisk, name: &str, bytes: u64) {
    let error = write(disk, name, bytes).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn marks_go_by_the_disk_unless_they_are_set() {
    let by_disk = Limits { reserve_bytes: 64 * MIB, ..Limits::default() };
    let set = Limits { reserve_bytes: 0, low_bytes: Some(5), high_bytes: None };
    let crossed = Limits { reserve_bytes: 1, low_bytes: Some(9), high_bytes: Some(3) };
    // Limits, size of the disk; low and high mark, reserve.
    let table = [
        (by_disk, 1000 * GIB, (256 * MIB, 512 * MIB, 64 * MIB)),
        (by_disk, 6 * GIB, (256 * MIB, 512 * MIB, 6 * GIB / 100)),
        (by_disk, 2000 * MIB, (100 * MIB, 200 * MIB, 20 * MIB)),
        (by_disk, 1000 * MIB, (50 * MIB, 100 * MIB, 10 * MIB)),
        (set, GIB, (5, 10, 0)),
        (crossed, GIB, (9, 9, 1)),
        (Limits::OFF, GIB, (0, 0, 0)),
    ];
    for (limits, capacity, (low, high, reserve)) in table {
        assert_eq!(limits.marks(capacity), Marks { low, high, reserve }, "8.2: {limits:?} on {capacity}");
    }
}

#[test]
fn records_are_refused_below_the_low_mark_until_there_is_as_much_as_the_high_one_asks_for() {
    let disk = MemDisk::default();
    disk.set_capacity(1000);
    let limits = Limits { reserve_bytes: 0, low_bytes: Some(100), high_bytes: Some(300) };
    let space = Space::new(Arc::new(disk.clone()), limits);
    assert_eq!(space.room(), Room::Ample, "before the first look");
    use Room::{Ample, Low};
    let steps = [(0, Ample), (900, Ample), (901, Low), (900, Low), (701, Low), (700, Ample), (900, Ample), (1000, Low)];
    for (used, room) in steps {
        write(&disk, "a", used).unwrap();
        disk.open(Path::new("a")).unwrap().truncate(used).unwrap();
        let measured = space.measure().unwrap();
        assert_eq!((measured.free, measured.room, space.room()), (1000 - used, room, room), "8.2: {used} used");
        let alarms = space.alarms();
        assert_eq!(alarms.len(), usize::from(room == Low));
        for word in ["below 100 (storage.low_free_bytes)", "300 (storage.high_free_bytes)"] {
            assert!(alarms.iter().all(|alarm| alarm.contains(word)), "{alarms:?}");
        }
    }
    let disk = MemDisk::default();
    disk.set_capacity(0);
    let space = Space::new(Arc::new(disk), Limits::OFF);
    assert_eq!(space.measure().unwrap().room, Ample, "never, if it is turned off");
}

#[test]
fn what_is_set_aside_is_written_in_full_given_up_once_and_made_again_when_there_is_plenty() {
    let disk = MemDisk::default();
    disk.set_capacity(1000 * KIB);
    let limits = Limits { reserve_bytes: 4 * KIB, low_bytes: Some(KIB), high_bytes: Some(2 * KIB) };
    let space = Space::new(Arc::new(disk.clone()), limits);
    assert!(!space.spend_reserve().unwrap(), "there is none yet");
    assert!(!renewed(&space), "nothing was measured yet");
    space.measure().unwrap();
    assert!(renewed(&space) && !renewed(&space));
    let content = disk.content(Path::new(RESERVE)).unwrap();
    assert_eq!(content.len() as u64, 4 * KIB);
    assert!(content.chunks(512).all(|sector| sector.iter().any(|byte| *byte != 0)), "not sparse");
    write(&disk, "a", 996 * KIB).unwrap();
    full(&disk, "b", 1);
    assert!(space.spend_reserve().unwrap() && !space.spend_reserve().unwrap());
    write(&disk, "b", KIB).unwrap();
    assert_eq!((space.times_spent(), space.room(), space.alarms().len()), (1, Room::Low, 2), "not for records");
    space.measure().unwrap();
    assert!(!renewed(&space), "3 KiB are no plenty");
    disk.remove(Path::new("a")).unwrap();
    space.measure().unwrap();
    assert!(renewed(&space));
    assert!(space.alarms().is_empty());
    // The next process finds it.
    let next = Space::new(Arc::new(disk), limits);
    assert!(next.spend_reserve().unwrap());
}

fn renewed(space: &Space) -> bool {
    match space.renew_reserve().unwrap() {
        Renewed::Made => true,
        Renewed::NotDue => false,
        Renewed::Failed(error) => panic!("{error}"),
    }
}

#[test]
fn what_could_not_be_set_aside_in_full_is_taken_back() {
    use crate::store::faults::{Fault, Operation, Rule};
    for (operation, after) in [(Operation::Write, 1), (Operation::Sync, 0), (Operation::Rename, 0)] {
        let disk = MemDisk::default();
        let limits = Limits { reserve_bytes: 4 * MIB, ..Limits::OFF };
        let space = Space::new(Arc::new(disk.clone()), limits);
        space.measure().unwrap();
        disk.faults().add(Rule { after, ..Rule::once(operation, "", Fault::NoSpace) });
        assert!(matches!(space.renew_reserve(), Ok(Renewed::Failed(_))));
        assert_eq!(disk.used_bytes(), 0, "{operation:?}");
        assert!(renewed(&space));
        // A directory is everybody's: that one ends the process.
        assert!(space.spend_reserve().unwrap());
        disk.faults().add(Rule { after: 1, ..Rule::once(Operation::Sync, "", Fault::Io) });
        assert!(matches!(space.renew_reserve(), Err(StoreError::Broken(_))));
    }
}

#[test]
fn what_an_earlier_process_left_half_made_or_too_small_is_made_anew() {
    let disk = MemDisk::default();
    write(&disk, "reserve.bin.tmp", KIB).unwrap();
    write(&disk, RESERVE, KIB).unwrap();
    let space = Space::new(Arc::new(disk.clone()), Limits { reserve_bytes: 4 * KIB, ..Limits::OFF });
    assert_eq!(disk.used_bytes(), KIB);
    space.measure().unwrap();
    assert!(renewed(&space) && !renewed(&space));
    assert_eq!(disk.used_bytes(), 4 * KIB);
}

/// A store that writes so many bytes to a disk for each commit.
struct Writing(MemDisk, u64, u64);

impl LedgerStore for Writing {
    fn commit(&mut self, _: &Rows) -> Result<u64, StoreError> {
        write(&self.0, &format!("commit-{}", self.1), self.2).map_err(|e| StoreError::from_write("commit", &e))?;
        self.1 += 1;
        Ok(self.1)
    }

    fn tidy(&mut self, _: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn written(&self) -> u64 {
        self.1
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_commit_that_finds_no_room_is_tried_once_more_with_what_was_set_aside() {
    let disk = MemDisk::default();
    disk.set_capacity(1000 * KIB);
    let space = Arc::new(Space::new(Arc::new(disk.clone()), Limits { reserve_bytes: 2 * KIB, ..Limits::OFF }));
    space.measure().unwrap();
    assert!(renewed(&space));
    let mut store = Spared::new(Box::new(Writing(disk.clone(), 0, KIB)), Arc::clone(&space));
    write(&disk, "a", 998 * KIB).unwrap();
    let (mut decision, mut mark) = (Rows::default(), Rows::default());
    decision.put(RowKey::Owed(1), None);
    mark.put(RowKey::Marks, Some(RowValue::Marks(crate::engine::ledger::rows::Marks::default())));
    assert!(matches!(store.commit(&mark), Err(StoreError::Full(_))), "8.2: not for every row");
    assert_eq!(store.commit(&decision).unwrap(), 1);
    disk.remove(Path::new("commit-0")).unwrap();
    disk.set_capacity(disk.used_bytes());
    assert!(matches!(store.commit(&decision), Err(StoreError::Full(_))), "8.2: once");
    assert_eq!((store.written(), space.times_spent()), (1, 1));
}
