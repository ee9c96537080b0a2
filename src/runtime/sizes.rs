//! How much of the disk partitions take. Looked at past the owners; a partition that nobody has used since the start is
//! not opened for it.

use std::sync::Arc;

use crate::engine::{PartId, Refusal};
use crate::runtime::broker::Broker;
use crate::runtime::router::Router;
use crate::store::StoreError;
use crate::store::log::bytes_of;

/// What the data directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes of the whole disk and those that may still be written, if the system says.
    pub disk: Option<(u64, u64)>,
    /// Bytes of batches of each partition; one that cannot be looked at, or is gone, is not here.
    pub parts: Vec<(PartId, u64)>,
}

impl Broker {
    /// How much of the disk these partitions take, and how much there is.
    ///
    /// # Errors
    /// `KafkaStorageError` when it could not be looked at.
    pub async fn disk_use(&self, parts: Vec<PartId>) -> Result<DiskUse, Refusal> {
        let (router, turn) = (Arc::clone(self.router()), Arc::clone(&self.reads.blocking).acquire_owned().await);
        let look = move || {
            let sizes: Vec<(PartId, Result<u64, StoreError>)> =
                parts.into_iter().filter_map(|part| Some((part, size_of(&router, part)?))).collect();
            let disk = router.partitions.space().disk_bytes();
            drop(turn);
            (disk, sizes)
        };
        let Ok((disk, sizes)) = tokio::task::spawn_blocking(look).await else {
            tracing::error!("the look at the sizes of partitions was given up");
            return Err(Refusal::KafkaStorageError);
        };
        if let Err(error) = &disk {
            tracing::warn!(%error, "the size of the disk is not known");
        }
        let mut known = Vec::with_capacity(sizes.len());
        for (part, size) in sizes {
            match size {
                Ok(bytes) => known.push((part, bytes)),
                // Said there, and seen in readiness.
                Err(error) => drop(self.unreadable(part, error)),
            }
        }
        Ok(DiskUse { disk: disk.ok(), parts: known })
    }
}

/// `None` for a partition that is gone.
fn size_of(router: &Router, part: PartId) -> Option<Result<u64, StoreError>> {
    let slot = router.partitions.slot(part)?;
    if let Some(reader) = slot.shared.reader() {
        return Some(Ok(reader.bytes()));
    }
    match router.partitions.unopened(&slot) {
        Some(source) => Some(bytes_of(&*source.disk, &source.dir)),
        // It was opened just now; or nothing of it can be read.
        None => Some(Ok(slot.shared.reader().map_or(0, |reader| reader.bytes()))),
    }
}
