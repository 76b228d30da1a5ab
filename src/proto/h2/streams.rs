//! Owns the open streams of a connection, found by their identifier.
//!
//! A client's identifiers are odd and grow, so that their order number is as good as a hash: an
//! open-addressed table in which streams that end in about the order they began never collide. While
//! none has, a stream is taken out without looking at its neighbours, which are one long run.

/// Where a response stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its header has not come.
    AwaitingHeaders,
    /// Its header has come: DATA or trailers follow.
    Body,
    /// The same, and a body is not allowed.
    NoBody,
}

/// An open stream.
#[derive(Clone, Debug)]
pub(super) struct Stream<T> {
    /// 0: none.
    pub(super) id: u32,
    /// Received since the last WINDOW_UPDATE.
    pub(super) received: u32,
    /// What may still be sent; negative after the server took window back (RFC 9113 §6.9.2).
    pub(super) window: i32,
    pub(super) phase: Phase,
    pub(super) interim: u16,
    /// It stands in the queue of uploads.
    pub(super) queued: bool,
    /// Of Content-Length, not received yet.
    pub(super) remaining: Option<u64>,
    /// Body bytes that are still to be sent.
    pub(super) unsent: u64,
    pub(super) exchange: T,
}

impl<T> Stream<T> {
    /// A stream that has just been opened, with what may and what is to be sent on it.
    #[inline]
    pub(super) fn new(id: u32, window: i32, unsent: u64, exchange: T) -> Self {
        Self {
            id,
            received: 0,
            window,
            phase: Phase::AwaitingHeaders,
            interim: 0,
            queued: unsent > 0,
            remaining: None,
            unsent,
            exchange,
        }
    }
}

/// The open streams.
#[derive(Debug)]
pub(super) struct Streams<T> {
    slots: Vec<Stream<T>>,
    len: u32,
    /// Streams that do not stand at their home.
    displaced: u32,
}

impl<T: Default + Clone> Streams<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), len: 0, displaced: 0 }
    }

    /// Streams that are open.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream<T>> {
        let at = self.find(id)?;
        Some(&mut self.slots[at])
    }

    /// Adds a stream, whose identifier is new.
    #[inline]
    pub(super) fn insert(&mut self, stream: Stream<T>) {
        if (self.len as usize + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        let home = self.home(stream.id);
        let mut at = home;
        while self.slots[at].id != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.displaced += u32::from(at != home);
        self.slots[at] = stream;
        self.len += 1;
    }

    /// Takes a stream out.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let place = self.find(id)?;
        Some(self.remove_at(place))
    }

    /// Where a stream stands, until one is added or taken out.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        // The table is never full, so that every search meets an empty place.
        loop {
            match self.slots[at].id {
                0 => return None,
                found if found == id => return Some(at),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut Stream<T> {
        &mut self.slots[place]
    }

    /// Takes out the stream that stands there.
    #[inline]
    pub(super) fn remove_at(&mut self, place: usize) -> T {
        let stream = &mut self.slots[place];
        let exchange = std::mem::take(&mut stream.exchange);
        let id = std::mem::replace(&mut stream.id, 0);
        self.len -= 1;
        if self.displaced > 0 {
            self.displaced -= u32::from(place != self.home(id));
            self.close_gap(place);
        }
        exchange
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream<T>> {
        self.slots.iter().filter(|stream| stream.id != 0)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<T>> {
        self.slots.iter_mut().filter(|stream| stream.id != 0)
    }

    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.slots.len() - 1)
    }

    /// Moves streams that were put past the emptied place `gap` back, so that searches find them.
    #[cold]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = (gap + 1) & mask;
        while self.slots[at].id != 0 {
            let home = self.home(self.slots[at].id);
            // It may move when its home does not lie between the gap and where it stands.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.displaced -= u32::from(gap == home);
                self.slots.swap(gap, at);
                gap = at;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(LEAST);
        let empty = Stream::new(0, 0, 0, T::default());
        let old = std::mem::replace(&mut self.slots, vec![empty; size]);
        (self.len, self.displaced) = (0, 0);
        for stream in old.into_iter().filter(|stream| stream.id != 0) {
            self.insert(stream);
        }
    }
}

const LEAST: usize = 2;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The table holds what a map holds, in whatever order streams end.
        #[test]
        fn like_a_map(steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400)) {
            let (mut streams, mut map, mut next) = (Streams::new(), BTreeMap::new(), 1);
            for (open, which) in steps {
                if open || map.is_empty() {
                    streams.insert(Stream::new(next, 0, 0, next));
                    map.insert(next, next);
                    next += 2;
                } else {
                    let ids: Vec<u32> = map.keys().copied().collect();
                    let id = ids[which.index(ids.len())];
                    prop_assert_eq!(streams.remove(id), map.remove(&id));
                }
                prop_assert_eq!(streams.len() as usize, map.len());
                for id in (1..next).step_by(2) {
                    prop_assert_eq!(streams.get(id).map(|found| found.exchange), map.get(&id).copied());
                }
                prop_assert_eq!(streams.iter().count(), map.len());
            }
        }
    }
}
