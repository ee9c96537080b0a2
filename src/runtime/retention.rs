//! Looks, once in a while, which partitions have something to let go, and sends those a letter.
//!
//! The look is past the owners, at what readers have of a loaded partition and at a few names and sizes of one that
//! nobody has used since the start: idle partitions are neither loaded nor disturbed for it. What goes is decided by
//! the owner, on the state at its letter's place in the mailbox.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::clock::Clock;
use crate::engine::catalog::BrokerLevels;
use crate::engine::log::Retention;
use crate::engine::{Now, PartId};
use crate::runtime::partition::published::Availability;
use crate::runtime::post::{PartLetter, Post};
use crate::runtime::router::Router;
use crate::store::StoreError;
use crate::store::log::may_expire;

/// To whoever sweeps.
#[derive(Debug, PartialEq, Eq)]
pub enum SweepLetter {
    /// A clock moved (tests).
    Wake,
    /// There is little room: sweep at once.
    Now,
    /// Stop.
    Stop,
}

/// Looks at all partitions of topics from which something goes by age or size.
///
/// # Errors
/// `Broken`: it is not known what is on disk.
pub fn sweep(router: &Router, levels: &BrokerLevels, now: Now) -> Result<(), StoreError> {
    for topic in router.catalog().iter() {
        let Some(retention) = Retention::of(&topic.settings.in_effect(levels)) else { continue };
        for part in &topic.parts {
            let expired = match has_expired(router, *part, &retention, now) {
                Ok(expired) => expired,
                Err(error @ StoreError::Broken(_)) => return Err(error),
                Err(error @ (StoreError::Full(_) | StoreError::Damaged(_))) => {
                    tracing::warn!(part = part.0, %error, "retention cannot tell what has expired; tried again later");
                    false
                }
            };
            if expired {
                router.deliver(Post::Part(*part, PartLetter::Retain));
            }
        }
    }
    Ok(())
}

fn has_expired(router: &Router, part: PartId, retention: &Retention, now: Now) -> Result<bool, StoreError> {
    let Some(slot) = router.partitions.slot(part) else { return Ok(false) };
    let view = slot.shared.published();
    match view.availability {
        Availability::Open => match slot.shared.reader() {
            Some(reader) => {
                let bounds = (view.last_stable, view.watermark);
                reader.expired(retention, bounds, now.wall_ms).map(|expired| expired.is_some())
            }
            None => Ok(false),
        },
        Availability::Unloaded => match router.partitions.unopened(&slot) {
            Some(source) => may_expire(&*source.disk, &source.dir, retention, now.wall_ms),
            None => Ok(false),
        },
        Availability::Damaged | Availability::Gone => Ok(false),
    }
}

/// Sweeps every `interval_ms`, first after that time, and when told to, until told to stop.
pub fn drive(
    letters: &Receiver<SweepLetter>,
    levels: &BrokerLevels,
    interval_ms: i64,
    (clock, router): (&Clock, &Router),
) {
    let mut due_mono_ms = clock.now().mono_ms.saturating_add(interval_ms);
    loop {
        let letter = match clock.sleep_until(due_mono_ms) {
            Some(wait) => letters.recv_timeout(wait),
            None => letters.recv().map_err(RecvTimeoutError::from),
        };
        match letter {
            Ok(SweepLetter::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(SweepLetter::Now) => due_mono_ms = clock.now().mono_ms,
            Ok(SweepLetter::Wake) | Err(RecvTimeoutError::Timeout) => {}
        }
        let now = clock.now();
        if now.mono_ms < due_mono_ms {
            continue;
        }
        if let Err(error) = sweep(router, levels, now) {
            router.broken(&error);
            return;
        }
        due_mono_ms = now.mono_ms.saturating_add(interval_ms);
    }
}
