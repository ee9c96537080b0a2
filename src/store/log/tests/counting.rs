//! A disk that counts what is read, and whose cache can be made to lie.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::store::disk::{Disk, File};

/// A disk in memory with a counter before it.
#[derive(Clone)]
pub(super) struct Counting {
    disk: MemDisk,
    read: Arc<AtomicU64>,
}

impl Counting {
    pub(super) fn new(disk: &MemDisk) -> Self {
        Self { disk: disk.clone(), read: Arc::default() }
    }

    /// Bytes of logs read so far.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn wrap(&self, path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        let counts = path.extension().is_some_and(|kind| kind == "log");
        Arc::new(CountingFile { file, read: Arc::clone(&self.read), counts })
    }
}

struct CountingFile {
    file: Arc<dyn File>,
    read: Arc<AtomicU64>,
    counts: bool,
}

impl File for CountingFile {
    fn write_at(&self, parts: &[IoSlice<'_>], pos: u64) -> io::Result<()> {
        self.file.write_at(parts, pos)
    }

    fn read_at(&self, buf: &mut [u8], pos: u64) -> io::Result<usize> {
        let read = self.file.read_at(buf, pos)?;
        if self.counts {
            self.read.fetch_add(u64::try_from(read).unwrap(), Ordering::Relaxed);
        }
        Ok(read)
    }

    fn read_at_nowait(&self, buf: &mut [u8], pos: u64) -> io::Result<Option<usize>> {
        self.file.read_at_nowait(buf, pos)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.truncate(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.file.drop_cache()
    }
}

impl Disk for Counting {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.disk.open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(path, self.disk.create(path)?))
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.disk.size(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    fn modified_ms(&self, path: &Path) -> io::Result<i64> {
        self.disk.modified_ms(path)
    }
}

/// Opens the log of a rig over a counter.
fn open_counted(disk: &MemDisk, settings: LogSettings, how: OpenHow) -> (Opened, u64) {
    let counting = Counting::new(disk);
    let mut state = State::new();
    let disk: Arc<dyn Disk> = Arc::new(counting.clone());
    let (log, opened) = Log::open(disk, &PathBuf::from(DIR), settings, how, &mut state).unwrap();
    assert_eq!(log.debt(), opened.scanned_bytes, "2.2: the next start would have it to do again");
    (opened, counting.read())
}

/// What an open may read beside the debt: the last batches of each segment, whole buffers, and the headers after the
/// last index entry.
const SPARE_BYTES: u64 = 128 * 1024;

#[test]
fn a_start_reads_no_more_than_the_debt() {
    let settings = LogSettings { segment_bytes: 1 << 20, index_interval_bytes: 4096, segment_ms: i64::MAX };
    for (debt_batches, clean) in [(0, true), (0, false), (40, false), (400, false)] {
        let mut rig = Rig::new();
        rig.log.set_settings(settings);
        for _ in 0..3_000 {
            rig.append_data(1, 1_000, None);
        }
        rig.checkpoint();
        let segments = rig.log.extents().len() as u64;
        assert!(segments >= 3);
        let before = rig.log.next_offset();
        for _ in 0..debt_batches {
            rig.append_data(1, 1_000, None);
        }
        rig.sync();
        let debt: u64 = rig.batches.iter().skip(usize::try_from(before).unwrap()).map(|b| b.len() as u64).sum();
        let disk = rig.disk.crash(crate::store::mem_disk::Cut::LoseNothing);
        let how = OpenHow { point: rig.point, log_start: 0, clean, witness: 0, incarnation: i32::MAX };
        let (opened, read) = open_counted(&disk, settings, how);
        assert_eq!(opened.next_offset, rig.log.next_offset());
        assert_eq!(opened.scanned_bytes, debt, "2.2");
        // Once to verify, once to rebuild what is known of producers.
        let most = 2 * debt + segments * SPARE_BYTES;
        assert!(read <= most, "C-70, 2.6: {read} of at most {most}, {debt_batches} batches, clean {clean}");
    }
}
