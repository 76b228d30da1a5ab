//! Owns the provided buffer ring: memory the kernel picks receive buffers from
//! (io_uring_register_buf_ring(3)).

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

/// Anonymous memory that is given back when dropped.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a fresh anonymous private mapping aliases nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Huge pages would make the whole ring resident at the first touch.
        // SAFETY: the range is the mapping just made; advice cannot invalidate it.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The ring of buffer descriptors and the buffers themselves.
pub(super) struct BufferRing {
    descriptors: Mapping,
    memory: Mapping,
    count: u16,
    /// Bytes of one buffer.
    size: usize,
    tail: u16,
}

// SAFETY: the mappings are owned by this value alone and are only reached through it.
unsafe impl Send for BufferRing {}

impl BufferRing {
    /// `count` buffers, a power of two of at most 32768, of `size` bytes.
    pub(super) fn new(count: u16, size: u32) -> io::Result<Self> {
        let size = size as usize;
        debug_assert!(count.is_power_of_two() && count <= 1 << 15);
        let descriptors = Mapping::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(count) * size)?;
        let mut ring = Self { descriptors, memory, count, size, tail: 0 };
        for id in 0..count {
            ring.recycle(id);
        }
        ring.publish();
        Ok(ring)
    }

    pub(super) fn address(&self) -> u64 {
        self.descriptors.start.as_ptr() as u64
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The first `len` bytes of buffer `id`, as the kernel filled them.
    #[inline]
    pub(super) fn filled(&mut self, id: u16, len: usize) -> &mut [u8] {
        let (id, len) = (usize::from(id), len.min(self.size));
        assert!(id < usize::from(self.count), "the kernel only names buffers it was given");
        // SAFETY: the range lies inside `memory`. The kernel took this buffer out of the ring when it
        // filled it and will not touch it until `recycle` puts it back, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr().add(id * self.size), len) }
    }

    /// Puts buffer `id` back; the kernel sees it after [`BufferRing::publish`].
    #[inline]
    pub(super) fn recycle(&mut self, id: u16) {
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: `index < count`, and the descriptors hold `count` entries, page aligned.
        let entry = unsafe { &mut *self.descriptors.start.as_ptr().cast::<BufRingEntry>().add(index) };
        // SAFETY: in bounds of `memory`, as `id < count` for every id handed out.
        entry.set_addr(unsafe { self.memory.start.as_ptr().add(usize::from(id) * self.size) } as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel every buffer put back so far.
    #[inline]
    pub(super) fn publish(&mut self) {
        // SAFETY: the tail overlays the reserved field of the first descriptor, which is mapped and
        // aligned; the kernel reads it concurrently, hence the atomic store.
        unsafe {
            let tail = BufRingEntry::tail(self.descriptors.start.as_ptr().cast::<BufRingEntry>());
            (*tail.cast::<AtomicU16>()).store(self.tail, Ordering::Release);
        }
    }
}
