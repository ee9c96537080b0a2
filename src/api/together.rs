//! Several things awaited at once, on the caller's own task.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

enum Part<F: Future> {
    Running(Pin<Box<F>>),
    Done(F::Output),
}

/// Awaits all, and gives their outcomes in order. They are polled for the first time in order, and all of them before
/// anything is waited for.
pub(super) async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut parts: Vec<Part<F>> = futures.into_iter().map(|future| Part::Running(Box::pin(future))).collect();
    poll_fn(|context| {
        let mut running = false;
        for part in &mut parts {
            if let Part::Running(future) = part {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *part = Part::Done(output),
                    Poll::Pending => running = true,
                }
            }
        }
        if running { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let done = |part| match part {
        Part::Running(_) => None,
        Part::Done(output) => Some(output),
    };
    parts.into_iter().filter_map(done).collect()
}

/// Awaits the first of them to be done.
pub(super) async fn first<F: Future>(futures: Vec<F>) -> F::Output {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        let mut ready = running.iter_mut().filter_map(|future| match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        });
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

#[cfg(test)]
mod tests;
