use std::path::Path;

use super::*;
use crate::store::disk::Disk;
use crate::store::os_disk::OsDisk;

/// A file whose cache stays whatever is done, over what the device has.
struct Stubborn {
    cached: Vec<u8>,
    device: Option<Vec<u8>>,
    /// It never tells what is in memory.
    mute: bool,
}

fn read(from: &[u8], buf: &mut [u8], pos: u64) -> usize {
    let rest = from.get(usize::try_from(pos).unwrap()..).unwrap_or_default();
    let count = rest.len().min(buf.len());
    buf[..count].copy_from_slice(&rest[..count]);
    count
}

impl File for Stubborn {
    fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        Ok(read(&self.cached, buf, pos))
    }

    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        Ok(if self.mute { None } else { Some(read(&self.cached, buf, pos)) })
    }

    fn read_direct(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        Ok(self.device.as_ref().map(|device| read(device, buf, pos)))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.cached.len()).unwrap())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(())
    }
}

fn stubborn(cached: &[u8], device: Option<&[u8]>) -> Arc<dyn File> {
    Arc::new(Stubborn { cached: cached.to_vec(), device: device.map(<[u8]>::to_vec), mute: false })
}

#[test]
fn a_file_system_that_does_not_tell_what_is_in_memory_proves_nothing() {
    let mute = |device: Option<&[u8]>| -> Arc<dyn File> {
        Arc::new(Stubborn { cached: vec![1, 2], device: device.map(<[u8]>::to_vec), mute: true })
    };
    let Source::Past(past) = drop_cache(&mute(Some(&[1, 9]))).unwrap() else { panic!("read past it, 3.5") };
    let mut found = [0; 2];
    assert_eq!((past.read_at(&mut found, 0).unwrap(), found), (2, [1, 9]));
    assert!(matches!(drop_cache(&mute(None)).unwrap(), Source::Cached), "and that is told");
}

#[test]
fn a_cache_that_stays_is_read_past_or_told() {
    let mut long = vec![7; 3 * CHUNK_BYTES + 5];
    let same = stubborn(&long, Some(&long));
    let Source::Past(past) = drop_cache(&same).unwrap() else { panic!("read past it, 3.5") };
    assert!(reads_same(&*same, &*past).unwrap());
    let cached = long.clone();
    long[2 * CHUNK_BYTES + 9] = 0;
    let lies = stubborn(&cached, Some(&long));
    let Source::Past(past) = drop_cache(&lies).unwrap() else { panic!("read past it, 3.5") };
    assert!(!reads_same(&*lies, &*past).unwrap());
    let mut byte = [1];
    assert_eq!((past.read_at(&mut byte, 2 * CHUNK_BYTES as u64 + 9).unwrap(), byte), (1, [0]));
    let short = stubborn(&cached, Some(&cached[..CHUNK_BYTES]));
    let Source::Past(past) = drop_cache(&short).unwrap() else { panic!("read past it, 3.5") };
    assert!(!reads_same(&*short, &*past).unwrap());
    assert!(matches!(drop_cache(&stubborn(&cached, None)).unwrap(), Source::Cached));
    assert!(matches!(drop_cache(&stubborn(&[], None)).unwrap(), Source::Dropped), "nothing to be believed");
}

#[test]
fn the_systems_files_are_dropped_or_read_past_the_cache() {
    let root = tempfile::tempdir().unwrap();
    let disk = OsDisk::new(root.path()).unwrap();
    let file = disk.create(Path::new("a")).unwrap();
    let content: Vec<u8> = (0..1_000_003_u32).map(|n| (n % 251) as u8).collect();
    file.write_at(&[IoSlice::new(&content)], 0).unwrap();
    file.sync_data().unwrap();
    // Past the cache at odd places and lengths, and beyond the end: as anyhow else.
    for (pos, len) in [(0, 1), (0, 4096), (4095, 2), (5000, 70_000), (999_000, 4096), (1_000_003, 1), (2_000_000, 9)] {
        let mut direct = vec![0; len];
        let Some(count) = file.read_direct(&mut direct, pos).unwrap() else {
            return; // No way past the cache on this file system.
        };
        let mut cached = vec![0; len];
        assert_eq!(file.read_at(&mut cached, pos).unwrap(), count, "{pos} {len}");
        assert_eq!(direct, cached, "{pos} {len}");
    }
    let dropped = drop_cache(&file).unwrap();
    assert!(!matches!(dropped, Source::Cached));
}
