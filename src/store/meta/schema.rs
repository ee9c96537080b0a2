//! Numbered migrations of `meta.db`, each one transaction. `user_version` says how many have run.

use rusqlite::Connection;

use super::sql_error;
use crate::store::StoreError;

/// "oncelog" as SQLite's application id: `OnCe`.
const APPLICATION_ID: i64 = 0x4F6E_4365;

/// One script a version, in order. A script that was ever released is never edited.
const MIGRATIONS: &[&str] = &[
    "CREATE TABLE format (component TEXT PRIMARY KEY, writes INTEGER NOT NULL, reads_from INTEGER NOT NULL) WITHOUT ROWID;
     INSERT INTO format VALUES ('meta', 1, 1), ('log', 2, 2), ('snapshot', 1, 1);
     CREATE TABLE boot (one INTEGER PRIMARY KEY CHECK (one = 1), incarnation INTEGER NOT NULL, clean INTEGER NOT NULL,
                        cluster TEXT NOT NULL);
     CREATE TABLE mark (one INTEGER PRIMARY KEY CHECK (one = 1), producer_ids_end INTEGER NOT NULL,
                        next_part INTEGER NOT NULL);
     INSERT INTO mark VALUES (1, 0, 0);
     CREATE TABLE topic (id BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
     CREATE TABLE part (part INTEGER PRIMARY KEY, topic BLOB NOT NULL, number INTEGER NOT NULL,
                        log_start INTEGER NOT NULL, transactional INTEGER NOT NULL,
                        active_base INTEGER, synced_pos INTEGER, synced_offset INTEGER, snapshot_at INTEGER);
     CREATE TABLE grp (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
     CREATE TABLE offset (grp TEXT, part INTEGER, body BLOB NOT NULL, PRIMARY KEY (grp, part)) WITHOUT ROWID;
     CREATE TABLE txn (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
     CREATE TABLE pending (txn TEXT, grp TEXT, part INTEGER, body BLOB NOT NULL,
                           PRIMARY KEY (txn, grp, part)) WITHOUT ROWID;
     CREATE TABLE owed (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);",
];

/// Brings the file to the newest version.
///
/// # Errors
/// `Damaged` if the file is another program's or a newer release's; as [`sql_error`] otherwise.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let version: i64 =
        db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|e| sql_error("version", &e))?;
    let application: i64 =
        db.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(|e| sql_error("application id", &e))?;
    if version > 0 && application != APPLICATION_ID {
        return Err(StoreError::Damaged("meta.db belongs to another program".to_owned()));
    }
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        return Err(StoreError::Damaged(format!(
            "meta.db has version {version} and this release knows {}; start the newer release that wrote it",
            MIGRATIONS.len()
        )));
    }
    for (number, script) in MIGRATIONS.iter().enumerate().skip(done) {
        let step = db.transaction().map_err(|e| sql_error("migration", &e))?;
        step.execute_batch(script).map_err(|e| sql_error("migration", &e))?;
        let next = i64::try_from(number).unwrap_or(i64::MAX).saturating_add(1);
        step.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {next};"))
            .map_err(|e| sql_error("migration", &e))?;
        step.commit().map_err(|e| sql_error("migration", &e))?;
    }
    Ok(())
}
