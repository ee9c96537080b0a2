use opentelemetry_sdk::error::OTelSdkError;

use super::*;

#[test]
fn what_finds_no_room_or_no_collector_is_counted_once() {
    let counts = Counts::default();
    assert!(counts.enter(2) && counts.enter(2));
    assert!(!counts.enter(2), "there is room for two");
    assert_eq!((counts.queued(), counts.take_dropped()), (2, 1));
    counts.leave(2);
    counts.sent(2, &Err(OTelSdkError::InternalFailure("refused".to_owned())));
    assert!(counts.unreachable.load(Ordering::Relaxed));
    assert_eq!((counts.queued(), counts.take_dropped(), counts.take_dropped()), (0, 2, 0));
    assert!(counts.enter(2));
    counts.leave(1);
    counts.sent(1, &Ok(()));
    assert!(!counts.unreachable.load(Ordering::Relaxed));
    assert_eq!((counts.queued(), counts.take_dropped()), (0, 0));
}

#[test]
fn the_resource_names_the_service() {
    let resource = resource();
    let value = |key| resource.get(&Key::from_static_str(key)).map(|value| value.to_string());
    assert_eq!(value("service.name").as_deref(), Some("oncelog"));
    assert_eq!(value("service.version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(value("service.instance.id").map(|id| id.len()), Some(36));
}
