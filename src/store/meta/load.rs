//! Every row of `meta.db`, read once at a start.

use rusqlite::Row;

use super::{Meta, body, sql_error};
use crate::engine::catalog::Topic;
use crate::engine::group::GroupRow;
use crate::engine::ledger::recover::Loaded;
use crate::engine::ledger::rows::{Marks, PartRow, RecoveryPoint};
use crate::engine::{GroupId, PartId, TopicId, TransactionalId};
use crate::store::StoreError;

impl Meta {
    /// Reads everything.
    ///
    /// # Errors
    /// `Damaged` if a row cannot be read; it names the table.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let marks = self.rows("mark", "SELECT producer_ids_end, next_part FROM mark", |row| {
            let (producer_ids_end, next_part) = (row.get(0)?, row.get(1)?);
            Ok(Some(Marks { producer_ids_end, next_producer_id: producer_ids_end, next_part }))
        })?;
        Ok(Loaded {
            marks: marks.first().copied().unwrap_or_default(),
            topics: self
                .rows("topic", "SELECT body FROM topic", |row| Ok(Topic::decode(row.get_ref(0)?.as_blob()?).ok()))?,
            parts: self.rows("part", "SELECT * FROM part", |row| Ok(Some(part(row)?)))?,
            groups: self.rows("grp", "SELECT id, body FROM grp", |row| {
                let group = GroupRow::decode(row.get_ref(1)?.as_blob()?);
                let id = GroupId::from(row.get_ref(0)?.as_str()?);
                Ok(group.map(|group| (id, group)))
            })?,
            offsets: self.rows("offset", "SELECT grp, part, body FROM offset", |row| {
                let key = (GroupId::from(row.get_ref(0)?.as_str()?), PartId(row.get(1)?));
                Ok(body::committed(row.get_ref(2)?.as_blob()?).map(|committed| (key, committed)))
            })?,
            txns: self.rows("txn", "SELECT id, body FROM txn", |row| {
                let id = TransactionalId::from(row.get_ref(0)?.as_str()?);
                Ok(body::txn(row.get_ref(1)?.as_blob()?).map(|txn| (id, txn)))
            })?,
            pending: self.rows("pending", "SELECT txn, grp, part, body FROM pending", |row| {
                let id = TransactionalId::from(row.get_ref(0)?.as_str()?);
                let key = (GroupId::from(row.get_ref(1)?.as_str()?), PartId(row.get(2)?));
                Ok(body::staged(row.get_ref(3)?.as_blob()?).map(|staged| (id, key, staged)))
            })?,
            owed: self.rows("owed", "SELECT seq, body FROM owed ORDER BY seq", |row| {
                let seq: i64 = row.get(0)?;
                Ok(body::owed(row.get_ref(1)?.as_blob()?).map(|owed| (seq.cast_unsigned(), owed)))
            })?,
        })
    }

    fn rows<T>(
        &self,
        table: &str,
        sql: &str,
        mut decode: impl FnMut(&Row<'_>) -> Result<Option<T>, rusqlite::Error>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.db.prepare(sql).map_err(|error| sql_error(table, &error))?;
        let mut found = statement.query([]).map_err(|error| sql_error(table, &error))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(|error| sql_error(table, &error))? {
            let decoded = decode(row).map_err(|error| sql_error(table, &error))?;
            rows.push(
                decoded
                    .ok_or_else(|| StoreError::Damaged(format!("meta.db: a row of table {table} cannot be read")))?,
            );
        }
        Ok(rows)
    }
}

fn part(row: &Row<'_>) -> Result<(PartId, PartRow), rusqlite::Error> {
    let active_base: Option<i64> = row.get("active_base")?;
    let point = match active_base {
        None => None,
        Some(active_base) => Some(RecoveryPoint {
            active_base,
            synced_pos: row.get::<_, i64>("synced_pos")?.cast_unsigned(),
            synced_offset: row.get("synced_offset")?,
            snapshot_at: row.get("snapshot_at")?,
        }),
    };
    let (topic, index) = (TopicId(row.get("topic")?), row.get("number")?);
    let (log_start, transactional) = (row.get("log_start")?, row.get("transactional")?);
    Ok((PartId(row.get("part")?), PartRow { topic, index, log_start, transactional, point }))
}
