//! `meta.db`: transactions, offsets, groups, catalog in SQLite; the only write-ahead log there is.
//!
//! One connection writes, one commit a turn. A commit is *written* when SQLite has it in its write-ahead log, and
//! *flushed* when that log's bytes are on disk. The connection runs with `synchronous=NORMAL` while it serves, so that
//! a commit only writes; [`WalFile::sync`] flushes, which makes the pair what `FULL` does in one call, with the
//! difference that the next commit need not wait for the flush of the one before. Opening, migrating, checkpointing and
//! closing run with `FULL`.

mod body;
mod bytes;
mod load;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, params};

use super::cache::{Source, drop_cache, reads_same};
use super::disk::{Disk, File};
use crate::engine::ledger::rows::{PartRow, RowKey, RowValue, Rows};
use crate::store::StoreError;
use crate::store::log::dirs_with_records;

/// Commits in the write-ahead log from which a checkpoint is made when nothing else is to do; few in the simulator, whose
/// histories are short.
const CHECKPOINT_IDLE_COMMITS: u64 = if cfg!(simulator) { 8 } else { 64 };
/// Commits in the write-ahead log from which a checkpoint is made whatever is to do. It keeps the file at some ten MiB that
/// are written over again and again: such bytes reach the disk with one flush where bytes that make a file longer take
/// two. The file itself never shrinks, so its size says nothing about what is in it.
const CHECKPOINT_FORCED_COMMITS: u64 = 1_024;

/// What the ledger's owner needs of its store.
pub trait LedgerStore: Send {
    /// Writes one turn's rows, all or none. The number given rises by one with every commit; the rows survive a kill
    /// now, and a power cut once the write-ahead log is flushed.
    ///
    /// # Errors
    /// `Full`: nothing changed. `Broken`: it is not known what is stored.
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError>;

    /// Moves the write-ahead log into the database when that is worth it: when `idle`, or when the log is long.
    ///
    /// # Errors
    /// `Broken`.
    fn tidy(&mut self, idle: bool) -> Result<(), StoreError>;

    /// The last commit's number.
    fn written(&self) -> u64;

    /// Marks the directory as cleanly stopped and closes the file. Every log is synced before.
    ///
    /// # Errors
    /// As `commit`.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// What a start found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Number of this start, the leader epoch of every batch and marker from now on.
    pub incarnation: i32,
    /// Whether the stop before was clean.
    pub clean: bool,
    /// The cluster's id, made at the first start.
    pub cluster_id: String,
    /// What the file was read through.
    pub cache: CacheTrust,
}

/// Whether what was read of the database is what the device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTrust {
    /// It is; or the stop before was clean, and nothing speaks against it.
    Proved,
    /// The file system neither dropped its cache nor gave a way past it: it was believed.
    Believed,
}

/// The open database.
pub struct Meta {
    db: Connection,
    written: u64,
    /// The last commit that a checkpoint has moved into the database.
    moved: u64,
}

/// The write-ahead log's file, to flush it from another thread.
#[derive(Clone)]
pub struct WalFile(Arc<dyn File>);

impl WalFile {
    /// Flushes every commit written so far.
    ///
    /// # Errors
    /// `Broken`: never try again (storage rule 3.5).
    pub fn sync(&self) -> Result<(), StoreError> {
        self.0.sync_data().map_err(|error| StoreError::from_sync("meta.db-wal", &error))
    }
}

impl Meta {
    /// Opens or makes `meta.db` in `root`, which is `disk`'s own directory; raises the incarnation and marks the directory as running, all on disk.
    /// `fresh_cluster_id` is used at the first start only.
    ///
    /// # Errors
    /// `Damaged` for a file that cannot be ours or is corrupt, `Broken`, `Full`.
    pub fn open(
        disk: &Arc<dyn Disk>,
        root: &Path,
        fresh_cluster_id: &str,
    ) -> Result<(Self, Boot, WalFile), StoreError> {
        let (path, wal) = (PathBuf::from("meta.db"), PathBuf::from("meta.db-wal"));
        let left_running = disk.size(&wal).is_ok_and(|size| size > 0);
        let mut cache = CacheTrust::Proved;
        for file in [&path, &wal].into_iter().filter(|_| left_running) {
            if distrust_cache(disk, file)? == CacheTrust::Believed {
                cache = CacheTrust::Believed;
            }
        }
        let mut db = Connection::open(root.join(&path)).map_err(|e| sql_error("open meta.db", &e))?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(|e| sql_error("configure", &e))?;
        db.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
             PRAGMA journal_size_limit = -1; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;
             PRAGMA mmap_size = 0; PRAGMA foreign_keys = OFF;",
        )
        .map_err(|e| sql_error("configure", &e))?;
        db.set_prepared_statement_cache_capacity(64);
        if left_running {
            checkpoint(&db, "TRUNCATE")?;
            let verdict: String = db
                .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
                .map_err(|e| sql_error("quick_check", &e))?;
            if verdict != "ok" {
                return Err(StoreError::Damaged(format!("meta.db: {verdict}")));
            }
        }
        schema::migrate(&mut db)?;
        let boot = Boot { cache, ..start(&db, fresh_cluster_id, &**disk)? };
        let wal_file = disk.open(&wal).map_err(|e| StoreError::from_write("open meta.db-wal", &e))?;
        disk.sync_dir(Path::new("")).map_err(|e| StoreError::from_sync("data directory", &e))?;
        db.execute_batch("PRAGMA synchronous = NORMAL;").map_err(|e| sql_error("configure", &e))?;
        Ok((Self { db, written: 0, moved: 0 }, boot, WalFile(wal_file)))
    }

    fn apply(&mut self, rows: &Rows) -> Result<(), rusqlite::Error> {
        let commit = self.db.transaction()?;
        for id in rows.unstaged() {
            commit.prepare_cached("DELETE FROM pending WHERE txn = ?1")?.execute([id.as_str()])?;
        }
        for (key, value) in rows.changes() {
            match value {
                Some(value) => upsert(&commit, key, value)?,
                None => remove(&commit, key)?,
            }
        }
        commit.commit()
    }
}

