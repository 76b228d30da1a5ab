//! A thread: its sockets, its connections, and the loop that waits for both.

use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quiche::{Config, ConnectionId, Header, RecvInfo, h3};
use slab::Slab;

use crate::DATAGRAM;
use crate::client::Client;

/// Length of the connection ids given out.
const ID: usize = 16;
/// The kernel cuts one buffer into at most this many datagrams.
const SEGMENTS: usize = 44;
const WAKE: Token = Token(usize::MAX);

pub struct Worker {
    poll: Poll,
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    sockets: Vec<Socket>,
    config: Config,
    settings: h3::Config,
    clients: Slab<Connected>,
    /// Clients by the connection ids that lead to them.
    ids: HashMap<ConnectionId<'static>, usize>,
    /// Clients that something arrived for or fell due.
    touched: Vec<usize>,
    buffer: Vec<u8>,
}

struct Socket {
    socket: UdpSocket,
    address: SocketAddr,
    /// What the kernel had no room for.
    unsent: Option<Batch>,
}

struct Connected {
    client: Client,
    socket: usize,
    /// The id the client chose first, and the one it was given.
    ids: [ConnectionId<'static>; 2],
    touched: bool,
}

/// Datagrams to one address, each of the length `DATAGRAM` but the last, which may be shorter.
struct Batch {
    bytes: Vec<u8>,
    to: SocketAddr,
}

impl Worker {
    pub fn new(sockets: Vec<UdpSocket>, config: Config, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let mut listening = Vec::new();
        for (token, mut socket) in sockets.into_iter().enumerate() {
            poll.registry().register(&mut socket, Token(token), Interest::READABLE | Interest::WRITABLE)?;
            listening.push(Socket { address: socket.local_addr()?, socket, unsent: None });
        }
        Ok(Self {
            poll,
            waker,
            stop,
            sockets: listening,
            config,
            settings: h3::Config::new().map_err(io::Error::other)?,
            clients: Slab::new(),
            ids: HashMap::new(),
            touched: Vec::new(),
            buffer: vec![0; 1 << 16],
        })
    }

    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        while !self.stop.load(Ordering::Relaxed) {
            let due = self.clients.iter().filter_map(|(_, one)| one.client.quic.timeout()).min();
            match self.poll.poll(&mut events, due) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for socket in 0..self.sockets.len() {
                self.receive(socket);
            }
            self.expire();
            self.serve();
        }
        for key in self.clients.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            let _ = self.clients[key].client.quic.close(true, h3::WireErrorCode::NoError as u64, b"");
            self.touch(key);
        }
        self.serve();
        Ok(())
    }

    /// Hands every datagram that has arrived to its connection.
    fn receive(&mut self, socket: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            match self.sockets[socket].socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.datagram(socket, &mut buffer[..length], from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A datagram sent earlier found nobody (ICMP); others may be waiting.
                Err(_) => {}
            }
        }
        self.buffer = buffer;
    }

    fn datagram(&mut self, socket: usize, datagram: &mut [u8], from: SocketAddr) {
        let Ok(header) = Header::from_slice(datagram, ID) else { return };
        let key = match self.ids.get(&header.dcid) {
            Some(&key) => key,
            None => match self.accept(socket, header, from) {
                Some(key) => key,
                None => return,
            },
        };
        let to = self.sockets[socket].address;
        // What cannot be read is dropped; errors have closed the connection.
        let _ = self.clients[key].client.quic.recv(datagram, RecvInfo { from, to });
        self.touch(key);
    }

    /// Takes in a new client, if that is what `header` says.
    fn accept(&mut self, socket: usize, header: Header<'_>, from: SocketAddr) -> Option<usize> {
        if header.ty != quiche::Type::Initial {
            return None;
        }
        let Socket { socket: udp, address, .. } = &self.sockets[socket];
        if !quiche::version_is_supported(header.version) {
            let mut answer = [0; DATAGRAM];
            let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer).ok()?;
            let _ = udp.send_to(&answer[..length], from);
            return None;
        }
        let mut id = vec![0; ID];
        getrandom::fill(&mut id).ok()?;
        let id = ConnectionId::from_vec(id);
        let quic = quiche::accept(&id, None, *address, from, &mut self.config).ok()?;
        let ids = [header.dcid.into_owned(), id];
        let client = Client::new(quic);
        let key = self.clients.insert(Connected { client, socket, ids: ids.clone(), touched: false });
        for id in ids {
            self.ids.insert(id, key);
        }
        Some(key)
    }

    fn touch(&mut self, key: usize) {
        if !std::mem::replace(&mut self.clients[key].touched, true) {
            self.touched.push(key);
        }
    }

    fn expire(&mut self) {
        for (key, one) in &mut self.clients {
            if one.client.quic.timeout() == Some(Duration::ZERO) {
                one.client.quic.on_timeout();
                if !std::mem::replace(&mut one.touched, true) {
                    self.touched.push(key);
                }
            }
        }
    }

    /// Answers, sends, and forgets those that are closed.
    fn serve(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            let one = &mut self.clients[key];
            one.touched = false;
            one.client.serve(&self.settings, &mut self.buffer);
            if !self.sockets[one.socket].send(&mut one.client.quic, &mut self.buffer) {
                self.touch(key);
            } else if one.client.quic.is_closed() {
                for id in self.clients.remove(key).ids {
                    self.ids.remove(&id);
                }
            }
        }
    }
}

impl Socket {
    /// Sends all that a connection has to say, in batches; false when the kernel has no room for more.
    fn send(&mut self, quic: &mut quiche::Connection, buffer: &mut [u8]) -> bool {
        if let Some(batch) = self.unsent.take()
            && !self.put(&batch.bytes, batch.to)
        {
            return false;
        }
        let mut more = true;
        while more {
            let (mut filled, mut to) = (0, None);
            while more && filled < SEGMENTS * DATAGRAM {
                match quic.send(&mut buffer[filled..filled + DATAGRAM]) {
                    Ok((length, info)) => {
                        filled += length;
                        to = Some(info.to);
                        // A shorter one ends a batch.
                        if length < DATAGRAM {
                            break;
                        }
                    }
                    // Nothing to say, or closed.
                    Err(_) => more = false,
                }
            }
            if let Some(to) = to
                && !self.put(&buffer[..filled], to)
            {
                return false;
            }
        }
        true
    }

    /// False when the kernel has no room; then the bytes are kept for the next attempt.
    fn put(&mut self, bytes: &[u8], to: SocketAddr) -> bool {
        let result = if bytes.len() <= DATAGRAM {
            self.socket.send_to(bytes, to).map(|_| ())
        } else {
            let length = DATAGRAM as u16;
            let segments = [ControlMessage::UdpGsoSegments(&length)];
            let (fd, flags, to) = (self.socket.as_raw_fd(), MsgFlags::empty(), SockaddrStorage::from(to));
            sendmsg(fd, &[IoSlice::new(bytes)], &segments, flags, Some(&to)).map(|_| ()).map_err(Into::into)
        };
        let blocked = result.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        if blocked {
            self.unsent = Some(Batch { bytes: bytes.to_vec(), to });
        }
        // Any other error is a datagram lost, which QUIC repairs.
        !blocked
    }
}
