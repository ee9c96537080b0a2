//! The reading half: bytes to requests, each in its turn.

use super::budget::Share;
use super::connection::Activity;
use super::end::End;
use super::listener::{Edge, stopped};
use crate::api::service::Incoming;
use crate::wire::frame::{self, LENGTH_BYTES, Opening};
use crate::wire::{Api, Malformed, Order, guard, header};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Bytes that are read ahead of the frame in hand: small frames come many at a time, and the end of the stream is
/// seen behind them while a request is parked.
const READ_AHEAD_BYTES: usize = 8 << 10;

/// Length, key and version: what a frame is judged by.
const OPENING_BYTES: usize = LENGTH_BYTES + 4;

/// A request whose turn it is.
pub(super) struct Ready {
    pub(super) work: Work,
    pub(super) frame_bytes: usize,
    /// Given back when the answer is written: then the next may start.
    pub(super) turn: OwnedSemaphorePermit,
}

/// What is to be done about a frame.
pub(super) enum Work {
    /// Ask the service.
    Ask {
        /// The request.
        request: Incoming,
        /// What decoding may allocate.
        decoded: Share,
    },
    /// Say which versions of ApiVersions there are (V-120).
    NameVersions {
        /// The number the client gave its request.
        correlation_id: i32,
    },
}

/// Reads requests until the connection ends, and hands on each when its turn has come.
///
/// Turns keep the order: a connection has `max_ahead` of them, a request that may run ahead takes one and any other
/// takes all, first come, first served. So the one that takes all waits for every answer before it, and holds back
/// whatever is behind it (V-131). A frame whose turn has not come stays in the socket.
pub(super) async fn read<R: AsyncRead + Unpin>(
    mut frames: Frames<'_, R>,
    edge: &Edge,
    ready: mpsc::Sender<Ready>,
    mut shutdown: watch::Receiver<bool>,
) -> End {
    let turns = Arc::new(Semaphore::new(usize::try_from(edge.limits.max_ahead).unwrap_or(1).max(1)));
    loop {
        let next = tokio::select! {
            biased;
            () = stopped(&mut shutdown) => return End::Stopping,
            next = next_turn(&mut frames, edge, &turns) => next,
        };
        let handed = match next {
            Ok((length, opening, turn)) => match request(&mut frames, edge, length, opening).await {
                Ok(work) => ready.send(Ready { work, frame_bytes: length, turn }).await,
                Err(end) => return end,
            },
            Err(end) => return end,
        };
        if handed.is_err() {
            return End::Left;
        }
    }
}

/// What the next frame is, once it may be read.
async fn next_turn<R: AsyncRead + Unpin>(
    frames: &mut Frames<'_, R>,
    edge: &Edge,
    turns: &Arc<Semaphore>,
) -> Result<(usize, Opening, OwnedSemaphorePermit), End> {
    frames.fill_to(LENGTH_BYTES).await?;
    let length = frame::length(frames.peek(0)?, &edge.limits.frame)?;
    frames.fill_to(OPENING_BYTES).await?;
    let opening = frame::opening(frames.peek(LENGTH_BYTES)?, length, &edge.limits.frame)?;
    let order = match opening {
        Opening::Request(api, _) => api.versions().order,
        Opening::UnknownApiVersions => Order::Alone,
    };
    let count = match order {
        Order::Ahead => 1,
        Order::Alone => edge.limits.max_ahead.max(1),
    };
    let turn = frames.while_connected(Arc::clone(turns).acquire_many_owned(count)).await?;
    // The semaphore is never closed.
    turn.map(|turn| (length, opening, turn)).map_err(|_| End::Left)
}

