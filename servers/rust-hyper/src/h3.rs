//! What answers over HTTP/3: the crate h3, on any QUIC that there is glue for.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::quic::{Connection, OpenStreams};
use h3::server::RequestResolver;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::Bodies;

/// Answers all requests of a connection.
pub async fn serve<C>(connection: C, bodies: Arc<Bodies>)
where
    C: Connection<Bytes> + 'static,
    <C as OpenStreams<Bytes>>::BidiStream: Send + 'static,
{
    let Ok(mut connection) = h3::server::builder().build(connection).await else { return };
    // A client that goes away is not the server's failure.
    while let Ok(Some(resolver)) = connection.accept().await {
        let bodies = bodies.clone();
        tokio::spawn(async move {
            let _ = answer(resolver, &bodies).await;
        });
    }
}

async fn answer<C: Connection<Bytes>>(
    resolver: RequestResolver<C, Bytes>,
    bodies: &Bodies,
) -> Result<(), StreamError> {
    let (request, mut stream) = resolver.resolve_request().await?;
    if request.method() == Method::POST {
        while let Some(mut data) = stream.recv_data().await? {
            data.advance(data.remaining());
        }
    }
    let body = bodies.of(request.uri().path());
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let body = body.unwrap_or_default();
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    stream.send_response(response).await?;
    if request.method() != Method::HEAD && !body.is_empty() {
        stream.send_data(body).await?;
    }
    stream.finish().await
}
