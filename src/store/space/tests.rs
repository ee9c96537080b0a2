use super::*;
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
        (by_disk, 1000 * GIB, (GIB, 2 * GIB, 64 * MIB)),
        (by_disk, 20 * GIB, (GIB, 2 * GIB, 64 * MIB)),
        (by_disk, 10 * GIB, (GIB / 2, GIB, 64 * MIB)),
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
        assert_eq!(space.alarms().len(), usize::from(room == Low));
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
    assert!(!space.renew_reserve().unwrap(), "nothing was measured yet");
    space.measure().unwrap();
    assert!(space.renew_reserve().unwrap() && !space.renew_reserve().unwrap());
    let content = disk.content(Path::new(RESERVE)).unwrap();
    assert_eq!(content.len() as u64, 4 * KIB);
    assert!(content.chunks(512).all(|sector| sector.iter().any(|byte| *byte != 0)), "not sparse");
    write(&disk, "a", 996 * KIB).unwrap();
    full(&disk, "b", 1);
    assert!(space.spend_reserve().unwrap() && !space.spend_reserve().unwrap());
    write(&disk, "b", KIB).unwrap();
    assert_eq!((space.times_spent(), space.alarms().len()), (1, 1));
    space.measure().unwrap();
    assert!(!space.renew_reserve().unwrap(), "3 KiB are no plenty");
    disk.remove(Path::new("a")).unwrap();
    space.measure().unwrap();
    assert!(space.renew_reserve().unwrap());
    assert!(space.alarms().is_empty());
    // The next process finds it.
    let next = Space::new(Arc::new(disk), limits);
    assert!(next.spend_reserve().unwrap());
}

#[test]
fn what_could_not_be_set_aside_in_full_is_taken_back() {
    use crate::store::faults::{Fault, Operation, Rule};
    for operation in [Operation::Write, Operation::Sync] {
        let disk = MemDisk::default();
        let limits = Limits { reserve_bytes: 4 * MIB, ..Limits::OFF };
        let space = Space::new(Arc::new(disk.clone()), limits);
        space.measure().unwrap();
        disk.faults().add(Rule { after: 1, ..Rule::once(operation, "", Fault::NoSpace) });
        assert!(space.renew_reserve().is_err());
        assert_eq!(disk.used_bytes(), 0, "{operation:?}");
        assert!(space.renew_reserve().unwrap());
    }
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
    assert!(space.renew_reserve().unwrap());
    let mut store = Spared::new(Box::new(Writing(disk.clone(), 0, KIB)), Arc::clone(&space));
    write(&disk, "a", 998 * KIB).unwrap();
    assert_eq!(store.commit(&Rows::default()).unwrap(), 1);
    disk.remove(Path::new("commit-0")).unwrap();
    disk.set_capacity(disk.used_bytes());
    assert!(matches!(store.commit(&Rows::default()), Err(StoreError::Full(_))), "8.2: once");
    assert_eq!((store.written(), space.times_spent()), (1, 1));
}
