//! Owns one worker's `io_uring`: making it, queueing operations, waiting for completions.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::buffers::BufferRing;
use super::datagrams::{
    CONTROL_BYTES, DatagramOptions, DatagramSocket, Datagrams, HEADROOM, MOST_DATAGRAM_BYTES, Outbox, parse,
};
use super::features::{DatagramFeatures, Features, RingError};
use super::socket::{Address, RawAddress, datagram_socket, stream_socket};
use super::token::{Op, Token};
use crate::time::Span;

/// What a ring is made for.
#[derive(Clone, Debug)]
pub struct Config {
    /// Connections, each with a slot of this number, and a file of the same number where it has a
    /// socket of its own. There is one file more, for a socket that they share.
    pub slots: u32,
    /// Longest wait for a TCP connection.
    pub connect_timeout: Span,
    /// Addresses that [`Ring::connect`] and [`Ring::open_datagrams`] name by index.
    pub addresses: Vec<Address>,
    /// Receptions that may be waiting at one time: the ring has about as many buffers.
    pub receptions: u32,
    /// Datagrams are to be received: buffers hold the longest there are.
    pub datagrams: bool,
}

/// Bytes that are sent again and again, kept by the ring as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageId(usize);

/// A completed operation.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// Which operation.
    pub token: Token,
    /// Bytes moved, or a negated errno.
    pub result: i32,
    /// The receive buffer that was filled; to be given back with [`Ring::recycle`].
    pub buffer: Option<u16>,
    /// True while a multishot operation goes on.
    pub more: bool,
    /// Number of a send of datagrams.
    send: u64,
}

/// Wakes a worker from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<File>);

impl Waker {
    /// Wakes it; harmless when it is awake.
    pub fn wake(&self) {
        // The counter of an eventfd cannot overflow by ones, so this can only fail when the worker
        // is gone.
        let _ = (&*self.0).write_all(&1u64.to_ne_bytes());
    }
}

/// An `io_uring` with its registered sockets, receive buffers and request images.
///
/// Queue operations, then [`Ring::enter`] submits them all and waits; [`Ring::reap`] takes the
/// completions. One thread uses it (`IORING_SETUP_SINGLE_ISSUER`): the one that made it.
pub struct Ring {
    // Dropped first: the kernel lets go of everything below before it is freed.
    uring: IoUring,
    buffers: BufferRing,
    images: Vec<Box<[u8]>>,
    outgoing: Vec<Option<Vec<u8>>>,
    retired: Vec<(u64, Vec<u8>)>,
    /// Bytes of each slot's last [`Ring::send_now`], and the count of enters when it was queued.
    immediate: Vec<(Vec<u8>, u64)>,
    /// Enters after which nothing was left to submit.
    enters: u64,
    outbox: Outbox,
    /// What each receive of datagrams is made by; it points at nothing.
    message: Box<libc::msghdr>,
    truncated: u64,
    addresses: Vec<RawAddress>,
    connect_timeout: Box<Timespec>,
    wake: Arc<File>,
    enter_fd: libc::c_int,
    enter_flags: libc::c_uint,
    features: Features,
}

