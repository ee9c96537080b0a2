//! Every write point of a transaction's life, one after the other: a full disk, a failing one, a kill and a power cut at
//! each change that the disk is asked for; then the same at each change of a start after a kill or a cut.
//!
//! Nothing here is random. A history is played once in peace, which gives the list of its changes, and then again for
//! every change and everything that can go wrong there. Its client does what a careful one does: what is refused for
//! the moment, or not answered because the process has gone, is asked again; what is told stands.

mod judge;
mod known;
mod play;
mod script;
mod strike;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::config::MarkerSync;
use crate::engine::Outcome;
use crate::known_bugs::{Bug, put_in};
use crate::runtime::world::build::How;
use crate::store::faults::Change;
use crate::store::mem_disk::{Cut, MemDisk};
use play::{Order, Play};
use script::Chapter;
use strike::{After, Strike, What};

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Histories played, each with something going wrong at one point of it.
    pub points: usize,
    /// Changes of each history in peace.
    pub changes: Vec<(String, usize)>,
    /// Points at which a known weakness showed, by what it is.
    pub known: BTreeMap<&'static str, usize>,
    /// What must not be.
    pub findings: Vec<String>,
}

/// A history in one of its settings, and the disk it begins on.
#[derive(Clone)]
struct Stage {
    chapter: Chapter,
    how: How,
    order: Order,
    disk: MemDisk,
}

/// One history with what goes wrong in it.
struct Point {
    stage: Arc<Stage>,
    first: Strike,
    second: Option<Strike>,
}

/// A history that was played to its end.
struct Played {
    changes: Vec<Change>,
    recovery: Vec<Change>,
    known: Vec<&'static str>,
}

/// Findings after which it is enough.
const FINDINGS_MAX: usize = 10;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// Every change of every history. Of the starts after a kill or a cut, some of the histories in which most is at
    /// stake; and `marker_sync = "redo"` where a producer ends its transaction.
    Test,
    /// Starts in all histories and both settings too.
    All,
}

/// A history, in which setting and order, and every how many changes a start after a kill or a cut there is tried change
/// by change.
type Wanted = (Chapter, MarkerSync, Order, Option<usize>);

const TESTED: [Wanted; 7] = [
    (Chapter::Birth, MarkerSync::Answer, Order::Rows, None),
    (Chapter::Ends(Outcome::Commit), MarkerSync::Answer, Order::Rows, Some(61)),
    (Chapter::Ends(Outcome::Commit), MarkerSync::Redo, Order::Logs, None),
    (Chapter::Ends(Outcome::Abort), MarkerSync::Answer, Order::Logs, None),
    (Chapter::Abandoned, MarkerSync::Answer, Order::Logs, None),
    (Chapter::TimesOut, MarkerSync::Answer, Order::Rows, None),
    (Chapter::NewOwner, MarkerSync::Answer, Order::Logs, None),
];

impl Breadth {
    fn wanted(self) -> Vec<Wanted> {
        let all = TESTED.iter().filter(|(_, sync, ..)| *sync == MarkerSync::Answer).flat_map(|(chapter, ..)| {
            let both = |sync| [Order::Rows, Order::Logs].map(|order| (*chapter, sync, order, Some(17)));
            [MarkerSync::Answer, MarkerSync::Redo].into_iter().flat_map(both)
        });
        match self {
            Self::Test => TESTED.into(),
            Self::All => all.collect(),
        }
    }
}

/// Tries every point on so many threads, with a bug put back if somebody wants to see it found.
#[must_use]
pub fn run(breadth: Breadth, threads: usize, bug: Option<Bug>) -> Report {
    let mut report = Report::default();
    let mut points = Vec::new();
    play::name_thread(0);
    let used = used_disk();
    for (chapter, marker_sync, order, apart) in breadth.wanted() {
        let disk = if chapter == Chapter::Birth { MemDisk::default() } else { used.clone() };
        let stage = Arc::new(Stage { chapter, how: how(marker_sync), order, disk });
        let changes = stage.play((None, None), false).map(|played| played.changes);
        let changes = changes.unwrap_or_else(|why| panic!("{chapter:?} in peace: {why}"));
        report.changes.push((format!("{chapter:?}, {marker_sync:?}, {order:?}"), changes.len()));
        points.extend(points_of(&stage, apart, &changes));
    }
    let (next, shared) = (AtomicUsize::new(0), Mutex::new(report));
    std::thread::scope(|scope| {
        for number in 1..=threads.max(1) {
            let (next, shared, points) = (&next, &shared, &points);
            scope.spawn(move || {
                put_in(bug);
                work(number, (next, points), shared);
            });
        }
    });
    shared.into_inner()
}

