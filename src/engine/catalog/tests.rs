use super::*;

pub(super) fn defaults() -> Defaults {
    Defaults { partitions: 3, node_id: 1, replication: Replication::Refuse, levels: BrokerLevels::default() }
}

pub(super) fn topic(name: &str, number: u8, parts: &[i64]) -> Topic {
    Topic {
        id: TopicId([number; 16]),
        name: TopicName::from(name),
        parts: parts.iter().copied().map(PartId).collect(),
        settings: TopicSettings::default(),
    }
}

fn names_of(catalog: &Catalog) -> Vec<&str> {
    catalog.iter().map(|topic| topic.name.as_str()).collect()
}

/// M-201: (name, whether a topic may have it).
#[test]
fn names_follow_m_201() {
    let (longest, too_long) = ("a".repeat(249), "a".repeat(250));
    let table: [(&str, Result<(), BadName>); 12] = [
        ("a", Ok(())),
        ("A.b_c-9", Ok(())),
        ("...", Ok(())),
        (&longest, Ok(())),
        ("", Err(BadName::Empty)),
        (".", Err(BadName::Dots)),
        ("..", Err(BadName::Dots)),
        (&too_long, Err(BadName::TooLong)),
        ("a/b", Err(BadName::Character('/'))),
        ("a b", Err(BadName::Character(' '))),
        ("topic\0", Err(BadName::Character('\0'))),
        ("thème", Err(BadName::Character('è'))),
    ];
    for (name, expected) in table {
        assert_eq!(check_name(name), expected, "M-201 {name:?}");
    }
    for (name, internal) in [("__consumer_offsets", true), ("__transaction_state", true), ("__share_group_state", true)]
    {
        assert_eq!(is_internal(name), internal, "M-201 {name}");
    }
    assert!(!is_internal("consumer_offsets"), "M-201");
}

/// M-202: (id, fit).
#[test]
fn ids_follow_m_202() {
    let mut one = [0; 16];
    one[15] = 1;
    // Sextets: 62 is 111110.
    let dash_first = [0b1111_1000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    let dash_last = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0b1111_1000];
    let dash_inside = [1, 1, 0b0011_1110, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    let table = [
        ([0; 16], false),
        (one, false),
        (dash_first, false),
        (dash_inside, false),
        // The end's last whole sextet covers bits 2 to 7 of the last byte.
        (dash_last, false),
        ([1; 16], true),
        ([0xff; 16], true),
    ];
    for (bytes, fit) in table {
        assert_eq!(is_fit_topic_id(TopicId(bytes)), fit, "M-202 {bytes:?}");
    }
}

#[test]
fn a_catalog_finds_topics_by_name_id_and_part() {
    let old = Catalog::default().with(topic("b", 2, &[20, 21])).with(topic("a", 1, &[10]));
    let new = old.with(topic("c", 3, &[30])).without(&TopicName::from("a"));
    assert_eq!(names_of(&old), ["a", "b"], "what was shared stays as it was");
    assert_eq!(names_of(&new), ["b", "c"]);
    assert_eq!(new.part(PartId(21)).map(|(t, i)| (t.name.as_str(), i)), Some(("b", 1)));
    assert_eq!(new.part_id("b", 1), Some(PartId(21)));
    assert_eq!((new.part_id("b", 2), new.part_id("b", -1), new.part_id("x", 0)), (None, None, None), "C-86");
    assert!(new.part(PartId(10)).is_none() && old.part(PartId(10)).is_some());
    assert!(new.topic_by_id(TopicId([1; 16])).is_none() && new.topic_by_id(TopicId([3; 16])).is_some());
    assert!(Arc::ptr_eq(old.topic("b").unwrap(), new.topic("b").unwrap()), "shared, not copied");
    assert_eq!(names_of(&new.without(&TopicName::from("nobody"))), ["b", "c"]);
}

/// A topic made again under its name shares nothing with the one before (M-202, M-233).
#[test]
fn a_new_topic_of_an_old_name_takes_its_place_whole() {
    let catalog = Catalog::default().with(topic("a", 1, &[10, 11])).with(topic("a", 2, &[12]));
    assert_eq!((catalog.len(), catalog.partition_count()), (1, 1));
    assert!(catalog.topic_by_id(TopicId([1; 16])).is_none());
    assert!(catalog.part(PartId(10)).is_none() && catalog.part(PartId(12)).is_some());
    let renamed = catalog.with(topic("z", 2, &[12]));
    assert_eq!(names_of(&renamed), ["z"]);
    let grown = renamed.with(renamed.topic("z").unwrap().grown([PartId(13)]));
    assert_eq!(grown.part(PartId(13)).map(|(_, index)| index), Some(1));
    assert_eq!(grown.part(PartId(12)).map(|(_, index)| index), Some(0));
}

#[test]
fn ten_thousand_topics_are_made_and_dropped_one_by_one() {
    let mut catalog = Catalog::default();
    let name = |n: i64| format!("t{:05}", n.wrapping_mul(7919).rem_euclid(10_000));
    let id = |n: i64| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&n.wrapping_mul(-7_046_029_254_386_353_131).to_be_bytes());
        TopicId(id)
    };
    for n in 0..10_000 {
        let mut topic = topic(&name(n), 0, &[n]);
        topic.id = id(n);
        catalog = catalog.with(topic);
    }
    assert_eq!((catalog.len(), catalog.partition_count()), (10_000, 10_000));
    assert!(catalog.iter().map(|t| &t.name).is_sorted());
    assert_eq!(catalog.iter_from("t09998").count(), 2, "M-235");
    assert_eq!(catalog.iter_from("t0999").count(), 10, "M-235");
    assert_eq!((catalog.iter_from("").count(), catalog.iter_from("u").count()), (10_000, 0), "M-235");
    for n in 0..10_000 {
        let (topic, _) = catalog.part(PartId(n)).unwrap();
        assert_eq!((topic.name.as_str(), topic.id), (name(n).as_str(), id(n)));
    }
    for n in 0..9_999 {
        catalog = catalog.without(&TopicName::from(name(n)));
        assert!(catalog.part(PartId(n)).is_none());
    }
    assert_eq!((catalog.len(), catalog.partition_count()), (1, 1));
}

#[test]
fn rows_come_back_as_they_went() {
    let mut one = topic("a.b", 7, &[1, i64::MAX, 3]);
    one.settings = TopicSettings::of(
        &[("retention.ms".to_owned(), Some(" 5 ".to_owned())), ("cleanup.policy".to_owned(), Some(String::new()))],
        &BrokerLevels::default(),
    )
    .unwrap();
    for topic in [one.clone(), topic("x", 1, &[])] {
        assert_eq!(Topic::decode(&topic.encode()), Ok(topic));
    }
    let row = one.encode();
    assert_eq!(row[0], 1, "the layout comes first");
    for end in 0..row.len() {
        assert!(Topic::decode(&row[..end]).is_err(), "cut at {end}");
    }
    let mut longer = row.clone();
    longer.push(0);
    assert_eq!(Topic::decode(&longer), Err(DamagedRow { what: "bytes behind the end" }));
    // A count that promises more than there is asks for no memory.
    let mut huge = row.clone();
    let count_at = 1 + 16 + 4 + 3;
    huge[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(Topic::decode(&huge), Err(DamagedRow { what: "partition id" }));
    for at in 0..row.len() {
        let mut bent = row.clone();
        bent[at] ^= 0x80;
        if let Ok(topic) = Topic::decode(&bent) {
            assert_eq!(topic.encode(), bent, "byte {at}");
        }
    }
}