impl Ring {
    /// Makes a ring.
    ///
    /// # Errors
    /// [`RingError`] names the cause and the remedy.
    pub fn new(config: &Config) -> Result<Self, RingError> {
        let (uring, mut features) = build()?;
        let setup = |what| move |source| RingError::Setup { what, source };
        uring
            .submitter()
            .register_files_sparse(config.slots.saturating_add(1))
            .map_err(setup("registering a file table (see `ulimit -n`)"))?;
        let count = config.receptions.next_power_of_two().clamp(64, 1024) as u16;
        let size = if config.datagrams { DATAGRAM_BUFFER_BYTES } else { STREAM_BUFFER_BYTES };
        let buffers = BufferRing::new(count, size).map_err(setup("mapping receive buffers"))?;
        // SAFETY: the descriptors stay mapped until after the ring is dropped, by field order.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(buffers.address(), buffers.count(), GROUP, 0)
        }
        .map_err(|_| RingError::TooOld("no provided buffer ring".into()))?;
        // SAFETY: plain system call; the descriptor is owned by the File alone.
        let wake = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(RingError::Setup { what: "eventfd", source: io::Error::last_os_error() });
            }
            Arc::new(File::from(OwnedFd::from_raw_fd(fd)))
        };
        let registered = register_ring_fd(uring.as_raw_fd());
        features.registered_ring = registered.is_some();
        let mut ring = Self {
            enter_fd: registered.unwrap_or(uring.as_raw_fd()),
            enter_flags: if registered.is_some() { ENTER_REGISTERED_RING } else { 0 },
            uring,
            buffers,
            images: Vec::new(),
            outgoing: std::iter::repeat_with(|| None).take(config.slots as usize).collect(),
            retired: Vec::new(),
            immediate: vec![(Vec::new(), 0); config.slots as usize],
            enters: 1,
            outbox: Outbox::default(),
            message: Box::new(receive_message()),
            truncated: 0,
            addresses: config.addresses.iter().map(RawAddress::new).collect(),
            connect_timeout: Box::new(timespec(config.connect_timeout)),
            wake,
            features,
        };
        ring.arm_wake();
        Ok(ring)
    }

    /// What the kernel offers and the ring uses.
    pub fn features(&self) -> Features {
        self.features
    }

    /// A handle that wakes this ring's worker.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Keeps `bytes` for [`Ring::send_image`].
    pub fn add_image(&mut self, bytes: &[u8]) -> ImageId {
        self.images.push(bytes.into());
        ImageId(self.images.len() - 1)
    }

    /// Opens a socket in `slot`, in place of what was there, and connects it; completes as
    /// [`Op::Connect`], with `-ECANCELED` when the connect timeout ended it.
    ///
    /// # Errors
    /// When no socket can be made (descriptors, ports).
    pub fn connect(
        &mut self,
        slot: u32,
        generation: u32,
        address: usize,
        source: Option<Ipv4Addr>,
    ) -> io::Result<()> {
        let socket = stream_socket(&self.addresses[address], source)?;
        // The table keeps the socket open; the descriptor itself is not needed any more.
        self.uring.submitter().register_files_update(slot, &[socket.as_raw_fd()])?;
        drop(socket);
        let raw = &self.addresses[address];
        let connect = opcode::Connect::new(Fixed(slot), raw.as_ptr(), raw.len())
            .build()
            .user_data(Token { op: Op::Connect, generation, slot }.pack())
            .flags(Flags::IO_LINK);
        let timeout = opcode::LinkTimeout::new(&raw const *self.connect_timeout)
            .build()
            .user_data(Token { op: Op::ConnectTimeout, generation, slot }.pack());
        self.push(&[connect, timeout])
    }

    /// Receives into provided buffers until the connection ends; completes as [`Op::Recv`].
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn recv(&mut self, slot: u32, generation: u32) -> io::Result<()> {
        let recv = opcode::RecvMulti::new(Fixed(slot), GROUP)
            .build()
            .user_data(Token { op: Op::Recv, generation, slot }.pack());
        self.push(&[recv])
    }

    /// Sends `len` bytes of an image from `from`; completes as [`Op::SendImage`], when `quiet` only
    /// if it fails.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    #[inline]
    pub fn send_image(
        &mut self,
        slot: u32,
        generation: u32,
        image: ImageId,
        range: std::ops::Range<usize>,
        quiet: bool,
    ) -> io::Result<()> {
        let bytes = &self.images[image.0][range];
        let send = send_entry(slot, bytes)
            .user_data(Token { op: Op::SendImage, generation, slot }.pack())
            .flags(if quiet { Flags::SKIP_SUCCESS } else { Flags::empty() });
        self.push(&[send])
    }

    /// Sends `bytes`; completes as [`Op::Send`], and [`Ring::take_sent`] then gives them back. At
    /// most one such send of a slot is under way.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn send(&mut self, slot: u32, generation: u32, bytes: Vec<u8>) -> io::Result<()> {
        let kept = &mut self.outgoing[slot as usize];
        debug_assert!(kept.is_none(), "one send at a time");
        let kept = kept.insert(bytes);
        let send = send_entry(slot, kept).user_data(Token { op: Op::Send, generation, slot }.pack());
        self.push(&[send])
    }

    /// Sends `bytes` with the next [`Ring::enter`], then and there; completes as [`Op::SendNow`] only
    /// if not all could be sent, and [`Ring::unsent`] then has the rest. For what is sure to fit a
    /// socket's buffer. Returns the bytes sent by the call before, whose memory may be used again.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    #[inline]
    pub fn send_now(&mut self, slot: u32, generation: u32, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if self.immediate[slot as usize].1 == self.enters {
            // The bytes before these are still to be submitted.
            self.submit()?;
        }
        let kept = &mut self.immediate[slot as usize];
        kept.1 = self.enters;
        // With MSG_DONTWAIT the operation never outlives its submission, so that the bytes given
        // back here are not read any more.
        let before = std::mem::replace(&mut kept.0, bytes);
        let send = opcode::Send::new(Fixed(slot), kept.0.as_ptr(), kept.0.len() as u32)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            .build()
            .user_data(Token { op: Op::SendNow, generation, slot }.pack())
            .flags(Flags::SKIP_SUCCESS);
        self.push(&[send])?;
        Ok(before)
    }

    /// What is left of a [`Ring::send_now`] of which `sent` bytes were sent.
    pub fn unsent(&mut self, slot: u32, sent: usize) -> Vec<u8> {
        let bytes = &self.immediate[slot as usize].0;
        bytes[sent.min(bytes.len())..].to_vec()
    }

    /// Opens a UDP socket at `file`, in place of what was there, and connects it to an address, which sends
    /// nothing. Files 0 to `slots` (inclusive) can be used.
    ///
    /// # Errors
    /// When no socket can be made, the address is not one of IP, or there is no route to it.
    pub fn open_datagrams(
        &mut self,
        file: u32,
        address: usize,
        options: &DatagramOptions,
    ) -> io::Result<DatagramSocket> {
        let (socket, given) = datagram_socket(&self.addresses[address], options)?;
        self.uring.submitter().register_files_update(file, &[socket.as_raw_fd()])?;
        let DatagramSocket { gso, gro, overflow, .. } = given;
        self.features.datagrams = Some(DatagramFeatures { gso, gro, overflow });
        Ok(given)
    }

    /// Receives datagrams from `file` into provided buffers; completes as [`Op::RecvDatagrams`], whose
    /// buffer [`Ring::datagrams`] reads. To be called again when a completion has no more to follow: the
    /// kernel ends it for want of buffers (`ENOBUFS`), on errors, and after a datagram of no bytes.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn recv_datagrams(&mut self, file: u32, slot: u32, generation: u32) -> io::Result<()> {
        let recv = opcode::RecvMsgMulti::new(Fixed(file), &raw const *self.message, GROUP)
            .build()
            .user_data(Token { op: Op::RecvDatagrams, generation, slot }.pack());
        self.push(&[recv])
    }

    /// Ends a receive of datagrams, which completes as cancelled.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn release_datagrams(&mut self, slot: u32, generation: u32) -> io::Result<()> {
        self.cancel(Token { op: Op::RecvDatagrams, generation, slot })
    }

    /// The datagrams of a receive completion; `None` when it carries none, or what came did not fit
    /// ([`Ring::truncated`] counts).
    #[inline]
    pub fn datagrams(&mut self, completion: &Completion) -> Option<Datagrams<'_>> {
        let (id, length) = (completion.buffer?, usize::try_from(completion.result).ok()?);
        match parse(self.buffers.filled(id, length)) {
            Ok(datagrams) => Some(datagrams),
            Err(_) => {
                self.truncated += 1;
                None
            }
        }
    }

    /// Receptions that could not be used because they did not fit their buffer.
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Sends `bytes` from `file` with the next [`Ring::enter`], then and there: as one datagram, or cut as
    /// [`DatagramOptions::gso`] says; at most [`MOST_DATAGRAM_BYTES`] and [`super::MOST_SEGMENTS`] segments.
    /// Completes as [`Op::SendDatagrams`] only if it failed (`EMSGSIZE`: longer than the path takes,
    /// `ECONNREFUSED`: an earlier datagram found no receiver and this one was not sent, `EAGAIN`: the send
    /// buffer is full), and [`Ring::unsent_datagrams`] then has the bytes. Returns memory of earlier sends
    /// that may be used again; what stands in it is of no meaning.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    #[inline]
    pub fn send_datagrams(
        &mut self,
        file: u32,
        slot: u32,
        generation: u32,
        bytes: Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        debug_assert!(bytes.len() <= MOST_DATAGRAM_BYTES, "no datagram is that long");
        // As in `send_now`: MSG_DONTWAIT ends the operation with its submission.
        let send = opcode::Send::new(Fixed(file), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            .build()
            .user_data(Op::SendDatagrams.numbered(self.outbox.next()))
            .flags(Flags::SKIP_SUCCESS);
        self.push(&[send])?;
        // Kept once it is queued: to make room in the queue is to submit what was kept before.
        self.outbox.keep(slot, generation, bytes);
        Ok(self.outbox.reuse())
    }

    /// The bytes of a [`Ring::send_datagrams`] that failed with `completion`, none of which were sent;
    /// `None` when asked a second time, or later than in the turn that reaped it.
    pub fn unsent_datagrams(&mut self, completion: &Completion) -> Option<Vec<u8>> {
        if completion.token.op == Op::SendDatagrams { self.outbox.take(completion.send) } else { None }
    }

    /// The bytes of a send that completed with `token`.
    pub fn take_sent(&mut self, token: Token, current: u32) -> Option<Vec<u8>> {
        if token.generation == current {
            return self.outgoing[token.slot as usize].take();
        }
        let at = self.retired.iter().position(|(bits, _)| *bits == token.pack())?;
        Some(self.retired.swap_remove(at).1)
    }

    /// Ends the operations of this `generation` of `slot`, which complete as cancelled. The connection
    /// is closed by [`Ring::close`], or by the [`Ring::connect`] that takes its place.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn release(&mut self, slot: u32, generation: u32, receiving: bool) -> io::Result<()> {
        if receiving {
            self.cancel(Token { op: Op::Recv, generation, slot })?;
        }
        if let Some(bytes) = self.outgoing[slot as usize].take() {
            let target = Token { op: Op::Send, generation, slot };
            self.retired.push((target.pack(), bytes));
            self.cancel(target)?;
        }
        Ok(())
    }

    fn cancel(&mut self, target: Token) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(target.pack())
            .build()
            .user_data(Token { op: Op::Cancel, ..target }.pack())
            .flags(Flags::SKIP_SUCCESS);
        self.push(&[entry])
    }

    /// Closes the socket at `file`: that of the slot of this number, whose operations were ended by
    /// [`Ring::release`] or [`Ring::release_datagrams`], or the shared one. What was queued for it and not yet
    /// submitted fails.
    ///
    /// # Errors
    /// When the kernel does not take the file out of the ring.
    pub fn close(&mut self, file: u32) -> io::Result<()> {
        self.uring.submitter().register_files_update(file, &[-1]).map(drop)
    }

    /// The bytes of a receive completion; empty when it carries none.
    #[inline]
    pub fn received(&mut self, completion: &Completion) -> &mut [u8] {
        match completion.buffer {
            Some(id) => self.buffers.filled(id, usize::try_from(completion.result).unwrap_or(0)),
            None => &mut [],
        }
    }

    /// Gives a receive buffer back to the kernel at the next [`Ring::enter`].
    #[inline]
    pub fn recycle(&mut self, buffer: u16) {
        self.buffers.recycle(buffer);
    }

    /// Shows given-back buffers to the kernel, submits everything queued, and waits: until `want`
    /// operations completed; from `linger` on until one did; at most for `timeout`. With `want` 0 it
    /// only submits and collects.
    ///
    /// # Errors
    /// When the kernel refuses to go on.
    pub fn enter(&mut self, want: u32, linger: Span, timeout: Option<Span>) -> io::Result<()> {
        self.buffers.publish();
        let queued = self.uring.submission().len() as u32;
        let limit = timeout.map(timespec);
        let arguments = GetEventsArg {
            sigmask: 0,
            sigmask_size: 0,
            min_wait_usec: if want > 1 {
                // Zero would mean to wait for all of them.
                u32::try_from(linger.as_nanos() / 1000).unwrap_or(u32::MAX).max(1)
            } else {
                0
            },
            timeout: limit.as_ref().map_or(0, |limit| (&raw const *limit) as u64),
        };
        let mut flags = ENTER_GETEVENTS | ENTER_EXT_ARG | self.enter_flags;
        if want > 0 && self.features.no_iowait {
            flags |= ENTER_NO_IOWAIT;
        }
        // SAFETY: the queue's entries only point at memory this ring owns, and `arguments` and
        // `limit` outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter_fd,
                queued,
                want,
                flags,
                &raw const arguments,
                size_of::<GetEventsArg>(),
            )
        };
        let error = (result < 0).then(io::Error::last_os_error);
        if self.uring.submission().is_empty() {
            self.enters += 1;
            self.outbox.submitted();
        }
        match error {
            None => Ok(()),
            Some(error) => match error.raw_os_error() {
                // A signal, the timeout, or a completion queue that has to be emptied first.
                Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Submits everything queued.
    #[cold]
    fn submit(&mut self) -> io::Result<()> {
        for _ in 0..FULL_RETRIES {
            self.enter(0, Span::ZERO, None)?;
            if self.uring.submission().is_empty() {
                return Ok(());
            }
        }
        Err(io::Error::other("the kernel takes no submissions"))
    }

    /// True when completions are there or can be had by an [`Ring::enter`] that does not wait. Reads
    /// shared memory only.
    #[inline]
    pub fn ready(&mut self) -> bool {
        self.uring.submission().taskrun() || !self.uring.completion().is_empty()
    }

    /// True when [`Ring::reap`] would find something.
    #[inline]
    pub fn has_completions(&mut self) -> bool {
        !self.uring.completion().is_empty()
    }

    /// Moves completions to `into`.
    #[inline]
    pub fn reap(&mut self, into: &mut Vec<Completion>) {
        let mut woken = false;
        self.outbox.reaped();
        for entry in self.uring.completion() {
            let (mut token, mut send) = (Token::unpack(entry.user_data()), 0);
            woken |= token.op == Op::Wake;
            if token.op == Op::SendDatagrams {
                send = Op::number(entry.user_data());
                // Only a completion queue that overflowed can tell of a send so late that it is forgotten,
                // and then a datagram is lost as on any path.
                let Some((slot, generation)) = self.outbox.owner(send) else { continue };
                token = Token { op: Op::SendDatagrams, generation, slot };
            }
            into.push(Completion {
                token,
                result: entry.result(),
                buffer: cqueue::buffer_select(entry.flags()),
                more: cqueue::more(entry.flags()),
                send,
            });
        }
        if woken {
            self.arm_wake();
        }
    }

    fn arm_wake(&mut self) {
        let poll = opcode::PollAdd::new(Fd(self.wake.as_raw_fd()), libc::POLLIN as u32)
            .build()
            .user_data(Token { op: Op::Wake, generation: 0, slot: 0 }.pack());
        // Being woken twice is harmless; a queue that takes nothing shows at the next operation.
        let _ = self.push(&[poll]);
    }

    #[inline]
    fn push(&mut self, entries: &[Entry]) -> io::Result<()> {
        // SAFETY: every entry points at memory owned by this ring (module documentation).
        if unsafe { self.uring.submission().push_multiple(entries) }.is_ok() {
            return Ok(());
        }
        self.push_when_full(entries)
    }

    #[cold]
    fn push_when_full(&mut self, entries: &[Entry]) -> io::Result<()> {
        for _ in 0..FULL_RETRIES {
            self.enter(0, Span::ZERO, None)?;
            // SAFETY: as in `push`.
            if unsafe { self.uring.submission().push_multiple(entries) }.is_ok() {
                return Ok(());
            }
        }
        Err(io::Error::other("the submission queue stays full"))
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("features", &self.features).finish_non_exhaustive()
    }
}

#[inline]
fn send_entry(slot: u32, bytes: &[u8]) -> Entry {
    let len = bytes.len().min(MAX_SEND) as u32;
    opcode::Send::new(Fixed(slot), bytes.as_ptr(), len).flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL).build()
}

