//! Owns what must hold of a [`Reader`] whatever the bytes: the body of the fuzz target and the driver
//! of the tests.

use super::{Event, Framing, Head, HeadMemo, Reader, Violation};

/// Reads `data` as a server's stream and panics when what was read depends on how the stream was
/// cut, or on what the memo knew. The first byte chooses the method: `H` for HEAD.
///
/// Each response is taken to be answered by one more request, so that a stream may hold many.
pub fn fuzz_response(data: &[u8]) {
    let Some((&method, stream)) = data.split_first() else { return };
    let reading = Reading { head_request: method == b'H', requests: usize::MAX };
    let expected = reading.transcript([stream], None);

    let mut memo = HeadMemo::default();
    let learning = reading.transcript([stream], Some(&mut memo));
    assert_eq!(learning, expected, "a memo that learns changes nothing");
    let knowing = reading.transcript([stream], Some(&mut memo));
    assert_eq!(knowing, expected, "a memo that knows changes nothing");
    let other = Reading { head_request: !reading.head_request, ..reading };
    assert_eq!(
        other.transcript([stream], Some(&mut memo)),
        other.transcript([stream], None),
        "what was learnt from one method changes nothing for another"
    );

    assert_eq!(reading.transcript(stream.chunks(1), Some(&mut memo)), expected, "byte by byte");
    let step = stream.len() / 64 + 1;
    for at in (0..=stream.len()).step_by(step) {
        let (front, back) = stream.split_at(at);
        assert_eq!(reading.transcript([front, back], Some(&mut memo)), expected, "cut at {at}");
    }
}

/// How a stream is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) head_request: bool,
    /// Requests sent, the next one whenever a response is complete.
    pub(super) requests: usize,
}

/// A thing a reader said; the pieces of a body are joined.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Said {
    Interim(u16),
    Head(Head),
    Body(Vec<u8>),
    End,
    /// The result of the close that ends every stream without a violation.
    Closed(bool),
    /// The last word: [`Reader::next`] or [`Reader::close`] refused the stream.
    Broken(Violation),
}

impl Reading {
    /// Everything said of a stream that comes in these pieces and then ends. Without a memo every
    /// call is given an empty one.
    ///
    /// # Panics
    /// When the reader breaks its own contract.
    pub(super) fn transcript<'a>(
        self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        mut memo: Option<&mut HeadMemo>,
    ) -> Vec<Said> {
        let mut said = Vec::new();
        let mut reader = Reader::new();
        let mut unsent = self.requests;
        if unsent > 0 {
            reader.begin(self.head_request);
            unsent -= 1;
        }
        for mut piece in pieces {
            loop {
                let before = piece;
                let mut empty = HeadMemo::default();
                let event = reader.next(memo.as_deref_mut().unwrap_or(&mut empty), &mut piece);
                assert!(before.ends_with(piece), "input is taken off its front");
                match event {
                    Ok(Event::NeedMore) => break,
                    Ok(Event::Interim(status)) => said.push(Said::Interim(status)),
                    Ok(Event::Head(head)) => said.push(Said::Head(head)),
                    Ok(Event::Body(bytes)) => {
                        assert!(!bytes.is_empty(), "a piece of body is never empty");
                        join(&mut said, bytes);
                    }
                    Ok(Event::End) => {
                        said.push(Said::End);
                        check_length(&said);
                        if unsent > 0 {
                            reader.begin(self.head_request);
                            unsent -= 1;
                        }
                    }
                    Err(violation) => {
                        assert_eq!(reader.close(), Err(violation), "a violation is the last word");
                        said.push(Said::Broken(violation));
                        return said;
                    }
                }
            }
            assert!(piece.is_empty(), "more is asked for only when nothing is left");
        }
        said.push(match reader.close() {
            Ok(complete) => Said::Closed(complete),
            Err(violation) => Said::Broken(violation),
        });
        said
    }
}

/// Adds to the body said last, if it was one.
fn join(said: &mut Vec<Said>, bytes: &[u8]) {
    match said.last_mut() {
        Some(Said::Body(body)) => body.extend_from_slice(bytes),
        _ => said.push(Said::Body(bytes.to_vec())),
    }
}

/// A complete response of known length had just that many bytes of body.
fn check_length(said: &[Said]) {
    let (head, length) = match said {
        [.., Said::Head(head), Said::Body(body), Said::End] => (head, body.len()),
        [.., Said::Head(head), Said::End] => (head, 0),
        _ => panic!("a response is a head, a body if it has any, and an end: {said:?}"),
    };
    match head.framing {
        Framing::Length(announced) => assert_eq!(announced, length as u64),
        Framing::Chunked => {}
        Framing::UntilClose => panic!("only the close ends this response"),
    }
}
