//! What was probably meant by a misspelt name.

use super::settings::SETTINGS;

/// The setting whose name is nearest to `wrong`, if one is near enough to be worth suggesting.
pub(super) fn setting(wrong: &str) -> Option<&'static str> {
    let wrong = wrong.to_lowercase();
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let moved = SETTINGS.iter().filter(|setting| last(setting.key) == last(&wrong)).map(|setting| setting.key);
    let (distance, key) = SETTINGS.iter().map(|setting| (edits(&wrong, setting.key), setting.key)).min()?;
    if distance <= (wrong.len() / 4).max(2) {
        return Some(key);
    }
    // The right name under the wrong heading: only when it is not ambiguous.
    let mut moved = moved.collect::<Vec<_>>();
    moved.pop().filter(|_| moved.is_empty())
}

/// How many letters must be put in, taken out or replaced to make `b` of `a` (Levenshtein's distance).
fn edits(a: &str, b: &str) -> usize {
    let b = b.chars().collect::<Vec<_>>();
    let mut row = (0..=b.len()).collect::<Vec<_>>();
    for (done, letter) in a.chars().enumerate() {
        let mut diagonal = done;
        let mut left = done + 1;
        let mut next = vec![left];
        for (other, above) in b.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(letter != *other);
            left = replaced.min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, want) in [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!(edits(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn suggestions() {
        for (wrong, want) in [
            ("topics.auto_craete", Some("topics.auto_create")),
            ("durabilty", Some("durability")),
            ("default_partitions", Some("topics.default_partitions")),
            ("transaction.max_timeout_ms", Some("transactions.max_timeout_ms")),
            ("id_expiration_ms", None),
            ("something_else_altogether", None),
        ] {
            assert_eq!(setting(wrong), want, "{wrong}");
        }
    }
}
