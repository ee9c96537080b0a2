use super::*;
use crate::store::disk::replace_file;
use crate::store::faults::{Fault, Rule};

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn write(file: &Arc<dyn File>, bytes: &[u8], pos: u64) {
    file.write_at(&[IoSlice::new(bytes)], pos).unwrap();
}

fn made(disk: &MemDisk) -> Arc<dyn File> {
    let file = disk.create(path("a")).unwrap();
    write(&file, &[1; 1024], 0);
    file.sync_data().unwrap();
    disk.sync_dir(path("")).unwrap();
    file
}

#[test]
fn what_was_synced_survives_and_the_rest_may_not() {
    for seed in 0..200 {
        let disk = MemDisk::default();
        let file = made(&disk);
        write(&file, &[2; 1024], 512);
        disk.create(path("b")).unwrap();
        let after = disk.crash(Cut::Seed(seed));
        let content = after.content(path("a")).unwrap();
        assert_eq!(content[..512], [1; 512], "seed {seed}");
        assert!(content[512..1024] == [1; 512] || content[512..1024] == [2; 512], "seed {seed}: a sector is whole");
        assert!((1024..=1536).contains(&content.len()), "seed {seed}");
        assert!(content[1024..].iter().all(|byte| *byte == 2) || content[1024..].iter().all(|byte| *byte == 0));
    }
    let disk = MemDisk::default();
    let file = made(&disk);
    write(&file, &[2; 10], 0);
    disk.create(path("b")).unwrap();
    assert_eq!(disk.crash(Cut::LoseAll).content(path("a")).unwrap(), [1; 1024]);
    assert!(!disk.crash(Cut::LoseAll).exists(path("b")).unwrap());
    assert_eq!(disk.crash(Cut::LoseNothing).content(path("a")).unwrap()[..10], [2; 10]);
    assert!(disk.crash(Cut::LoseNothing).exists(path("b")).unwrap());
}

#[test]
fn a_failed_sync_makes_the_cache_lie() {
    let disk = MemDisk::default();
    let file = made(&disk);
    write(&file, &[2; 512], 0);
    disk.faults().add(Rule::once(Operation::Sync, "a", Fault::NoSpace));
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(disk.content(path("a")).unwrap()[0], 2, "reads back as written");
    assert_eq!(disk.crash(Cut::LoseNothing).content(path("a")).unwrap()[0], 1, "and is gone after the cut");
    file.drop_cache().unwrap();
    assert_eq!(disk.content(path("a")).unwrap()[0], 1, "or when it is read from the device");
    assert_eq!(file.read_at_nowait(&mut [0], 0).unwrap(), None);
}

#[test]
fn a_replaced_file_is_old_or_new() {
    for seed in 0..100 {
        let disk = MemDisk::default();
        replace_file(&disk, path("a"), b"old").unwrap();
        disk.faults().add(Rule { after: 1, ..Rule::once(Operation::Sync, "", Fault::Io) });
        replace_file(&disk, path("a"), b"newer").unwrap_err();
        let content = disk.crash(Cut::Seed(seed)).content(path("a")).unwrap();
        assert!(content == b"old" || content == b"newer", "seed {seed}");
    }
}

#[test]
fn names_move_with_their_directory() {
    let disk = MemDisk::default();
    disk.create_dir(path("t-0")).unwrap();
    write(&disk.create(path("t-0/x")).unwrap(), b"x", 0);
    disk.rename(path("t-0"), path("t-0.f-delete")).unwrap();
    assert_eq!(disk.list(path("")).unwrap(), ["t-0.f-delete"]);
    assert_eq!(disk.content(path("t-0.f-delete/x")).unwrap(), b"x");
    assert!(disk.remove_dir(path("t-0.f-delete")).is_err());
    disk.remove(path("t-0.f-delete/x")).unwrap();
    disk.remove_dir(path("t-0.f-delete")).unwrap();
    assert!(!disk.exists(path("t-0.f-delete")).unwrap());
}

#[test]
fn a_short_write_leaves_its_front() {
    let disk = MemDisk::default();
    let file = disk.create(path("a")).unwrap();
    disk.faults().add(Rule::once(Operation::Write, "a", Fault::Short(3)));
    let error = file.write_at(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")], 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.content(path("a")).unwrap(), b"abc");
}
