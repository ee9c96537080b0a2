//! SQLite's files on the simulated disk, so that one power cut hits the partition logs and `meta.db` alike.
//!
//! SQLite is given a file system of its own by way of its C interface, as the process's default. A path is
//! `/<mount>/<file>`: each simulated world mounts its disk under a name. There is one connection to a file at a time and
//! it holds it exclusively, so locks are not needed, nor memory shared between connections.

#![allow(unsafe_code, reason = "SQLite asks for a file system through C function pointers")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rusqlite::ffi;

use crate::store::disk::{Disk, File};
use crate::store::mem_disk::MemDisk;

/// Disks by the name they are mounted under.
static DISKS: Mutex<BTreeMap<String, MemDisk>> = Mutex::new(BTreeMap::new());

/// A number rising with every use: what stands for randomness here, so that a run repeats itself.
static DRAWN: Mutex<u64> = Mutex::new(0);

/// Makes `disk` the one that paths below `/<name>/` lead to, and this the file system of all of the process's SQLite.
pub fn mount(name: &str, disk: &MemDisk) {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    let code = *REGISTERED.get_or_init(register);
    assert_eq!(code, ffi::SQLITE_OK, "SQLite takes the file system");
    DISKS.lock().insert(name.to_owned(), disk.clone());
}

/// Forgets a disk.
pub fn unmount(name: &str) {
    DISKS.lock().remove(name);
}

/// SQLite draws numbers as in a process that has just begun.
pub fn begin_anew() {
    *DRAWN.lock() = 0;
    // SAFETY: no bytes are asked for; a null buffer with length 0 resets the generator, as documented.
    unsafe { ffi::sqlite3_randomness(0, std::ptr::null_mut()) };
}

/// An open file, behind what SQLite knows of it.
#[repr(C)]
struct Handle {
    base: ffi::sqlite3_file,
    open: *mut Open,
}

struct Open {
    disk: MemDisk,
    file: Arc<dyn File>,
    path: PathBuf,
    delete_on_close: bool,
    /// A journal whose name is not durable yet: its first sync makes it so, as on a real system.
    fresh_journal: bool,
}

fn register() -> c_int {
    let vfs = ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: c_int::try_from(size_of::<Handle>()).unwrap(),
        mxPathname: 512,
        pNext: std::ptr::null_mut(),
        zName: c"oncelog-sim".as_ptr(),
        pAppData: std::ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    // SAFETY: the value lives as long as the process, and all its functions are of the right kind.
    unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 1) }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(locked),
    xUnlock: Some(locked),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// The disk and the path on it that a name means.
fn place(name: *const c_char) -> Option<(MemDisk, PathBuf)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: SQLite gives names that end with a zero byte.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    let (mount, file) = name.trim_start_matches('/').split_once('/')?;
    let disk = DISKS.lock().get(mount)?.clone();
    Some((disk, PathBuf::from(file)))
}

/// What is open behind a handle.
///
/// # Safety
/// `file` is one that [`open`] filled and [`close`] has not seen.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Open {
    // SAFETY: by the caller's word; SQLite uses a file from one thread at a time.
    unsafe { &mut *(*file.cast::<Handle>()).open }
}

fn code(result: io::Result<()>, failed: c_int) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) if error.kind() == io::ErrorKind::StorageFull => ffi::SQLITE_FULL,
        Err(_) => failed,
    }
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let handle = file.cast::<Handle>();
    // SAFETY: SQLite gives room for a handle; without methods it does not close what was not opened.
    unsafe { (*handle).base.pMethods = std::ptr::null() };
    let Some((disk, path)) = place(name) else { return ffi::SQLITE_CANTOPEN };
    let (found, fresh) = match disk.open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && flags & ffi::SQLITE_OPEN_CREATE != 0 => {
            (disk.create(&path), true)
        }
        found => (found, false),
    };
    let Ok(opened) = found else { return ffi::SQLITE_CANTOPEN };
    let journal = ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    let open = Open {
        disk,
        file: opened,
        path,
        delete_on_close: flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0,
        fresh_journal: fresh && flags & journal != 0,
    };
    // SAFETY: as above; the box is taken back by `close`.
    unsafe {
        (*handle).open = Box::into_raw(Box::new(open));
        (*handle).base.pMethods = &raw const METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes once what `open` filled.
    let open = unsafe { Box::from_raw((*file.cast::<Handle>()).open) };
    if open.delete_on_close {
        return code(open.disk.remove(&open.path), ffi::SQLITE_IOERR_DELETE);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file, and room for `count` bytes.
    let (open, into) = unsafe {
        (opened(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), usize::try_from(count).unwrap_or(0)))
    };
    match open.file.read_at(into, u64::try_from(at).unwrap_or(0)) {
        Ok(got) if got == into.len() => ffi::SQLITE_OK,
        Ok(got) => {
            into[got..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        Err(_) => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file, and `count` bytes.
    let (open, from) =
        unsafe { (opened(file), std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(count).unwrap_or(0))) };
    code(open.file.write_at(&[IoSlice::new(from)], u64::try_from(at).unwrap_or(0)), ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    code(open.file.truncate(u64::try_from(size).unwrap_or(0)), ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    let mut synced = open.file.sync_data();
    if synced.is_ok() && std::mem::take(&mut open.fresh_journal) {
        synced = open.disk.sync_dir(open.path.parent().unwrap_or(Path::new("")));
    }
    // No room at a sync is as bad as any other failure of one.
    if synced.is_ok() { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_FSYNC }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file, and room for a number.
    let open = unsafe { opened(file) };
    match open.file.size() {
        Ok(bytes) => {
            // SAFETY: as above.
            unsafe { *size = i64::try_from(bytes).unwrap_or(i64::MAX) };
            ffi::SQLITE_OK
        }
        Err(_) => ffi::SQLITE_IOERR_FSTAT,
    }
}

unsafe extern "C" fn locked(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn reserved(_: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: room for a number.
    unsafe { *out = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    512
}

/// What the simulated disk promises beyond the least: bytes beside those written are left alone.
unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    let Some((disk, path)) = place(name) else { return ffi::SQLITE_IOERR_DELETE };
    match disk.remove(&path) {
        Ok(()) if sync_dir != 0 => {
            code(disk.sync_dir(path.parent().unwrap_or(Path::new(""))), ffi::SQLITE_IOERR_DIR_FSYNC)
        }
        Ok(()) => ffi::SQLITE_OK,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => ffi::SQLITE_IOERR_DELETE,
    }
}

unsafe extern "C" fn access(_: *mut ffi::sqlite3_vfs, name: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    let there = place(name).is_some_and(|(disk, path)| disk.exists(&path).unwrap_or(false));
    // SAFETY: room for a number.
    unsafe { *out = c_int::from(there) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: a name that ends with a zero byte, and `room` bytes to copy it to.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > usize::try_from(room).unwrap_or(0) {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast::<c_char>(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut ffi::sqlite3_vfs, count: c_int, out: *mut c_char) -> c_int {
    // SAFETY: room for `count` bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), usize::try_from(count).unwrap_or(0)) };
    let mut drawn = DRAWN.lock();
    for (byte, n) in out.iter_mut().zip(0_u64..) {
        *byte = (drawn.wrapping_add(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56).to_le_bytes()[0];
    }
    *drawn = drawn.wrapping_add(1);
    count
}

unsafe extern "C" fn sleep(_: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn current_time(_: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: room for a number.
    unsafe { *out = 2_460_000.5 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}
