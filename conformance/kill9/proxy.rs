//! The network between clients and broker: connections are cut, bytes come late, and whole requests of the raw clients
//! come twice, or long after everybody has stopped to wait for them.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::dice::Dice;

/// Requests that may come a second time at any later moment, since a broker can tell: Produce by its sequence,
/// InitProducerId and AddPartitionsToTxn because they may be asked again.
const REPEATABLE: [i16; 3] = [0, 22, 24];
/// Begins the client id of those whose frames are played with.
const RAW: &[u8] = b"raw";
/// No request here is larger.
const LARGEST: usize = 1 << 20;

/// What all connections share.
struct Network {
    broker: SocketAddr,
    seed: u64,
    connections: AtomicU64,
    over: AtomicBool,
}

/// Answers that are due twice and wanted once, by correlation id: whether the first has been seen.
type Doubled = Mutex<BTreeMap<[u8; 4], bool>>;

/// Listens until it is dropped.
pub(crate) struct Proxy {
    network: Arc<Network>,
    address: SocketAddr,
}

impl Proxy {
    pub(crate) fn start(seed: u64, port: u16, broker: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let (connections, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let network = Arc::new(Network { broker, seed, connections, over });
        let shared = Arc::clone(&network);
        std::thread::spawn(move || shared.accept(&listener));
        Ok(Self { network, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.over.store(true, Ordering::Release);
        // Wakes the one that accepts.
        drop(TcpStream::connect(self.address));
    }
}

impl Network {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.over.load(Ordering::Acquire) {
                return;
            }
            // Who finds the broker away sees the connection end, as through any proxy.
            if let (Ok(client), Ok(broker)) = (client, TcpStream::connect(self.broker)) {
                let network = Arc::clone(self);
                std::thread::spawn(move || network.carry(client, broker));
            }
        }
    }

    /// Both directions, until one of them ends; then both do.
    fn carry(self: Arc<Self>, client: TcpStream, broker: TcpStream) {
        let number = self.connections.fetch_add(2, Ordering::AcqRel);
        let begun = || -> io::Result<(TcpStream, TcpStream, Vec<u8>)> {
            client.set_nodelay(true)?;
            broker.set_nodelay(true)?;
            let first = read_frame(&mut client.try_clone()?)?;
            Ok((client.try_clone()?, broker.try_clone()?, first))
        };
        if let Ok((client_again, broker_again, first)) = begun() {
            let doubled = Arc::new(Doubled::default());
            let raw = first.get(14..).is_some_and(|name| name.starts_with(RAW));
            let (network, theirs) = (Arc::clone(&self), Arc::clone(&doubled));
            let mut dice = Dice::new(self.seed, number + 1);
            let back = std::thread::spawn(move || {
                let ended = if raw {
                    answers(&broker_again, &client_again, &theirs)
                } else {
                    network.stream(&broker_again, &client_again, &mut dice)
                };
                end(&client_again, &broker_again, ended);
            });
            let mut dice = Dice::new(self.seed, number);
            let ended = if raw {
                self.requests(&client, &broker, first, (&doubled, &mut dice))
            } else {
                (&broker).write_all(&first).and_then(|()| self.stream(&client, &broker, &mut dice))
            };
            end(&client, &broker, ended);
            back.join().unwrap();
        }
    }

    /// Bytes as they come, some of them late, until the end or the cut.
    fn stream(&self, mut from: &TcpStream, mut to: &TcpStream, dice: &mut Dice) -> io::Result<()> {
        let mut bytes = [0; 16 << 10];
        loop {
            let count = from.read(&mut bytes)?;
            if count == 0 || dice.permille(1) || self.over.load(Ordering::Acquire) {
                return Ok(());
            }
            let (now, later) = bytes[..count].split_at(if dice.permille(20) { count / 2 } else { count });
            to.write_all(now)?;
            if !later.is_empty() {
                std::thread::sleep(dice.ms(1, 40));
                to.write_all(later)?;
            }
        }
    }

    /// Whole requests of a raw client.
    fn requests(
        self: &Arc<Self>,
        mut client: &TcpStream,
        mut broker: &TcpStream,
        first: Vec<u8>,
        (doubled, dice): (&Doubled, &mut Dice),
    ) -> io::Result<()> {
        let mut frame = first;
        loop {
            match dice.roll(1_000) {
                // Lost with its connection, as far as the client can see.
                0..15 => {
                    self.deliver_later(frame, dice.ms(1, 700));
                    return Ok(());
                }
                15..20 => {
                    broker.write_all(&frame)?;
                    std::thread::sleep(dice.ms(1, 5));
                    return Ok(());
                }
                20..70 => {
                    let id = frame[8..12].try_into().unwrap();
                    doubled.lock().insert(id, false);
                    broker.write_all(&frame)?;
                    broker.write_all(&frame)?;
                }
                70..100 if REPEATABLE.contains(&i16::from_be_bytes([frame[4], frame[5]])) => {
                    broker.write_all(&frame)?;
                    self.deliver_later(frame, dice.ms(1, 700));
                }
                _ => broker.write_all(&frame)?,
            }
            frame = read_frame(&mut client)?;
        }
    }

    /// On a connection of its own, whatever has become of its sender by then. The broker may be away.
    fn deliver_later(self: &Arc<Self>, frame: Vec<u8>, after: Duration) {
        let network = Arc::clone(self);
        std::thread::spawn(move || {
            std::thread::sleep(after);
            if let Ok(mut broker) = TcpStream::connect(network.broker) {
                let told = broker.set_read_timeout(Some(Duration::from_secs(5)));
                let told = told.and_then(|()| broker.write_all(&frame)).and_then(|()| read_frame(&mut broker));
                // Nobody waits for the answer; that there is one is all that may be said of it.
                drop(told);
            }
        });
    }
}

/// Answers to a raw client, the second ones left out.
fn answers(mut broker: &TcpStream, mut client: &TcpStream, doubled: &Doubled) -> io::Result<()> {
    loop {
        let frame = read_frame(&mut broker)?;
        let id: [u8; 4] = frame[4..8].try_into().unwrap();
        let mut due = doubled.lock();
        let second = due.get(&id).copied();
        match second {
            Some(true) => drop(due.remove(&id)),
            Some(false) => drop(due.insert(id, true)),
            None => {}
        }
        drop(due);
        if second != Some(true) {
            client.write_all(&frame)?;
        }
    }
}

/// A frame with its length in front.
fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame)?;
    let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
    let length = usize::try_from(length).unwrap();
    if length > 8 * LARGEST {
        return Err(io::Error::other("no frame is so long"));
    }
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

/// However it ended, it ends at both sides. That a side is gone already is no surprise.
fn end(client: &TcpStream, broker: &TcpStream, ended: io::Result<()>) {
    drop((ended, client.shutdown(Shutdown::Both), broker.shutdown(Shutdown::Both)));
}