fn work(number: usize, (next, points): (&AtomicUsize, &[Point]), shared: &Mutex<Report>) {
    play::name_thread(u64::try_from(number).unwrap_or(0));
    while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
        if shared.lock().findings.len() >= FINDINGS_MAX {
            return;
        }
        let strikes = || (Some(point.first.clone()), point.second.clone());
        let played = point.stage.play(strikes(), false);
        // If it must not be, once more, with everything written down.
        let again = played.as_ref().err().map(|_| point.stage.play(strikes(), true).err().unwrap_or_default());
        let mut report = shared.lock();
        report.points += 1;
        match played {
            Ok(played) => {
                played.known.into_iter().for_each(|known| *report.known.entry(known).or_default() += 1);
            }
            Err(why) => report.findings.push(format!("{point}: {why}\n{}", again.unwrap_or_default())),
        }
    }
}

fn how(marker_sync: MarkerSync) -> How {
    How { marker_sync, segment_bytes: 1_400, ..How::default() }
}

/// A disk with the topic on it, and a process that ended in order.
fn used_disk() -> MemDisk {
    let mut play = Play::on((how(MarkerSync::Answer), Order::Rows), MemDisk::default(), (None, None), false);
    play.create();
    play.world.stop();
    assert_eq!(play.world.broken, None);
    play.world.disk.killed()
}

/// Everything that can go wrong at every change; and, for a start here and there, at every change of that start.
fn points_of(stage: &Arc<Stage>, apart: Option<usize>, changes: &[Change]) -> Vec<Point> {
    let mut points = Vec::new();
    for at in 1..=changes.len() {
        for first in Strike::all_at(at, changes) {
            points.push(Point { stage: Arc::clone(stage), first, second: None });
        }
        if apart.is_some_and(|apart| at % apart == 0) {
            let after = [After::Kill, After::Cut(Cut::LoseAll)];
            points.extend(after.into_iter().flat_map(|after| recovery_points(stage, at, after, changes)));
        }
    }
    points
}

fn recovery_points(stage: &Arc<Stage>, at: usize, after: After, changes: &[Change]) -> Vec<Point> {
    let first = Strike::new(at, What::Gone(after), changes);
    // If that fails it is found as a point of its own.
    let Ok(played) = stage.play((Some(first.clone()), None), false) else { return Vec::new() };
    let of = |at| Strike::all_at(at, &played.recovery);
    let second = (1..=played.recovery.len()).flat_map(of);
    second.map(|second| Point { stage: Arc::clone(stage), first: first.clone(), second: Some(second) }).collect()
}

impl Stage {
    /// Plays it to its end, and judges; the error says what must not be.
    fn play(&self, strikes: (Option<Strike>, Option<Strike>), tracing: bool) -> Result<Played, String> {
        let begun =
            catch_unwind(AssertUnwindSafe(|| Play::on((self.how, self.order), self.disk.killed(), strikes, tracing)));
        let mut play = begun.map_err(|why| said(&*why))?;
        let told = catch_unwind(AssertUnwindSafe(|| {
            play.chapter(self.chapter);
            let changes = play.world.disk.faults().noted();
            play.make_space();
            play.epilogue();
            play.judge();
            changes
        }));
        let changes = told.map_err(|why| format!("{}\n{}", said(&*why), play.world.tail().join("\n")))?;
        let (recovery, known) = (std::mem::take(&mut play.recovery), std::mem::take(&mut play.known));
        Ok(Played { changes, recovery, known })
    }
}

/// What a panic said.
fn said(why: &dyn Any) -> String {
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}, {:?}, {:?}: {}",
            self.stage.chapter, self.stage.how.marker_sync, self.stage.order, self.first
        )?;
        self.second.as_ref().map_or(Ok(()), |second| write!(f, "; then, at the start after it, {second}"))
    }
}
