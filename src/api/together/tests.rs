use std::cell::RefCell;

use tokio::sync::oneshot;

use super::{first, together};

#[tokio::test]
async fn all_begin_in_order_before_any_is_waited_for() {
    let begun = RefCell::new(Vec::new());
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel::<u32>()).unzip();
    let parts = receivers.into_iter().enumerate().map(|(at, receiver)| {
        let begun = &begun;
        async move {
            begun.borrow_mut().push(at);
            receiver.await.unwrap()
        }
    });
    let answers = async {
        tokio::task::yield_now().await;
        assert_eq!(*begun.borrow(), [0, 1, 2]);
        for (sender, answer) in senders.into_iter().zip(10..13).rev() {
            sender.send(answer).unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (outcomes, ()) = tokio::join!(together(parts.collect()), answers);
    assert_eq!(outcomes, [10, 11, 12]);
    assert_eq!(together(Vec::<std::future::Ready<()>>::new()).await, []);
}

#[tokio::test]
async fn the_first_to_be_done_counts() {
    let (one, two) = (oneshot::channel::<u32>(), oneshot::channel::<u32>());
    two.0.send(2).unwrap();
    assert_eq!(first(vec![one.1, two.1]).await, Ok(2));
    drop(one.0);
}
