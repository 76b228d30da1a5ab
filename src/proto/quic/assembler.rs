//! Owns bytes of a stream that arrived before those in front of them.

use std::collections::BTreeMap;

/// Bytes beyond a gap, by their offset.
///
/// How many there can be is bounded by the window that the peer was given; how many pieces, here.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembler {
    pieces: BTreeMap<u64, Vec<u8>>,
}

/// Too many separate pieces are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooManyPieces;

impl Assembler {
    /// Keeps `data` that begins at `offset`, of which everything before `read` is not wanted any more.
    ///
    /// # Errors
    /// When what arrives is in more pieces than an honest peer makes of it.
    pub(super) fn insert(
        &mut self,
        read: u64,
        mut offset: u64,
        mut data: &[u8],
    ) -> Result<(), TooManyPieces> {
        if offset < read {
            let skip = usize::try_from(read - offset).unwrap_or(usize::MAX).min(data.len());
            (offset, data) = (offset + skip as u64, &data[skip..]);
        }
        while !data.is_empty() {
            if let Some((&start, piece)) = self.pieces.range_mut(..=offset).next_back() {
                let end = start + piece.len() as u64;
                if end >= offset {
                    // It touches a piece in front of it: what that has not is appended, up to the next one.
                    let skip = usize::try_from(end - offset).unwrap_or(usize::MAX).min(data.len());
                    (offset, data) = (offset + skip as u64, &data[skip..]);
                    let take = self.until_next(offset, data.len());
                    if let Some(piece) = self.pieces.get_mut(&start) {
                        piece.extend_from_slice(&data[..take]);
                    }
                    (offset, data) = (offset + take as u64, &data[take..]);
                    self.join(start);
                    continue;
                }
            }
            let take = self.until_next(offset, data.len());
            if self.pieces.len() >= MOST_PIECES {
                return Err(TooManyPieces);
            }
            self.pieces.insert(offset, data[..take].to_vec());
            self.join(offset);
            (offset, data) = (offset + take as u64, &data[take..]);
        }
        Ok(())
    }

    /// The bytes from `read` on that are there without a gap.
    pub(super) fn take(&mut self, read: u64) -> Option<Vec<u8>> {
        while let Some(entry) = self.pieces.first_entry() {
            let start = *entry.key();
            if start > read {
                return None;
            }
            let mut piece = entry.remove();
            let skip = usize::try_from(read - start).unwrap_or(usize::MAX);
            if skip < piece.len() {
                piece.drain(..skip);
                return Some(piece);
            }
        }
        None
    }

    /// How much of `len` bytes at `offset` lies before the next piece.
    fn until_next(&self, offset: u64, len: usize) -> usize {
        let next = self.pieces.range(offset + 1..).next();
        next.map_or(len, |(at, _)| usize::try_from(at - offset).unwrap_or(usize::MAX).min(len))
    }

    /// Joins the piece at `start` with the next one when they touch.
    fn join(&mut self, start: u64) {
        let Some(end) = self.pieces.get(&start).map(|piece| start + piece.len() as u64) else { return };
        if end == start {
            return;
        }
        if let Some(next) = self.pieces.remove(&end)
            && let Some(piece) = self.pieces.get_mut(&start)
        {
            piece.extend_from_slice(&next);
        }
    }
}

/// A peer that loses every other packet of a window of 16 MiB makes some 7000.
const MOST_PIECES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_order_and_overlap_gives_the_bytes(
            pieces in prop::collection::vec((0usize..300, 1usize..80), 1..60),
            reads in prop::collection::vec(any::<bool>(), 60),
        ) {
            let all: Vec<u8> = (0..400u32).map(|i| (i * 7 + i / 256) as u8).collect();
            let mut assembler = Assembler::default();
            let mut read = Vec::new();
            let mut have = vec![false; 400];
            for ((at, len), take) in pieces.into_iter().zip(reads) {
                assembler.insert(read.len() as u64, at as u64, &all[at..at + len]).unwrap();
                have[at..at + len].fill(true);
                while take && let Some(bytes) = assembler.take(read.len() as u64) {
                    read.extend(bytes);
                }
            }
            while let Some(bytes) = assembler.take(read.len() as u64) {
                read.extend(bytes);
            }
            let whole = have.iter().position(|have| !have).unwrap_or(400);
            prop_assert_eq!(read, &all[..whole]);
        }
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let mut assembler = Assembler::default();
        let refused = (0..1 << 20).position(|i| assembler.insert(0, 2 * i + 1, &[0]).is_err());
        assert_eq!(refused, Some(MOST_PIECES));
    }
}
