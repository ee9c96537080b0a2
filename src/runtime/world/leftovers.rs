//! Files and the rows that speak of them: names that are given again, directories left behind, points that are old.

use std::path::{Path, PathBuf};

use super::build::{How, part_settings, source};
use super::store::FakeDb;
use super::{Db, World};
use crate::clock::Clock;
use crate::engine::log::epochs::partition_metadata;
use crate::engine::{PartId, Refusal, TopicId};
use crate::runtime::partition::published::Availability;
use crate::runtime::partitions::Partitions;
use crate::runtime::post::{PartLetter, Post};
use crate::store::disk::Disk;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

/// Not the id that a world gives a topic of its own accord.
const AGAIN: TopicId = TopicId([9; 16]);

fn world_with(topics: &[&str]) -> (World, Vec<PartId>) {
    let mut world = World::new(How::default());
    let parts = topics.iter().map(|name| world.topic(name, 1)[0]).collect();
    (world, parts)
}

impl World {
    pub(super) fn plain(&mut self, value: &str, part: PartId) -> Result<i64, Refusal> {
        let to = self.ask_plain(value, part);
        self.run_to_rest();
        self.produced(to).map(|produced| produced.base_offset)
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.ask_delete(name);
        self.run_to_rest();
    }

    /// The topic is deleted, and its directories stay.
    fn delete_without_files(&mut self, name: &str) {
        self.disk.faults().add(Rule::always(Operation::Rename, &format!("{name}-"), Fault::Io));
        self.delete(name);
        self.disk.faults().lift();
    }

    pub(super) fn close(&mut self, part: PartId) {
        self.deliver(Post::Part(part, PartLetter::Close));
        self.run_to_rest();
    }

    fn clean_restart(&mut self) {
        self.start(true);
    }

    fn metadata(&self, dir: &str) -> Option<String> {
        let content = self.disk.content(&Path::new(dir).join("partition.metadata")).ok()?;
        String::from_utf8(content).ok()
    }

    fn has(&self, dir: &str) -> bool {
        self.disk.exists(Path::new(dir)).unwrap()
    }

    pub(super) fn availability(&mut self, part: PartId) -> Availability {
        self.load(part);
        self.published(part).availability
    }
}

#[test]
fn a_topic_made_again_does_not_get_the_old_ones_records() {
    for restart in [false, true] {
        let (mut world, parts) = world_with(&["t"]);
        assert_eq!(world.plain("old", parts[0]), Ok(0));
        world.delete_without_files("t");
        assert!(world.has("t-0"));
        let again = world.topic_as(AGAIN, "t", 1)[0];
        if restart {
            world.cut_and_restart(Cut::LoseAll, usize::MAX);
        }
        assert_eq!(world.plain("new", again), Ok(0), "restart {restart}");
        assert_eq!(world.metadata("t-0"), Some(partition_metadata(AGAIN)));
        world.cut_and_restart(Cut::LoseAll, usize::MAX);
        world.load(again);
        assert_eq!(world.read(again, false).len(), 1);
    }
}

#[test]
fn a_drop_that_comes_late_leaves_the_new_topics_files_alone() {
    for loaded in [false, true] {
        let (mut world, parts) = world_with(&["t"]);
        if loaded {
            assert_eq!(world.plain("old", parts[0]), Ok(0));
        }
        let mut old = world.parts.remove(&parts[0]).unwrap();
        world.delete("t");
        let again = world.topic_as(AGAIN, "t", 1)[0];
        assert_eq!(world.plain("new", again), Ok(0), "loaded {loaded}");
        old.place.turn(vec![PartLetter::Drop], world.now).expect("dropped");
        assert_eq!(world.metadata("t-0"), Some(partition_metadata(AGAIN)), "loaded {loaded}");
        assert_eq!(world.plain("new", again), Ok(1));
        world.cut_and_restart(Cut::LoseAll, usize::MAX);
        world.load(again);
        assert_eq!(world.read(again, false).len(), 2, "loaded {loaded}");
    }
}

#[test]
fn a_partition_that_was_never_used_makes_no_files_when_its_topic_is_deleted() {
    let (mut world, _) = world_with(&["t"]);
    world.delete("t");
    assert!(!world.has("t-0"));
    assert!(world.disk.list(Path::new("")).unwrap().is_empty());
}

#[test]
fn a_damaged_partitions_files_go_with_its_topic() {
    let (mut world, parts) = world_with(&["t"]);
    assert_eq!(world.plain("old", parts[0]), Ok(0));
    world.close(parts[0]);
    world.disk.damage(Path::new("t-0/00000000000000000000.log"), |bytes| bytes.truncate(10)).unwrap();
    world.clean_restart();
    assert_eq!(world.availability(parts[0]), Availability::Damaged);
    world.delete("t");
    assert!(!world.has("t-0"));
}

#[test]
fn a_log_with_a_point_that_names_another_topic_is_damaged_and_left_alone() {
    let (mut world, parts) = world_with(&["t"]);
    assert_eq!(world.plain("a", parts[0]), Ok(0));
    world.close(parts[0]);
    let path = Path::new("t-0/partition.metadata");
    world.disk.damage(path, |bytes| *bytes = partition_metadata(AGAIN).into_bytes()).unwrap();
    for lost in [false, true] {
        world.start(true);
        if lost {
            world.disk.damage(path, Vec::clear).unwrap();
        }
        let wanted = if lost { Availability::Open } else { Availability::Damaged };
        assert_eq!(world.availability(parts[0]), wanted, "lost {lost}");
    }
    assert_ne!(world.metadata("t-0"), Some(partition_metadata(AGAIN)), "written anew");
    assert_eq!(world.read(parts[0], false).len(), 1);
}

