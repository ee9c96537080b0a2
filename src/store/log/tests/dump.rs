use super::*;
use crate::store::os_disk::OsDisk;

/// On real files, and where `ONCELOG_DUMPLOG_DIR` says so, for Kafka's own tools to read: transactions of several
/// producers, all kinds of index, a segment that a recovery went over, leader epochs, a clean stop.
#[test]
fn a_directory_for_kafkas_tools() {
    let temporary = tempfile::tempdir().unwrap();
    let root = std::env::var("ONCELOG_DUMPLOG_DIR").map_or(temporary.path().to_path_buf(), Into::into);
    let disk = Arc::new(OsDisk::new(&root).unwrap());
    let log = Log::create(disk.clone(), Path::new(DIR), TOPIC, 1, SETTINGS).unwrap();
    let mut rig = Rig { log, ..Rig::new() };
    busy(&mut rig, 200, 11);
    rig.checkpoint();
    busy(&mut rig, 100, 12);
    rig.sync();

    // The process is gone; the last write was torn.
    let (how, kept) = (
        OpenHow { point: rig.point, log_start: 0, clean: false, witness: 0, incarnation: i32::MAX },
        rig.log.next_offset(),
    );
    rig.append_data(3, 100, None);
    let path = root.join(DIR).join(format!("{:020}.log", rig.log.extents().last().unwrap().base));
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 10).unwrap();
    rig.batches.pop();
    let mut state = State::new();
    let (log, opened) = Log::open(disk.clone(), Path::new(DIR), SETTINGS, how, &mut state).unwrap();
    assert_eq!((opened.next_offset, opened.torn.is_some()), (kept, true));

    let mut rig = Rig { log, state, epoch: 2, ..rig };
    busy(&mut rig, 100, 13);
    assert_eq!(split(&read_all(&rig.log.reader(), rig.log.next_offset())), rig.batches);
    let snapshot = rig.state.0.snapshot();
    let point = rig.log.close(&snapshot).unwrap();
    let how = OpenHow { point: Some(point), log_start: 0, clean: true, witness: 0, incarnation: i32::MAX };
    let (log, _) = Log::open(disk, Path::new(DIR), SETTINGS, how, &mut State::new()).unwrap();
    assert_eq!(split(&read_all(&log.reader(), log.next_offset())), rig.batches);
    let list = log.reader().aborted(0, log.next_offset(), ReadHow::Block).unwrap().unwrap();
    assert_eq!(list, aborted_oracle(&rig.aborted, 0, log.next_offset()));
}