impl LedgerStore for Meta {
    fn commit(&mut self, rows: &Rows) -> Result<u64, StoreError> {
        self.apply(rows).map_err(|error| sql_error("commit", &error))?;
        self.written = self.written.saturating_add(1);
        Ok(self.written)
    }

    fn tidy(&mut self, idle: bool) -> Result<(), StoreError> {
        let worth = if idle { CHECKPOINT_IDLE_COMMITS } else { CHECKPOINT_FORCED_COMMITS };
        if self.written.saturating_sub(self.moved) < worth {
            return Ok(());
        }
        self.moved = self.written;
        checkpoint(&self.db, "RESTART")
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.db
            .execute_batch("PRAGMA synchronous = FULL; UPDATE boot SET clean = 1;")
            .map_err(|e| sql_error("close", &e))?;
        checkpoint(&self.db, "TRUNCATE")?;
        self.db.close().map_err(|(_, e)| sql_error("close", &e))
    }
}

/// After a stop that was not clean the page cache may hold what the disk does not (storage rule 3.5): flush, drop,
/// and let SQLite read from the device. A cache that stays must hold what the device has.
fn distrust_cache(disk: &Arc<dyn Disk>, path: &Path) -> Result<CacheTrust, StoreError> {
    let name = path.display();
    let failed = |error: std::io::Error| StoreError::from_read(&name.to_string(), &error);
    let file = disk.open(path).map_err(failed)?;
    file.sync_data().map_err(|e| StoreError::from_sync(&name.to_string(), &e))?;
    match drop_cache(&file).map_err(failed)? {
        Source::Dropped => Ok(CacheTrust::Proved),
        Source::Cached => Ok(CacheTrust::Believed),
        Source::Past(past) if reads_same(&*file, &*past).map_err(failed)? => Ok(CacheTrust::Proved),
        Source::Past(_) => Err(StoreError::Damaged(format!(
            "{name}: memory holds what never reached the disk, and the system does not let go of it; drop the page cache \
             (write 1 to /proc/sys/vm/drop_caches) or restart the machine, then start again"
        ))),
    }
}

fn start(db: &Connection, fresh_cluster_id: &str, disk: &dyn Disk) -> Result<Boot, StoreError> {
    let found = db.query_row("SELECT incarnation, clean, cluster FROM boot", [], |row| {
        Ok(Boot { incarnation: row.get(0)?, clean: row.get(1)?, cluster_id: row.get(2)?, cache: CacheTrust::Proved })
    });
    let boot = match found {
        Ok(boot) => Boot { incarnation: boot.incarnation.saturating_add(1), ..boot },
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            refuse_orphaned_logs(disk)?;
            Boot { incarnation: 0, clean: true, cluster_id: fresh_cluster_id.to_owned(), cache: CacheTrust::Proved }
        }
        Err(error) => return Err(sql_error("boot", &error)),
    };
    db.execute(
        "INSERT INTO boot VALUES (1, ?1, 0, ?2) ON CONFLICT (one) DO UPDATE SET incarnation = ?1, clean = 0",
        params![boot.incarnation, boot.cluster_id],
    )
    .map_err(|e| sql_error("boot", &e))?;
    Ok(boot)
}

