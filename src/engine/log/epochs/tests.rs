use super::*;

fn epochs(entries: &[(i32, Offset)]) -> LeaderEpochs {
    let mut epochs = LeaderEpochs::default();
    for (epoch, start) in entries {
        epochs.note(*epoch, *start);
    }
    epochs
}

#[test]
fn where_an_epoch_ends() {
    let known = epochs(&[(2, 0), (5, 30), (6, 50)]);
    for (requested, current, answer) in [
        (6, 6, (6, 90)),
        (7, 6, (-1, -1)),
        (1, 6, (1, 0)),
        (2, 6, (2, 30)),
        (4, 6, (2, 30)),
        (5, 6, (5, 50)),
        // The present leader wrote nothing yet: what the last one wrote reaches to the end.
        (6, 8, (6, 90)),
        (8, 8, (8, 90)),
        (-1, 8, (-1, -1)),
    ] {
        assert_eq!(known.end_of(requested, current, 90), answer, "F-752: {requested} of {current}");
    }
}

#[test]
fn epochs_only_rise() {
    let mut known = epochs(&[(1, 0), (3, 10)]);
    assert!(!known.note(3, 20));
    assert!(!known.note(2, 20));
    assert!(known.note(4, 10), "an epoch that wrote nothing gives way");
    assert_eq!(known.entries(), [(1, 0), (4, 10)]);
    assert!(known.cut(10));
    assert!(!known.cut(10));
    assert_eq!(known.latest(), Some(1));
}

#[test]
fn the_file_is_kafkas() {
    let known = epochs(&[(2, 0), (5, 30)]);
    assert_eq!(known.to_text(), "0\n2\n2 0\n5 30\n");
    assert_eq!(LeaderEpochs::from_text(&known.to_text()), Some(known));
    for bad in ["", "0\n", "1\n0\n", "0\n2\n2 0\n", "0\n1\n2 x\n", "0\n2\n2 0\n2 5\n", "0\n2\n2 5\n3 5\n"] {
        assert_eq!(LeaderEpochs::from_text(bad), None, "{bad:?}");
    }
    assert_eq!(LeaderEpochs::from_text("0\n0\n"), Some(LeaderEpochs::default()));
}

#[test]
fn topic_ids_are_22_characters() {
    let id = TopicId([0xfb, 0xff, 0xbf, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xff]);
    assert_eq!(topic_id_text(id), "-_-_AAECAwQFBgcICQoL_w");
    assert_eq!(partition_metadata(TopicId([0; 16])), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA");
}

#[test]
fn partition_metadata_names_its_topic() {
    for seed in 0..=255_u8 {
        let mut topic = TopicId([seed; 16]);
        topic.0.iter_mut().zip(0_u8..).for_each(|(byte, at)| *byte = byte.wrapping_mul(31).wrapping_add(at * 15));
        assert_eq!(read_partition_metadata(&partition_metadata(topic)), Some(topic));
        assert_eq!(read_partition_metadata(&(partition_metadata(topic) + "\n")), Some(topic));
    }
    let whole = partition_metadata(TopicId([7; 16]));
    for end in 0..whole.len() {
        assert_eq!(read_partition_metadata(&whole[..end]), None, "{end} bytes");
    }
    for bad in
        [whole.clone() + "A", whole.replace('0', "1"), whole.replace('w', "*"), whole.replace("BwcH", "BwcHBwcH")]
    {
        assert_eq!(read_partition_metadata(&bad), None, "{bad:?}");
    }
}