#[test]
fn a_start_removes_what_deleted_topics_left() {
    let (mut world, parts) = world_with(&["t", "u"]);
    for part in &parts {
        assert_eq!(world.plain("a", *part), Ok(0));
    }
    let condemned = format!("v-0.{:032x}-delete", 5);
    for dir in [condemned.as_str(), "w-0", "x-delete", "y"] {
        world.disk.create_dir(Path::new(dir)).unwrap();
    }
    world.delete_without_files("t");
    world.kill_and_restart();
    for (dir, stays) in
        [("t-0", false), ("u-0", true), (condemned.as_str(), false), ("w-0", true), ("x-delete", true), ("y", true)]
    {
        assert_eq!(world.has(dir), stays, "{dir}");
    }
    world.load(parts[1]);
    assert_eq!(world.read(parts[1], false).len(), 1);
}

#[test]
fn rows_that_were_lost_take_no_logs_with_them() {
    let (mut world, parts) = world_with(&["t", "u"]);
    for part in &parts {
        assert_eq!(world.plain("a", *part), Ok(0));
    }
    world.db = Db::Fake(FakeDb::default());
    world.kill_and_restart();
    assert!(world.has("t-0") && world.has("u-0"), "no topic is known");
    world.topic("t", 1);
    world.incarnation = -1;
    world.kill_and_restart();
    assert!(world.has("u-0"), "written by this start or a later one");
}

#[test]
fn rows_older_than_the_log_are_told() {
    let (mut world, parts) = world_with(&["t"]);
    world.kill_and_restart();
    assert_eq!(world.plain("a", parts[0]), Ok(0));
    world.incarnation = -1;
    world.kill_and_restart();
    assert_eq!(world.availability(parts[0]), Availability::Damaged);
    let place = &world.parts.get(&parts[0]).unwrap().place;
    let why = "t-0: written by start 1, meta.db knows only 0: meta.db is older than the logs; restore the newer one; \
               nothing of it is served";
    assert_eq!(place.why_damaged(), Some(why));
}

#[test]
fn the_largest_timestamp_is_known_after_a_stop_in_order() {
    let (mut world, parts) = world_with(&["t"]);
    let p = parts[0];
    for _ in 0..3 {
        world.plain("a", p).expect("produced");
    }
    let largest = |world: &World| {
        let reader = world.parts.get(&p).unwrap().shared.reader().expect("loaded");
        reader.max_timestamp(0..3).unwrap()
    };
    let before = largest(&world);
    assert!(before.is_some());
    world.close(p);
    world.clean_restart();
    world.load(p);
    assert_eq!(largest(&world), before, "T-522");
}

#[test]
fn a_reload_begins_at_the_latest_recovery_point() {
    let (mut world, parts) = world_with(&["t"]);
    let p = parts[0];
    assert_eq!(world.plain("a", p), Ok(0));
    world.close(p);
    // Below the point nothing is verified again: a sum that is wrong there is not met.
    world.disk.damage(Path::new("t-0/00000000000000000000.log"), |bytes| bytes[20] ^= 0xff).unwrap();
    world.disk.faults().add(Rule::always(Operation::Write, "t-0/", Fault::NoSpace));
    assert_eq!(world.plain("b", p), Err(Refusal::KafkaStorageError));
    world.disk.faults().lift();
    assert_eq!(world.plain("b", p), Ok(1));
}

#[test]
fn reasons_are_listed_without_a_look_at_the_partitions() {
    let (world, parts) = world_with(&["t"]);
    let rows = std::sync::Arc::clone(&world.rows);
    let partitions = Partitions::new(part_settings(&world.how, 0, rows, &world.disk), Clock::manual(0));
    let row = *world.owner.as_ref().unwrap().ledger.part(parts[0]).unwrap();
    let source = source(&world.disk, &world.how, &world.catalog, &row).unwrap();
    assert_eq!(source.dir, PathBuf::from("t-0"));
    partitions.add_damaged(parts[0], "why".to_owned(), source);
    assert_eq!((partitions.damaged(), partitions.damages()), (1, vec!["why; nothing of it is served".to_owned()]));
    partitions.remove(&parts);
    assert_eq!((partitions.damaged(), partitions.damages()), (0, Vec::new()));
}

#[test]
fn a_partition_on_its_way_out_is_away_before_another_is_opened() {
    let (mut world, parts) = world_with(&["t"]);
    assert_eq!(world.plain("a", parts[0]), Ok(0));
    let rows = std::sync::Arc::clone(&world.rows);
    let partitions = Partitions::new(part_settings(&world.how, 0, rows, &world.disk), Clock::manual(0));
    let row = *world.owner.as_ref().unwrap().ledger.part(parts[0]).unwrap();
    partitions.add(parts[0], source(&world.disk, &world.how, &world.catalog, &row).unwrap());
    partitions.finish_drops().unwrap();
    assert!(world.has("t-0"), "it is in service");
    // The letter waits: there are no threads here.
    partitions.remove(&parts);
    assert!(world.has("t-0"));
    partitions.finish_drops().unwrap();
    assert!(!world.has("t-0"));
}
