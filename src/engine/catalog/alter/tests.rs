use super::*;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

type Change<'a> = (&'a str, i8, Option<&'a str>);

fn alter(before: &[(&str, &str)], changes: &[Change<'_>]) -> Result<Vec<(String, String)>, Refusal> {
    let levels = BrokerLevels::default();
    let before: Vec<_> = before.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect();
    let before = TopicSettings::of(&before, &levels).unwrap();
    let changes: Result<Vec<_>, Refused> = changes
        .iter()
        .map(|(key, code, value)| {
            let op = AlterOp::from_code(*code, value.map(str::to_owned))?;
            Ok(Alteration { key: (*key).to_owned(), op })
        })
        .collect();
    let after = changes.and_then(|changes| before.altered(&changes, &levels)).map_err(|r| r.refusal)?;
    Ok(after.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
}

fn check(rule: &str, before: &[(&str, &str)], changes: &[Change<'_>], expected: Result<&[(&str, &str)], Refusal>) {
    let expected = expected.map(|pairs| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
    assert_eq!(alter(before, changes), expected, "{rule} {before:?} {changes:?}");
}

#[test]
fn key_by_key() {
    let kept = ("retention.ms", "5");
    check("A-316 set", &[kept], &[("segment.ms", SET, Some("9"))], Ok(&[kept, ("segment.ms", "9")]));
    check("A-316 the default", &[], &[("retention.ms", SET, Some("604800000"))], Ok(&[("retention.ms", "604800000")]));
    check("A-316 delete", &[kept], &[("retention.ms", DELETE, None)], Ok(&[]));
    check("A-316 delete absent", &[kept], &[("segment.ms", DELETE, Some("1"))], Ok(&[kept]));
    check("A-317 delete unknown", &[kept], &[("no.such", DELETE, None)], Ok(&[kept]));
    let both = ("cleanup.policy", "delete,compact");
    check("A-316 append to default", &[], &[("cleanup.policy", APPEND, Some("compact"))], Ok(&[both]));
    check("A-316 append again", &[both], &[("cleanup.policy", APPEND, Some("compact, delete"))], Ok(&[both]));
    check(
        "A-316 subtract",
        &[both],
        &[("cleanup.policy", SUBTRACT, Some("delete"))],
        Ok(&[("cleanup.policy", "compact")]),
    );
    check("A-316 subtract all", &[], &[("cleanup.policy", SUBTRACT, Some("delete"))], Ok(&[("cleanup.policy", "")]));
    check("A-316 subtract absent", &[both], &[("cleanup.policy", SUBTRACT, Some("x"))], Ok(&[both]));
}

#[test]
fn refusals() {
    let (request, config) = (Err(Refusal::InvalidRequest), Err(Refusal::InvalidConfig));
    check("A-312", &[], &[("retention.ms", SET, Some("1")), ("retention.ms", DELETE, None)], request);
    check("A-312", &[], &[("retention.ms", SET, None)], request);
    check("A-312", &[], &[("cleanup.policy", APPEND, None)], request);
    check("A-312", &[], &[("retention.ms", 4, Some("1"))], request);
    check("A-312", &[], &[("retention.ms", -1, Some("1"))], request);
    check("A-315", &[], &[("retention.ms", APPEND, Some("1"))], config);
    check("A-315", &[], &[("compression.type", SUBTRACT, Some("producer"))], config);
    check("A-315", &[], &[("no.such", SET, Some("1"))], config);
    check("A-315", &[], &[("no.such", APPEND, Some("1"))], config);
    check("A-315", &[], &[("cleanup.policy", APPEND, Some("keep"))], config);
    check("A-315", &[("max.compaction.lag.ms", "5")], &[("min.compaction.lag.ms", SET, Some("6"))], config);
    let together = [("min.compaction.lag.ms", SET, Some("6")), ("max.compaction.lag.ms", SET, Some("7"))];
    let after: &[(&str, &str)] = &[("max.compaction.lag.ms", "7"), ("min.compaction.lag.ms", "6")];
    check("A-315", &[("max.compaction.lag.ms", "5")], &together, Ok(after));
    let endless = "delete,".repeat(5_000);
    check("A-315 length", &[], &[("cleanup.policy", APPEND, Some(&endless))], config);
    check("A-315 length", &[], &[("cleanup.policy", SUBTRACT, Some(&endless))], config);
    check("A-317 all or none", &[], &[("retention.ms", SET, Some("1")), ("segment.ms", SET, Some("0"))], config);
}

#[test]
fn the_whole_set() {
    let levels = BrokerLevels::default();
    let pair = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
    let code = |given: &[(String, Option<String>)]| TopicSettings::replaced(given, &levels).map_err(|r| r.refusal);
    assert_eq!(code(&[]), Ok(TopicSettings::default()), "A-318");
    let after = code(&[pair("retention.ms", Some("7"))]).unwrap();
    assert_eq!(after.iter().collect::<Vec<_>>(), [("retention.ms", "7")], "A-318");
    assert_eq!(code(&[pair("retention.ms", None)]), Err(Refusal::InvalidRequest), "A-318");
    assert_eq!(code(&[pair("x", Some("7"))]), Err(Refusal::InvalidConfig), "A-318");
    let twice = [pair("retention.ms", Some("7")), pair("retention.ms", Some("8"))];
    assert_eq!(code(&twice), Err(Refusal::InvalidRequest), "A-312");
}