/// Reads the frame whose turn it is and proves that it may be decoded.
async fn request<R: AsyncRead + Unpin>(
    frames: &mut Frames<'_, R>,
    edge: &Edge,
    length: usize,
    opening: Opening,
) -> Result<Work, End> {
    let asked = tokio::time::Instant::now();
    let share = frames.while_connected(edge.budget.frame(length)).await?;
    edge.observer.queued(asked.elapsed());
    let time = edge.limits.frame_time(length);
    let bytes = match tokio::time::timeout(time, frames.frame(length)).await {
        Ok(read) => read?,
        Err(_late) => return Err(End::SlowFrame(time)),
    };
    let mut body = share.bind(bytes);
    let (api, version) = match opening {
        Opening::Request(api, version) => (api, version),
        Opening::UnknownApiVersions => return name_versions(&body),
    };
    let malformed = |client: Option<&str>, why| End::Malformed { api, version, client: shorten(client), why };
    let head = header::take_request(api, version, &mut body).map_err(|why| malformed(None, why))?;
    let passed = guard::check(api, version, &body).map_err(|why| malformed(head.client_id.as_deref(), why))?;
    let decoded = frames.while_connected(edge.budget.decoded(passed.decoded_bytes)).await?;
    let request = Incoming { api, version, correlation_id: head.correlation_id, client_id: head.client_id, body };
    Ok(Work::Ask { request, decoded })
}

fn name_versions(frame: &Bytes) -> Result<Work, End> {
    let unreadable = |why: Malformed| End::Malformed { api: Api::ApiVersions, version: -1, client: String::new(), why };
    header::correlation_id(frame).map(|correlation_id| Work::NameVersions { correlation_id }).map_err(unreadable)
}

/// A client's name for itself, as much as fits in a line of the log.
fn shorten(client: Option<&str>) -> String {
    client.unwrap_or_default().chars().take(64).collect()
}

/// The bytes of a connection as they come in.
pub(super) struct Frames<'a, R> {
    stream: R,
    ahead: BytesMut,
    activity: &'a Activity,
    linger: Duration,
}

impl<'a, R: AsyncRead + Unpin> Frames<'a, R> {
    pub(super) fn new(stream: R, activity: &'a Activity, linger: Duration) -> Self {
        Self { stream, ahead: BytesMut::new(), activity, linger }
    }

    /// Reads once, no further ahead than it may. Nothing is lost if it is dropped while it waits.
    async fn fill(&mut self) -> Result<(), End> {
        let room = READ_AHEAD_BYTES.saturating_sub(self.ahead.len());
        self.ahead.reserve(room);
        let read = self.stream.read_buf(&mut (&mut self.ahead).limit(room)).await;
        self.activity.note();
        match read {
            Ok(0) => Err(End::Left),
            Ok(_) => Ok(()),
            Err(error) => Err(End::Broken(error)),
        }
    }

    async fn fill_to(&mut self, length: usize) -> Result<(), End> {
        while self.ahead.len() < length {
            self.fill().await?;
        }
        Ok(())
    }

    /// Four bytes that have come in and stay where they are.
    fn peek(&self, at: usize) -> Result<[u8; 4], End> {
        self.ahead.get(at..).and_then(|bytes| bytes.first_chunk()).copied().ok_or(End::Left)
    }

    /// Waits for something else, and ends when the client is gone first (V-134). What it sent before it left is still
    /// owed a try: a producer with acks = 0 may well send and leave.
    async fn while_connected<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, End> {
        tokio::pin!(wait);
        let end = tokio::select! {
            biased;
            done = &mut wait => return Ok(done),
            end = self.gone() => end,
        };
        if !matches!(end, End::Left) {
            return Err(end);
        }
        tokio::time::timeout(self.linger, wait).await.map_err(|_| end)
    }

    /// Comes when the client is gone. It is not seen behind more bytes than are read ahead.
    async fn gone(&mut self) -> End {
        while self.ahead.len() < READ_AHEAD_BYTES {
            if let Err(end) = self.fill().await {
                return end;
            }
        }
        std::future::pending().await
    }

    /// Takes a frame out, without its length. Its room has been asked for before: here it is allocated.
    async fn frame(&mut self, length: usize) -> Result<BytesMut, End> {
        self.ahead.advance(LENGTH_BYTES.min(self.ahead.len()));
        let mut frame = BytesMut::with_capacity(length);
        frame.put((&mut self.ahead).take(length));
        while frame.len() < length {
            let missing = length.saturating_sub(frame.len());
            let read = self.stream.read_buf(&mut (&mut frame).limit(missing)).await;
            self.activity.note();
            match read {
                Ok(0) => return Err(End::Left),
                Ok(_) => {}
                Err(error) => return Err(End::Broken(error)),
            }
        }
        Ok(frame)
    }
}
