use super::*;

const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn only_the_form_of_w3c_is_read() {
    let context = read(GOOD.as_bytes()).unwrap();
    assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
    assert!(context.is_sampled() && context.is_remote());
    let later = GOOD.replacen("00", "cc", 1).replace("-01", "-fe");
    assert!(!read(later.as_bytes()).unwrap().is_sampled(), "other flags mean nothing here");
    let wrong = [
        String::new(),
        "-".repeat(LENGTH),
        "0".repeat(LENGTH),
        GOOD.to_uppercase(),
        GOOD.replacen("00", "ff", 1),
        GOOD.replace("0af7", "0aF7"),
        GOOD.replace("0af7", "+af7"),
        GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
        GOOD.replace("-01", "-0g"),
        GOOD.replace("-01", "-0"),
        format!("{GOOD}-x"),
        GOOD.replacen('-', "_", 1),
        GOOD.replace("0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", &"a".repeat(49)),
        GOOD.replace("80319c-b", "80319cb-"),
        GOOD.replace("0af", "é"),
    ];
    for text in wrong {
        assert_eq!(read(text.as_bytes()), None, "{text}");
    }
    assert_eq!(read(&[0xff; LENGTH]), None);
}