/// A message without a name and with room for control messages. A receive into provided buffers takes
/// the lengths from it and nothing else.
fn receive_message() -> libc::msghdr {
    // SAFETY: all zeroes is a valid msghdr: null pointers, lengths of zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // A usize with glibc, a u32 with musl.
    message.msg_controllen = CONTROL_BYTES as _;
    message
}

fn build() -> Result<(IoUring, Features), RingError> {
    let set_up = |no_sqarray: bool| {
        let mut builder = IoUring::builder();
        builder
            .setup_clamp()
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(CQ_ENTRIES);
        if no_sqarray {
            builder.setup_no_sqarray();
        }
        builder.build(SQ_ENTRIES)
    };
    let (uring, no_sqarray) = match set_up(true) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            (set_up(false).map_err(RingError::from_setup)?, false)
        }
        built => (built.map_err(RingError::from_setup)?, true),
    };
    let params = uring.params();
    if !params.is_feature_nodrop() || !params.is_feature_ext_arg() || !params.is_feature_skip_cqe_on_success()
    {
        return Err(RingError::TooOld("features of Linux 6.1 are missing".into()));
    }
    let features = Features {
        no_sqarray,
        min_timeout: params.is_feature_min_timeout(),
        no_iowait: params.is_feature_no_iowait(),
        registered_ring: false,
        datagrams: None,
    };
    Ok((uring, features))
}