/// A file without a start in it is new. Beside logs with records it stands in for one that was lost, and would know nothing
/// of their topics, or of who may write to them.
fn refuse_orphaned_logs(disk: &dyn Disk) -> Result<(), StoreError> {
    let found = dirs_with_records(disk)?;
    let Some(first) = found.first() else { return Ok(()) };
    let others = match found.len() {
        1 => String::new(),
        many => format!(" and {} more", many.saturating_sub(1)),
    };
    Err(StoreError::Damaged(format!(
        "meta.db is missing or empty, but {first}{others} hold records; put the meta.db that belongs to them back, or move \
         them away to start with nothing"
    )))
}

fn checkpoint(db: &Connection, mode: &str) -> Result<(), StoreError> {
    db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).map_err(|e| sql_error("checkpoint", &e))
}

fn upsert(db: &Connection, key: &RowKey, value: &RowValue) -> Result<(), rusqlite::Error> {
    match (key, value) {
        (RowKey::Marks, RowValue::Marks(marks)) => db
            .prepare_cached("UPDATE mark SET producer_ids_end = ?1, next_part = ?2")?
            .execute(params![marks.producer_ids_end, marks.next_part]),
        (RowKey::Topic(id), RowValue::Topic(body)) => {
            db.prepare_cached("INSERT OR REPLACE INTO topic VALUES (?1, ?2)")?.execute(params![id.0, body])
        }
        (RowKey::Part(part), RowValue::Part(row)) => return upsert_part(db, part.0, row),
        (RowKey::Group(id), RowValue::Group(body)) => {
            db.prepare_cached("INSERT OR REPLACE INTO grp VALUES (?1, ?2)")?.execute(params![id.as_str(), body])
        }
        (RowKey::Offset(group, part), RowValue::Offset(committed)) => db
            .prepare_cached("INSERT OR REPLACE INTO offset VALUES (?1, ?2, ?3)")?
            .execute(params![group.as_str(), part.0, body::committed_bytes(committed)]),
        (RowKey::Txn(id), RowValue::Txn(txn)) => db
            .prepare_cached("INSERT OR REPLACE INTO txn VALUES (?1, ?2)")?
            .execute(params![id.as_str(), body::txn_bytes(txn)]),
        (RowKey::Pending(txn, group, part), RowValue::Pending(staged)) => db
            .prepare_cached("INSERT OR REPLACE INTO pending VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![txn.as_str(), group.as_str(), part.0, body::staged_bytes(staged)]),
        (RowKey::Owed(seq), RowValue::Owed(owed)) => db
            .prepare_cached("INSERT OR REPLACE INTO owed VALUES (?1, ?2)")?
            .execute(params![seq.cast_signed(), body::owed_bytes(owed)]),
        (key, _) => return Err(rusqlite::Error::InvalidParameterName(format!("{key:?} with another kind of row"))),
    }
    .map(drop)
}

fn upsert_part(db: &Connection, part: i64, row: &PartRow) -> Result<(), rusqlite::Error> {
    let point = row.point;
    db.prepare_cached("INSERT OR REPLACE INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            part,
            row.topic.0,
            row.index,
            row.log_start,
            row.transactional,
            point.map(|point| point.active_base),
            point.map(|point| point.synced_pos.cast_signed()),
            point.map(|point| point.synced_offset),
            point.map(|point| point.snapshot_at),
        ])
        .map(drop)
}

fn remove(db: &Connection, key: &RowKey) -> Result<(), rusqlite::Error> {
    match key {
        RowKey::Marks => Ok(0),
        RowKey::Topic(id) => db.prepare_cached("DELETE FROM topic WHERE id = ?1")?.execute([&id.0[..]]),
        RowKey::Part(part) => db.prepare_cached("DELETE FROM part WHERE part = ?1")?.execute([part.0]),
        RowKey::Group(id) => db.prepare_cached("DELETE FROM grp WHERE id = ?1")?.execute([id.as_str()]),
        RowKey::Offset(group, part) => db
            .prepare_cached("DELETE FROM offset WHERE grp = ?1 AND part = ?2")?
            .execute(params![group.as_str(), part.0]),
        RowKey::Txn(id) => db.prepare_cached("DELETE FROM txn WHERE id = ?1")?.execute([id.as_str()]),
        RowKey::Pending(txn, group, part) => db
            .prepare_cached("DELETE FROM pending WHERE txn = ?1 AND grp = ?2 AND part = ?3")?
            .execute(params![txn.as_str(), group.as_str(), part.0]),
        RowKey::Owed(seq) => db.prepare_cached("DELETE FROM owed WHERE seq = ?1")?.execute([seq.cast_signed()]),
    }
    .map(drop)
}

/// SQLite's errors as ours: no room is `Full` (SQLite has rolled back), a corrupt file is `Damaged`, anything else
/// leaves unknown what is stored.
pub(crate) fn sql_error(what: &str, error: &rusqlite::Error) -> StoreError {
    let text = format!("meta.db: {what}: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(text),
        Some(_) | None => StoreError::Broken(text),
    }
}

#[cfg(test)]
mod tests;
