//! The writing half: requests to answers, in the order of the requests.

use super::budget::Share;
use super::connection::Activity;
use super::end::End;
use super::frames::{Ready, Work};
use super::listener::Edge;
use crate::api::service::{Peer, Pending, Reply};
use crate::wire::{Api, header};
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

/// Starts requests as they come and writes their answers until there are no more of either.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut stream: W,
    mut requests: mpsc::Receiver<Ready>,
    peer: &Arc<Peer>,
    edge: &Edge,
    activity: &Activity,
) -> End {
    let mut started = Started::default();
    let mut more = true;
    while more || !started.0.is_empty() {
        tokio::select! {
            biased;
            done = started.answered(), if !started.0.is_empty() => {
                if let Err(end) = send(&mut stream, done, edge).await {
                    return end;
                }
                activity.note();
            }
            ready = requests.recv(), if more => match ready {
                Some(ready) => started.0.push_back(start(ready, peer, edge)),
                None => more = false,
            },
        }
    }
    End::Left
}

fn start(ready: Ready, peer: &Arc<Peer>, edge: &Edge) -> (Place, State) {
    let (api, version, correlation_id, state, decoded) = match ready.work {
        Work::Ask { request, decoded } => {
            let (api, version, correlation_id) = (request.api, request.version, request.correlation_id);
            let reply = edge.service.call(peer, request);
            (api, version, correlation_id, State::Running(reply), Some(decoded))
        }
        Work::NameVersions { correlation_id } => {
            let reply = Reply::Answer(vec![header::unsupported_api_versions()]);
            (Api::ApiVersions, 0, correlation_id, State::Done(reply), None)
        }
    };
    edge.observer.started(api, ready.frame_bytes);
    let since = Instant::now();
    (Place { api, version, correlation_id, since, _decoded: decoded, _turn: ready.turn }, state)
}

/// A request's place in the order of answers. What it holds goes back when its answer is written.
struct Place {
    api: Api,
    version: i16,
    correlation_id: i32,
    since: Instant,
    _decoded: Option<Share>,
    _turn: OwnedSemaphorePermit,
}

enum State {
    Running(Pending),
    Done(Reply),
}

/// Requests that are started and not answered, the oldest first.
#[derive(Default)]
struct Started(VecDeque<(Place, State)>);

impl Started {
    /// Drives every request and comes with the oldest ones that are done, as soon as the very oldest is. A request
    /// is polled for the first time here, and so in its order.
    async fn answered(&mut self) -> Vec<(Place, Reply)> {
        poll_fn(|context| {
            for (_, state) in &mut self.0 {
                state.poll(context);
            }
            let done = self.take_done();
            if done.is_empty() { Poll::Pending } else { Poll::Ready(done) }
        })
        .await
    }

    fn take_done(&mut self) -> Vec<(Place, Reply)> {
        let mut done = Vec::new();
        while let Some((_, State::Done(_))) = self.0.front()
            && let Some((place, State::Done(reply))) = self.0.pop_front()
        {
            done.push((place, reply));
        }
        done
    }
}

impl State {
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Self::Running(reply) = self
            && let Poll::Ready(reply) = reply.as_mut().poll(context)
        {
            *self = Self::Done(reply);
        }
    }
}

/// Writes answers with as few calls as it takes, up to the first reply that closes the connection.
async fn send<W: AsyncWrite + Unpin>(stream: &mut W, done: Vec<(Place, Reply)>, edge: &Edge) -> Result<(), End> {
    let mut pieces = Pieces::default();
    let mut end = None;
    for (place, reply) in &done {
        let bytes = match reply {
            Reply::Answer(body) => pieces.push_answer(place, body),
            Reply::Nothing => Ok(0),
            Reply::Close(reason) => Err(End::Refused(reason.clone())),
        };
        match bytes {
            Ok(bytes) => edge.observer.answered(place.api, place.since.elapsed(), bytes),
            Err(reason) => {
                end = Some(reason);
                break;
            }
        }
    }
    stream.write_all_buf(&mut pieces).await.map_err(End::Broken)?;
    stream.flush().await.map_err(End::Broken)?;
    end.map_or(Ok(()), Err)
}

/// Bytes to write, piece by piece.
#[derive(Default)]
struct Pieces {
    pieces: VecDeque<Bytes>,
    remaining: usize,
}

impl Pieces {
    /// Takes over an answer's pieces behind its length and header, and says how many bytes that is.
    fn push_answer(&mut self, place: &Place, body: &[Bytes]) -> Result<usize, End> {
        let body_bytes = body.iter().fold(0_usize, |sum, piece| sum.saturating_add(piece.len()));
        let head = header::response(place.api, place.version, place.correlation_id, body_bytes)
            .ok_or(End::LongAnswer(place.api))?;
        let bytes = head.len().saturating_add(body_bytes);
        self.pieces.push_back(head);
        self.pieces.extend(body.iter().filter(|piece| !piece.is_empty()).cloned());
        self.remaining = self.remaining.saturating_add(bytes);
        Ok(bytes)
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, count: usize) {
        self.remaining = self.remaining.saturating_sub(count);
        let mut left = count;
        while let Some(front) = self.pieces.front_mut() {
            if left < front.len() {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.pieces.pop_front();
        }
    }
}
