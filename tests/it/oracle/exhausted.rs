//! What becomes of an id whose epochs are used up (T-127 to T-129, T-147).

use super::{FREE, Scene};
use crate::raw::batch::{Batch, NOBODY, Pid};

/// The highest epoch that is ever handed out.
const LAST: i16 = 32_766;

/// Raises an id to just below this epoch, from many connections at once: each commit takes along who has come.
fn raise(scene: &Scene, id: &str, epoch: i16) -> Pid {
    const CONNECTIONS: i16 = 12;
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = scene.connect();
                while client.owner(id).epoch < epoch - 2 * CONNECTIONS {}
            });
        }
    });
    let mut client = scene.connect();
    loop {
        let owner = client.owner(id);
        assert!(owner.epoch < epoch, "raised too far");
        if owner.epoch == epoch - 1 {
            return owner;
        }
    }
}

#[test]
fn the_last_epoch_is_followed_by_a_new_producer_id() {
    let scene = Scene::new();
    let (idle, open) = std::thread::scope(|scope| {
        let open = scope.spawn(|| raise(&scene, "open", LAST));
        (raise(&scene, "idle", LAST), open.join().unwrap())
    });
    let mut client = scene.connect();
    let mut init = |pair| client.init_in(4, Some("idle"), pair);
    let at = |epoch| Pid { epoch, ..idle };
    assert_eq!(init(at(LAST - 1)), (0, at(LAST)), "T-147");
    assert_eq!(init(at(LAST - 1)), (0, at(LAST)), "T-129 R: the bump's answer was lost");
    for stale in [0, 5, LAST - 2] {
        assert_eq!(init(at(stale)).0, 90, "T-129 R, X-81: {stale}");
    }
    let (code, new) = init(at(LAST));
    assert_eq!((code, new.epoch), (0, 0), "T-128");
    assert_ne!(new.id, idle.id, "T-128");
    assert_eq!(init(at(LAST)), (0, new), "T-120: the rotation's answer was lost");
    assert_eq!(init(at(LAST - 1)).0, 90, "T-120: only the last epoch is taken for that");
    assert_eq!(init(NOBODY), (0, Pid { epoch: 1, ..new }));
    assert_eq!(init(at(LAST)).0, 90, "T-117: somebody else came meanwhile");

    let owner = client.owner("open");
    assert_eq!(owner, Pid { epoch: LAST, ..open });
    assert_eq!(client.add_partitions("open", owner, &[(FREE, 0)]), [0]);
    assert_eq!(client.produce(FREE, 0, Some("open"), &Batch::transactional(owner, 0, 1)).code, 0);
    assert_eq!(client.init_in(4, Some("open"), NOBODY).0, 51, "T-147: the fence uses up the last epoch of all");
    let next = client.owner("open");
    assert_eq!(next.epoch, 0, "T-147: the classic column");
    assert_ne!(next.id, owner.id);
    assert_eq!(client.produce(FREE, 0, Some("open"), &Batch::transactional(owner, 1, 1)).code, 47, "T-607a");
    assert_eq!(client.end_txn("open", owner, true), 49, "T-607d, rotated");
    assert_eq!(client.add_partitions("open", owner, &[(FREE, 0)]), [49], "T-607b, rotated");
    assert_eq!(client.add_offsets("open", owner, "group"), 49, "T-607b, rotated");
}
