use super::*;
use crate::store::disk::replace_file;

#[test]
fn files_do_what_the_trait_says() {
    let root = tempfile::tempdir().unwrap();
    let disk = OsDisk::new(&root.path().join("data")).unwrap();
    let path = Path::new("t-0/a");
    disk.create_dir(Path::new("t-0")).unwrap();
    assert_eq!(disk.create_dir(Path::new("t-0")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let not_there = disk.open(path).err().map(|error| error.kind());
    assert_eq!(not_there, Some(io::ErrorKind::NotFound));
    let file = disk.create(path).unwrap();
    // More slices than one call takes, empty ones among them.
    let pieces: Vec<Vec<u8>> = (0..3000_u16).map(|at| at.to_be_bytes()[usize::from(at % 3 / 2)..].to_vec()).collect();
    let whole = pieces.concat();
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    slices.insert(1, IoSlice::new(b""));
    file.write_at(&slices, 5).unwrap();
    file.sync_data().unwrap();
    let mut read = vec![9; whole.len() + 100];
    let size = u64::try_from(whole.len()).unwrap() + 5;
    assert_eq!(file.read_at(&mut read, 5).unwrap(), whole.len());
    assert_eq!(read[..whole.len()], whole);
    assert_eq!((file.size().unwrap(), disk.size(path).unwrap()), (size, size));
    // Whether anything is cached is the system's business; if it is, it is right.
    if let Some(count) = file.read_at_nowait(&mut read, 5).unwrap() {
        assert_eq!(read[..count], whole[..count]);
    }
    file.drop_cache().unwrap();
    file.truncate(6).unwrap();
    assert_eq!(file.size().unwrap(), 6);
    replace_file(&disk, path, b"new").unwrap();
    assert_eq!(disk.list(Path::new("t-0")).unwrap(), ["a"]);
    assert_eq!(disk.size(path).unwrap(), 3);
    disk.rename(Path::new("t-0"), Path::new("t-1")).unwrap();
    assert!(!disk.exists(path).unwrap());
    disk.remove(Path::new("t-1/a")).unwrap();
    disk.remove_dir(Path::new("t-1")).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    disk.sync_all().unwrap();
    assert!(disk.free_bytes().unwrap() > 0);
    disk.is_own_mount().unwrap();
}
