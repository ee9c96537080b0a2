//! Appending: all batches or none.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use crate::engine::batch::Header;
use crate::engine::log::scan::{Expected, check_header};
use crate::engine::log::{Growth, LogSettings, OffsetEntry, TimeEntry};
use crate::engine::{Offset, batch};
use crate::store::StoreError;
use crate::store::log::segment::{Segment, shown};
use crate::store::log::window::as_u64;
use crate::store::log::{Log, Names};

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The offset after the last batch.
    pub next_offset: Offset,
    /// Bytes written.
    pub bytes: u64,
    /// Whether a segment was sealed on the way: a good moment for a checkpoint.
    pub rolled: bool,
}

/// Batches that go into one segment with one write.
struct Run {
    /// Base of the segment they start, unless they go on in the one before.
    starts: Option<Offset>,
    batches: Range<usize>,
    position: u64,
    growth: Growth,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

struct Plan {
    runs: Vec<Run>,
    headers: Vec<Header>,
}

impl Log {
    /// Writes `batches`, which have their offsets and leader epoch already, at the end of the log: one write for each
    /// segment they touch, which is nearly always one. They are not durable before a [`SyncJob`](super::SyncJob) that
    /// was taken afterwards is done. A roll on the way syncs the segment it seals, so that whatever lies in a segment
    /// proves that those before it are whole.
    ///
    /// # Errors
    /// Any: nothing changed, and the files are as long as before. `Damaged` when the batches do not continue the log.
    pub fn append<B: AsRef<[u8]>>(&mut self, batches: &[B], now_ms: i64) -> Result<Appended, StoreError> {
        let growth = self.growth(now_ms)?;
        let plan = self.plan(growth, batches, now_ms)?;
        let mut fresh = Vec::new();
        for run in &plan.runs {
            if let Err(error) = self.write_run(run, batches, &mut fresh) {
                self.undo(&fresh, growth.bytes)?;
                return Err(error);
            }
        }
        Ok(self.commit(plan, fresh))
    }

    fn plan<B: AsRef<[u8]>>(&self, growth: Growth, batches: &[B], now_ms: i64) -> Result<Plan, StoreError> {
        let epoch = self.leader_epoch().unwrap_or(0);
        let mut expected = Expected { next_offset: self.next_offset, leader_epoch: epoch };
        let mut plan = Plan { runs: Vec::new(), headers: Vec::with_capacity(batches.len()) };
        let mut run = Run::at(growth, None, 0);
        for (at, bytes) in batches.iter().enumerate() {
            let bytes = bytes.as_ref();
            let header = Header::read(bytes).ok_or_else(|| self.misfit("not a batch"))?;
            let size = check_header(&header, as_u64(bytes.len()), expected)
                .map_err(|flaw| self.misfit(&format!("batch for {}: {flaw:?}", expected.next_offset)))?;
            if size != bytes.len() {
                return Err(self.misfit("more than one batch in a piece"));
            }
            if run.growth.must_roll(&header, as_u64(size), &self.settings, now_ms) {
                plan.runs.push(run);
                run = Run::at(Growth::empty(header.base_offset, now_ms), Some(header.base_offset), at);
            }
            run.take(&header, size, &self.settings);
            expected = Expected::after(&header);
            plan.headers.push(header);
        }
        plan.runs.push(run);
        Ok(plan)
    }

