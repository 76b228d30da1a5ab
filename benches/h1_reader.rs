//! The cost of reading one response, counted in instructions:
//!
//! ```sh
//! cargo bench --no-run --bench h1_reader
//! valgrind --tool=callgrind target/release/deps/h1_reader-* hit 100000
//! ```
//!
//! The first argument says what is read: `hit` repeats one response, so that the memo knows its head;
//! `miss` alternates between two dates, so that it never does; `chunked` repeats a chunked one. The
//! second is how many responses are read. Two runs of different counts give the cost of one without
//! that of starting up. Run without arguments, as `cargo bench` does, it reads some of each.

use std::hint::black_box;

use bench::proto::h1::{Event, HeadMemo, Reader};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let count = arguments.get(1).map_or(100_000, |count| count.parse().expect("a count of responses"));
    let variants = ["hit", "miss", "chunked"];
    let chosen = arguments.first().map(String::as_str);
    for variant in variants.into_iter().filter(|variant| chosen.is_none_or(|chosen| chosen == *variant)) {
        let responses = match variant {
            "hit" => vec![nginx("10:00:00")],
            "miss" => vec![nginx("10:00:00"), nginx("10:00:01")],
            _ => vec![node()],
        };
        let body = read(&responses, count);
        println!("{variant}: {count} responses, {body} bytes of body");
    }
}

/// Reads so many responses, each in one piece, as a worker does; returns the bytes of their bodies.
fn read(responses: &[Vec<u8>], count: usize) -> usize {
    let mut memo = HeadMemo::default();
    let mut reader = Reader::new();
    let mut body = 0;
    for response in responses.iter().cycle().take(count) {
        let mut input = black_box(&response[..]);
        reader.begin(false);
        loop {
            match reader.next(&mut memo, &mut input).expect("a response in order") {
                Event::Head(head) => assert_eq!(head.status, 200),
                Event::Body(bytes) => body += bytes.len(),
                Event::End => break,
                Event::Interim(_) | Event::NeedMore => unreachable!("the response is there, and final"),
            }
        }
    }
    body
}

fn nginx(time: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 {time} GMT\r\nContent-Type: \
         text/plain\r\nContent-Length: 14\r\nConnection: keep-alive\r\n\r\nHello, World!\n"
    )
    .into_bytes()
}

fn node() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\nConnection: keep-alive\r\nKeep-Alive: \
      timeout=5\r\nTransfer-Encoding: chunked\r\n\r\ne\r\nHello, World!\n\r\n0\r\n\r\n"
        .to_vec()
}