fn register_ring_fd(fd: libc::c_int) -> Option<libc::c_int> {
    let mut update = RsrcUpdate { offset: u32::MAX, reserved: 0, data: fd as u64 };
    // SAFETY: `update` is one io_uring_rsrc_update, as the opcode requires.
    let result = unsafe {
        libc::syscall(libc::SYS_io_uring_register, fd, REGISTER_RING_FDS, &raw mut update, 1 as libc::c_uint)
    };
    (result == 1).then_some(update.offset as libc::c_int)
}

fn timespec(span: Span) -> Timespec {
    Timespec::new().sec(span.as_nanos() / 1_000_000_000).nsec((span.as_nanos() % 1_000_000_000) as u32)
}

/// `struct io_uring_getevents_arg` of io_uring_enter(2).
#[repr(C)]
struct GetEventsArg {
    sigmask: u64,
    sigmask_size: u32,
    min_wait_usec: u32,
    timeout: u64,
}

/// `struct io_uring_rsrc_update` of io_uring_register(2).
#[repr(C)]
struct RsrcUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

const GROUP: u16 = 0;
/// Bytes of one receive buffer. Only pages that were written to become resident, so a large one
/// costs small responses nothing and saves large bodies most of their completions.
const STREAM_BUFFER_BYTES: u32 = 64 * 1024;
/// The same with the longest payload of datagrams received together (65 527 bytes over IPv6) and what
/// stands in front of it. No multiple of a page: the beginnings of buffers, which small datagrams are all
/// there is of, then do not compete for the same sets of the CPU's cache.
const DATAGRAM_BUFFER_BYTES: u32 = 64 * 1024 + 256;
const _: () = assert!(DATAGRAM_BUFFER_BYTES as usize >= HEADROOM + 65_527);
const SQ_ENTRIES: u32 = 1024;
const CQ_ENTRIES: u32 = 8192;
const FULL_RETRIES: usize = 1000;
/// Longest single send; the rest follows when it completed.
const MAX_SEND: usize = 1 << 28;
const ENTER_GETEVENTS: libc::c_uint = 1;
const ENTER_EXT_ARG: libc::c_uint = 8;
const ENTER_REGISTERED_RING: libc::c_uint = 16;
const ENTER_NO_IOWAIT: libc::c_uint = 128;
const REGISTER_RING_FDS: libc::c_uint = 20;
