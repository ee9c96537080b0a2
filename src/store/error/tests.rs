use super::*;

#[test]
fn errors_are_sorted_by_what_they_are_about_3_5_5() {
    let sorted = |error: &StoreError| match error {
        StoreError::Full(_) => 'F',
        StoreError::Damaged(_) => 'D',
        StoreError::Broken(_) => 'B',
    };
    // What a failed write, read and sync are.
    let table = [
        (Errno::NOSPC, "FDB"),
        (Errno::DQUOT, "FDB"),
        (Errno::IO, "BDB"),
        (Errno::ROFS, "BDB"),
        (Errno::MFILE, "FFB"),
        (Errno::NFILE, "FFB"),
        (Errno::NOMEM, "FFB"),
    ];
    for (errno, want) in table {
        let error = io::Error::from(errno);
        let found: String = [StoreError::from_write, StoreError::from_read, StoreError::from_sync]
            .iter()
            .map(|sort| sorted(&sort("a", &error)))
            .collect();
        assert_eq!(found, want, "{errno:?}");
    }
}
