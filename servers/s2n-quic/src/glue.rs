//! h3's traits for QUIC on the public interface of s2n-quic.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use s2n_quic::stream::{self, BidirectionalStream, ReceiveStream};
use s2n_quic::{application, connection};

pub struct Connection {
    acceptor: connection::StreamAcceptor,
    opener: Opener,
}

impl Connection {
    pub fn new(connection: s2n_quic::Connection) -> Self {
        let (handle, acceptor) = connection.split();
        Self { acceptor, opener: Opener(handle) }
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        Poll::Ready(match ready!(self.acceptor.poll_accept_receive_stream(cx)) {
            Ok(Some(stream)) => Ok(RecvStream(stream)),
            Ok(None) => Err(closed()),
            Err(error) => Err(of_connection(error)),
        })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        Poll::Ready(match ready!(self.acceptor.poll_accept_bidirectional_stream(cx)) {
            Ok(Some(stream)) => Ok(BidiStream::new(stream)),
            Ok(None) => Err(closed()),
            Err(error) => Err(of_connection(error)),
        })
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

#[derive(Clone)]
pub struct Opener(connection::Handle);

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let opened = ready!(self.0.poll_open_bidirectional_stream(cx));
        Poll::Ready(opened.map(BidiStream::new).map_err(|error| of_stream(error.into())))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        let opened = ready!(self.0.poll_open_send_stream(cx));
        Poll::Ready(opened.map(SendStream::new).map_err(|error| of_stream(error.into())))
    }

    /// The reason is not said: s2n-quic takes none.
    fn close(&mut self, code: Code, _reason: &[u8]) {
        self.0.close(application(code.value()));
    }
}

pub struct BidiStream {
    receive: RecvStream,
    send: SendStream,
}

impl BidiStream {
    fn new(stream: BidirectionalStream) -> Self {
        let (receive, send) = stream.split();
        Self { receive: RecvStream(receive), send: SendStream::new(send) }
    }
}

impl quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.receive.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

pub struct RecvStream(ReceiveStream);

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.0.poll_receive(cx).map_err(of_stream)
    }

    fn stop_sending(&mut self, error_code: u64) {
        // Of a stream that has ended already nothing needs to be stopped.
        let _ = self.0.stop_sending(application(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

pub struct SendStream {
    stream: stream::SendStream,
    /// What h3 handed over and s2n-quic has not taken yet.
    unsent: Option<WriteBuf<Bytes>>,
}

impl SendStream {
    fn new(stream: stream::SendStream) -> Self {
        Self { stream, unsent: None }
    }
}

impl quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.unsent.as_mut().filter(|data| data.has_remaining()) {
            let room = ready!(self.stream.poll_send_ready(cx)).map_err(of_stream)?;
            // h3 lends its header and its body as slices only, so that both are copied once.
            let chunk = data.chunk();
            let taken = chunk.len().min(room);
            self.stream.send_data(Bytes::copy_from_slice(&chunk[..taken])).map_err(of_stream)?;
            data.advance(taken);
        }
        self.unsent = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.unsent.is_some() {
            let error = "send_data before poll_ready has sent what was there".to_owned();
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(error),
            });
        }
        self.unsent = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        Poll::Ready(self.stream.finish().map_err(of_stream))
    }

    fn reset(&mut self, reset_code: u64) {
        // A stream that has ended already cannot be reset, nor needs to be.
        let _ = self.stream.reset(application(reset_code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

fn id(id: u64) -> StreamId {
    id.try_into().expect("ids of QUIC streams have 62 bits")
}

fn application(code: u64) -> application::Error {
    application::Error::new(code).unwrap_or(application::Error::UNKNOWN)
}

fn closed() -> ConnectionErrorIncoming {
    ConnectionErrorIncoming::ApplicationClose { error_code: Code::H3_NO_ERROR.value() }
}

fn of_connection(error: connection::Error) -> ConnectionErrorIncoming {
    match error {
        connection::Error::Closed { .. } => closed(),
        connection::Error::Application { error, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: *error }
        }
        connection::Error::IdleTimerExpired { .. } => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

fn of_stream(error: stream::Error) -> StreamErrorIncoming {
    match error {
        stream::Error::StreamReset { error, .. } => {
            StreamErrorIncoming::StreamTerminated { error_code: *error }
        }
        stream::Error::ConnectionError { error, .. } => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: of_connection(error) }
        }
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
