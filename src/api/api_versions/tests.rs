use super::{is_software_name, offered};

/// V-121, C-109.
#[test]
fn software_names() {
    let long = "a".repeat(30_000);
    let right = ["a", "7", "librdkafka", "ok-1.0", "1.2.3-SNAPSHOT", "a--b..c", long.as_str()];
    let wrong = ["", "a b", "-a", "a-", ".", "a.", "a\n", "\na", "a_b", "é", "a\u{1b}[2J", "unknown;"];
    for name in right {
        assert!(is_software_name(name), "V-121 allows {name:?}");
    }
    for name in wrong {
        assert!(!is_software_name(name), "V-121 refuses {name:?}");
    }
}

/// V-124, T-001: librdkafka takes compression away from a broker that does not list the oldest Produce (C-110).
#[test]
fn produce_is_listed_from_0() {
    let rows = offered();
    let produce = rows.iter().find(|row| row.api_key == 0).unwrap();
    assert_eq!((produce.min_version, produce.max_version), (0, 9));
    assert!(rows.is_sorted_by_key(|row| row.api_key));
}