    fn write_run<B: AsRef<[u8]>>(
        &self,
        run: &Run,
        batches: &[B],
        fresh: &mut Vec<Arc<Segment>>,
    ) -> Result<(), StoreError> {
        if let Some(base) = run.starts {
            fresh.last().unwrap_or(&self.active).sync()?;
            // Its name too: a successor whose predecessor's name was lost would look like damage.
            self.shared.place.sync_dir()?;
            fresh.push(Arc::new(Segment::create(&self.shared.place, base)?));
        }
        let segment = fresh.last().unwrap_or(&self.active);
        let pieces = batches.get(run.batches.clone()).unwrap_or_default();
        let slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece.as_ref())).collect();
        segment
            .file()?
            .write_at(&slices, run.position)
            .map_err(|error| StoreError::from_write(&shown(&segment.path()), &error))
    }

    /// Takes back what a failed append left: new segments first, and durably, since one that came back after the older
    /// one was cut would prove damage where there is none.
    fn undo(&self, fresh: &[Arc<Segment>], bytes: u64) -> Result<(), StoreError> {
        for segment in fresh.iter().rev() {
            segment.remove().map_err(|error| StoreError::Broken(format!("taking back an append: {error}")))?;
        }
        if !fresh.is_empty() {
            self.shared.place.sync_dir()?;
        }
        let path = shown(&self.active.path());
        self.active
            .file()?
            .truncate(bytes)
            .map_err(|error| StoreError::Broken(format!("taking back an append: {path}: {error}")))
    }

    /// From here on nothing can fail: memory follows what is written.
    fn commit(&mut self, plan: Plan, fresh: Vec<Arc<Segment>>) -> Appended {
        let before = self.shared.segments();
        let rolled = !fresh.is_empty();
        if rolled {
            let list: Vec<_> = before.iter().cloned().chain(fresh.iter().cloned()).collect();
            self.dir = Names::Changed;
            *self.shared.segments.write() = Arc::new(list);
        }
        let mut fresh = fresh.into_iter();
        let mut written = 0_u64;
        for run in plan.runs {
            if run.starts.is_some() {
                self.seal();
                self.active = fresh.next().unwrap_or_else(|| Arc::clone(&self.active));
            }
            written = written.saturating_add(run.growth.bytes.saturating_sub(run.position));
            self.grow(run);
        }
        {
            let mut epochs = self.shared.epochs.write();
            for header in &plan.headers {
                if epochs.note(header.leader_epoch, header.base_offset) {
                    self.epochs_file = Names::Changed;
                }
            }
        }
        self.next_offset = plan.headers.last().map_or(self.next_offset, Header::next_offset);
        self.debt = self.debt.saturating_add(written);
        Appended { next_offset: self.next_offset, bytes: written, rolled }
    }

    fn grow(&mut self, run: Run) {
        run.offsets.into_iter().for_each(|entry| self.active.offsets.push(entry));
        run.times.into_iter().for_each(|entry| self.active.times.push(entry));
        self.active.set_largest(run.growth.largest);
        self.active.set_bytes(run.growth.bytes);
        self.growth = Some(run.growth);
    }

    /// Gives the active segment's time index its last entry: before the checkpoint of a stop in order, after which only
    /// the index is asked for the largest timestamp. More may be appended.
    pub fn seal(&mut self) {
        let Some(growth) = self.growth else { return };
        let closing = growth.closing_entry();
        if let Some(entry) = closing {
            self.active.times.push(entry);
        }
        self.growth = Some(growth.with_time(closing));
    }

    /// The active segment's growth. After a clean stop it is read off the file and its indexes, whose last entries were
    /// written then.
    fn growth(&mut self, now_ms: i64) -> Result<Growth, StoreError> {
        if let Some(growth) = self.growth {
            return Ok(growth);
        }
        let segment = &self.active;
        let mut growth = Growth::empty(segment.base, now_ms);
        growth.bytes = segment.bytes();
        if growth.bytes > 0 {
            let mut window = segment.window(growth.bytes, batch::HEADER_BYTES)?;
            if let super::window::Walked::Batch(header, _) = window.walk(0)? {
                growth.first_timestamp = Some(header.max_timestamp).filter(|timestamp| *timestamp >= 0);
            }
            growth.largest = segment.largest()?;
            growth.offset_entries = segment.offsets.last(segment.disk())?.0;
            let (entries, last) = segment.times.last(segment.disk())?;
            growth.time_entries = entries;
            growth.last_time = last.map(|entry| entry.timestamp);
        }
        self.growth = Some(growth);
        Ok(growth)
    }

    fn misfit(&self, why: &str) -> StoreError {
        StoreError::Damaged(format!("{}: cannot append: {why}", shown(&self.active.path())))
    }
}

impl Run {
    fn at(growth: Growth, starts: Option<Offset>, first: usize) -> Self {
        Self { starts, batches: first..first, position: growth.bytes, growth, offsets: Vec::new(), times: Vec::new() }
    }

    fn take(&mut self, header: &Header, size: usize, settings: &LogSettings) {
        let (growth, offset, time) = self.growth.with(header, as_u64(size), settings.index_interval_bytes);
        self.growth = growth;
        self.offsets.extend(offset);
        self.times.extend(time);
        self.batches.end += 1;
    }
}
