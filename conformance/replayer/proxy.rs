//! Stands between a Kafka broker and itself, so that its markers can be held back.
//!
//! A Kafka broker sends the markers of a transaction to itself as WriteTxnMarkers requests over its inter-broker
//! listener. That listener is advertised at this proxy, which keeps such requests back while it is told to.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::play::Gate;

/// The key of WriteTxnMarkers.
const MARKERS: [u8; 2] = [0, 27];

#[derive(Debug, Default)]
struct Held {
    is_held: Mutex<bool>,
    changed: Condvar,
}

/// The hand on the proxy.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkerGate(Arc<Held>);

impl Gate for MarkerGate {
    fn hold(&self) {
        *self.0.is_held.lock() = true;
    }

    fn release(&self) {
        *self.0.is_held.lock() = false;
        self.0.changed.notify_all();
    }
}

impl MarkerGate {
    /// Listens at `from` and carries to `to`, for as long as the process lives.
    pub(crate) fn between(from: SocketAddr, to: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(from)?;
        let gate = Self::default();
        let own = gate.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let gate = own.clone();
                std::thread::spawn(move || gate.carry(near, to));
            }
        });
        Ok(gate)
    }

    fn carry(&self, near: TcpStream, to: SocketAddr) {
        let Ok(far) = TcpStream::connect(to) else { return };
        let (Ok(mut back_from), Ok(mut back_to)) = (far.try_clone(), near.try_clone()) else { return };
        std::thread::spawn(move || {
            let ended = std::io::copy(&mut back_from, &mut back_to);
            drop((ended, back_to.shutdown(Shutdown::Both)));
        });
        // It ends when either end does; there is nobody to tell.
        drop(self.forward(near, &far));
        drop(far.shutdown(Shutdown::Both));
    }

    fn forward(&self, mut near: TcpStream, mut far: &TcpStream) -> std::io::Result<()> {
        loop {
            let mut size = [0; 4];
            near.read_exact(&mut size)?;
            let mut frame = vec![0; usize::try_from(i32::from_be_bytes(size)).unwrap_or_default()];
            near.read_exact(&mut frame)?;
            if frame.starts_with(&MARKERS) {
                let mut is_held = self.0.is_held.lock();
                while *is_held {
                    self.0.changed.wait(&mut is_held);
                }
            }
            far.write_all(&size)?;
            far.write_all(&frame)?;
        }
    }
}
