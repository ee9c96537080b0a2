//! AddPartitionsToTxn and AddOffsetsToTxn, versions 0 to 3 (T-210 to T-214, T-231, T-232).

use super::Standing::{Deciding, Empty, Ongoing, Over, Unknown};
use super::{Claim, FREE, HELD, Scene, Standing};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};

/// How the id stands, who asks; the code in versions 0 and 1, and from 2 on.
type Line = (Standing, Claim, i16, i16);

const LINES: &[Line] = &[
    // T-212 row 3.
    (Unknown, Claim::Owner, 49, 49),
    // Row 4: before anything else is compared (T-020).
    (Deciding(true), Claim::Owner, 51, 51),
    (Deciding(false), Claim::Owner, 51, 51),
    (Deciding(true), Claim::Other, 51, 51),
    (Deciding(true), Claim::Lower, 51, 51),
    (Deciding(false), Claim::Higher, 51, 51),
    // Row 5.
    (Empty, Claim::Other, 49, 49),
    (Ongoing, Claim::Other, 49, 49),
    (Over(true), Claim::Other, 49, 49),
    // Row 6: a higher epoch is as wrong as a lower one.
    (Empty, Claim::Lower, 47, 90),
    (Empty, Claim::Higher, 47, 90),
    (Ongoing, Claim::Lower, 47, 90),
    (Ongoing, Claim::Higher, 47, 90),
    (Over(false), Claim::Lower, 47, 90),
    (Over(false), Claim::Higher, 47, 90),
    // Rows 8 and 9.
    (Empty, Claim::Owner, 0, 0),
    (Ongoing, Claim::Owner, 0, 0),
    (Over(true), Claim::Owner, 0, 0),
    (Over(false), Claim::Owner, 0, 0),
];

type Ask = fn(&mut Client, i16, (&str, Pid)) -> i16;

/// What there is to add: nothing new (row 8 when a transaction is open), or something (row 9).
const ASKS: [(&str, Ask); 4] = [
    ("a partition", |client, version, who| client.add_in(version, who, &[(FREE, 0)])),
    ("new partitions", |client, version, who| client.add_in(version, who, &[(FREE, 2), (FREE, 3)])),
    ("a group", |client, version, who| client.add_offsets_in(version, who, "group")),
    // T-232: the group is not looked up, an empty name will do.
    ("a group nobody knows", |client, version, who| client.add_offsets_in(version, who, "")),
];

fn check(scene: &Scene, client: &mut Client, (version, (what, ask), line): &(i16, (&str, Ask), Line)) {
    let (standing, claim, old, new) = *line;
    let id = scene.fresh_id();
    let owner = scene.bring(client, &id, standing);
    let before = client.state_of(&id);
    let code = ask(client, *version, (&id, claim.of(owner)));
    assert_eq!(code, if *version < 2 { old } else { new }, "T-212, {what}, version {version}: {line:?}");
    let after = if code == 0 { Ok("Ongoing".to_owned()) } else { before };
    assert_eq!(client.state_of(&id), after, "{what}, version {version}: {line:?}");
}

#[test]
fn every_row() {
    let scene = Scene::new();
    scene.hold();
    for ask in ASKS {
        let lines: Vec<(i16, (&str, Ask), Line)> =
            (0..=3).flat_map(|version| LINES.iter().map(move |line| (version, ask, *line))).collect();
        scene.check_all(&lines, check);
    }
}

/// T-210, T-211, T-212 row 1, T-214, and that nothing is added where one partition cannot be.
#[test]
fn what_is_judged_before_the_coordinator() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let owner = client.owner("id");
    for version in 0..=3 {
        assert_eq!(client.add_in(version, ("", owner), &[(FREE, 0)]), 42, "row 1");
        assert_eq!(client.add_offsets_in(version, ("", owner), "group"), 42, "row 1");
        assert_eq!(client.add_in(version, ("id", owner), &[("none", 0)]), 3, "T-211");
        assert_eq!(client.add_in(version, ("id", owner), &[(FREE, 99)]), 3, "T-211");
        assert_eq!(client.add_in(version, ("id", owner), &[("__consumer_offsets", 0)]), 29, "T-211");
    }
    assert_eq!(client.add_partitions("id", owner, &[(FREE, 0), (FREE, 99), (HELD, 0)]), [55, 3, 55], "T-211");
    assert_eq!(client.state_of("id").as_deref(), Ok("Empty"), "T-211: nothing was added");
    let batch = Batch::transactional(owner, 0, 1);
    assert_eq!(client.produce(FREE, 0, Some("id"), &batch).code, 48, "T-211: nothing was added");
}
