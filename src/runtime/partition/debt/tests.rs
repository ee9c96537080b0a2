use super::*;

/// What is owed by each, and from where on a point is made when one alone may owe 6400.
#[test]
fn a_point_is_due_sooner_when_all_together_owe_much() {
    let table: &[(&[u64], u64)] = &[
        (&[], 6_400),
        (&[6_399; 16], 6_400),
        (&[6_400; 16], 6_400),
        (&[6_400; 20], 5_120),
        (&[1_024; 100], 1_024),
        (&[6_400, 0, 0, 0], 6_400),
        (&[100; 4_000], 100),
    ];
    for (owed, due) in table {
        let all = Arc::new(Debts::default());
        let mut each: Vec<Debt> = owed.iter().map(|_| Debt::none(&all)).collect();
        for (debt, bytes) in each.iter_mut().zip(*owed) {
            debt.set(bytes + 7);
            debt.set(*bytes);
        }
        assert_eq!(all.bytes(), owed.iter().sum::<u64>());
        assert_eq!(all.due_from(6_400), *due, "2.2: {} of them", owed.len());
        drop(each);
        assert_eq!((all.bytes(), all.holders.load(Ordering::Relaxed)), (0, 0));
    }
}
