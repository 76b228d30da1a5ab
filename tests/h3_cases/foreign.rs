//! The scripted server itself, asked by a client of other people's: what it writes and what it reads are
//! HTTP/3.

use std::net::UdpSocket;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TokioRuntime};

use crate::common::Scripted;
use crate::common::answer::Answer;
use crate::common::h3::endpoint::Options;
use crate::common::socket::client_config;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreign_client_understands_the_scripted_server() {
    for retry in [false, true] {
        let options = Options { retry, ..Options::default() };
        let server = Scripted::quic(&options, |h3| {
            h3.settings(&[(0x21, 7)]);
            let mut turn = 0;
            while let Some(asked) = h3.request() {
                assert_eq!((&asked.method[..], &asked.path[..], asked.body.len()), ("PUT", "/a?b", 100_000));
                let answer = Answer::hello().interim(103, &[("link", "</a>")]).header("x-turn", "1");
                h3.respond(&asked, &answer.trailer("x-sum", "2").times(1 + turn * 1000));
                // After the last one the client may be quicker to close.
                assert!(h3.settle() || turn == 2);
                turn += 1;
            }
        });
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut endpoint =
            Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime)).unwrap();
        let crypto = QuicClientConfig::try_from(client_config(&[b"h3"])).unwrap();
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(crypto)));
        let connection = endpoint.connect(server.address, "localhost").unwrap().await.unwrap();
        let mut builder = h3::client::builder();
        builder.send_grease(false);
        let (mut driver, mut requests) =
            builder.build::<_, _, Bytes>(h3_quinn::Connection::new(connection)).await.unwrap();
        let driving = tokio::spawn(async move { driver.wait_idle().await });
        for turn in 0..3 {
            let request = http::Request::put("https://localhost/a?b").body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.send_data(Bytes::from(vec![7; 100_000])).await.unwrap();
            stream.finish().await.unwrap();
            // This client hands interim responses on as if they were final ones.
            let interim = stream.recv_response().await.unwrap();
            assert_eq!(
                (interim.status().as_u16(), interim.headers()["link"].as_bytes()),
                (103, &b"</a>"[..])
            );
            let response = stream.recv_response().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), response.headers()["x-turn"].as_bytes()),
                (200, &b"1"[..])
            );
            let mut body = Vec::new();
            while let Some(mut piece) = stream.recv_data().await.unwrap() {
                body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            }
            assert!(body == b"Hello, World!\n".repeat(1 + turn * 1000));
            let trailers = stream.recv_trailers().await.unwrap().unwrap();
            assert_eq!(trailers["x-sum"], "2");
        }
        drop(requests);
        assert!(driving.await.unwrap().is_h3_no_error());
        endpoint.wait_idle().await;
        tokio::task::block_in_place(|| server.join());
        assert_eq!((server.accepted(), server.requests(), server.answered()), (1, 3, 3));
        assert!(server.closes().is_empty(), "{:?}", server.closes());
    }
}
