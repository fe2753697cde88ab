//! Invalid HTTP/2: every input ends its connection or its stream.

use tollgate_testkit::http2::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PREFACE,
    PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, WITH_PRIORITY, block,
    call_headers, data, frame, hello, message,
};
use tollgate_testkit::random::Random;

/// A named kind of input, with its inputs.
pub(crate) type Kind = (&'static str, Vec<Vec<u8>>);

/// Whether the server can refuse an input before the end of the client's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    AtOnce,
    /// It may be a part of something valid.
    AtEnd,
}

fn after_hello(frames: &[Vec<u8>]) -> Vec<u8> {
    [hello(), frames.concat()].concat()
}

/// Inputs of one frame each, after a valid begin of the connection.
fn frames(inputs: impl IntoIterator<Item = (u8, u8, u32, Vec<u8>)>) -> Vec<Vec<u8>> {
    let one = |(kind, flags, stream, payload): (u8, u8, u32, Vec<u8>)| {
        after_hello(&[frame(kind, flags, stream, &payload)])
    };
    inputs.into_iter().map(one).collect()
}

fn setting(number: u16, value: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn valid_head(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(&call_headers()))
}

/// Inputs whose head has these headers instead of one of the valid ones, or in addition.
fn heads(changes: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let changed = |(name, value): &(&str, &str)| {
        let mut headers = call_headers();
        headers.push(((*name).to_owned(), value.as_bytes().to_vec()));
        after_hello(&[frame(HEADERS, END_HEADERS, 1, &block(&headers)), data(&message(&[]))])
    };
    changes.iter().map(changed).collect()
}

/// Header blocks that are no valid HPACK.
fn blocks(blocks: &[&[u8]]) -> Vec<Vec<u8>> {
    frames(blocks.iter().map(|block| (HEADERS, END_HEADERS | END_STREAM, 1, block.to_vec())))
}

/// All kinds.
pub(crate) fn kinds() -> Vec<(Refused, Kind)> {
    let at_once = [connection_frames(), stream_frames(), header_blocks()].concat();
    let at_end = [beginnings(), incomplete(), mutations()].concat();
    let at_once = at_once.into_iter().map(|kind| (Refused::AtOnce, kind));
    at_once.chain(at_end.into_iter().map(|kind| (Refused::AtEnd, kind))).collect()
}

fn beginnings() -> Vec<Kind> {
    let text = |lines: &[&str]| lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    let truncated = (0..PREFACE.len()).step_by(3).map(|length| PREFACE[..length].to_vec());
    vec![
        (
            "HTTP/1.1 request",
            text(&["GET / HTTP/1.1\r\nhost: t\r\n\r\n", "POST /check HTTP/1.1\r\n\r\n"]),
        ),
        (
            "other protocols",
            text(&[
                "*1\r\n$4\r\nPING\r\n",
                "SSH-2.0-x\r\n",
                "\u{16}\u{3}\u{1}\0\u{5}hello",
                "\0\0\0",
            ]),
        ),
        ("truncated preface", truncated.collect()),
        (
            "wrong preface",
            text(&["PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", "PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"]),
        ),
        (
            "preface without settings",
            vec![
                [PREFACE, &valid_head(1, END_STREAM)].concat(),
                [PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(),
            ],
        ),
    ]
}

fn connection_frames() -> Vec<Kind> {
    vec![
        (
            "settings with a wrong length",
            frames([1, 5, 7, 13].map(|length| (SETTINGS, 0, 0, vec![0; length]))),
        ),
        ("settings acknowledgement with a payload", frames([(SETTINGS, ACK, 0, vec![0; 6])])),
        ("settings on a stream", frames([1, 2, 77].map(|stream| (SETTINGS, 0, stream, vec![])))),
        (
            "settings out of range",
            frames(
                [setting(2, 2), setting(4, 1 << 31), setting(5, 0), setting(5, 1 << 24)]
                    .map(|payload| (SETTINGS, 0, 0, payload)),
            ),
        ),
        ("second settings acknowledgement", frames([(SETTINGS, ACK, 0, vec![])])),
        (
            "ping with a wrong length",
            frames([0, 7, 9, 100].map(|length| (PING, 0, 0, vec![0; length]))),
        ),
        ("ping on a stream", frames([(PING, 0, 1, vec![0; 8])])),
        ("short goaway", frames([0, 4, 7].map(|length| (GOAWAY, 0, 0, vec![0; length])))),
        ("goaway on a stream", frames([(GOAWAY, 0, 1, vec![0; 8])])),
        ("window update of 0", frames([(WINDOW_UPDATE, 0, 0, vec![0; 4])])),
        (
            "window update beyond the maximum",
            frames([(WINDOW_UPDATE, 0, 0, vec![0x7f, 0xff, 0xff, 0xff])]),
        ),
        (
            "window update with a wrong length",
            frames([0, 3, 5].map(|length| (WINDOW_UPDATE, 0, 0, vec![1; length]))),
        ),
        (
            "frame beyond the maximum size",
            frames([16_385, 70_000].map(|length| (DATA, 0, 1, vec![0; length]))),
        ),
        (
            "priority with a wrong length",
            frames([0, 4, 6].map(|length| (PRIORITY, 0, 1, vec![0; length]))),
        ),
        ("priority on the connection", frames([(PRIORITY, 0, 0, vec![0; 5])])),
    ]
}

fn stream_frames() -> Vec<Kind> {
    let open = |next: Vec<u8>| after_hello(&[valid_head(1, 0), next]);
    vec![
        ("reset of the connection", frames([(RST_STREAM, 0, 0, vec![0; 4])])),
        (
            "reset of an idle stream",
            frames([1, 5, 1001].map(|stream| (RST_STREAM, 0, stream, vec![0; 4]))),
        ),
        (
            "reset with a wrong length",
            frames([0, 3, 5].map(|length| (RST_STREAM, 0, 1, vec![0; length]))),
        ),
        ("data on the connection", frames([(DATA, 0, 0, vec![0; 5])])),
        ("data on an idle stream", frames([1, 3, 999].map(|stream| (DATA, 0, stream, vec![0; 5])))),
        (
            "data with wrong padding",
            [0, 1, 9].map(|length| open(frame(DATA, PADDED, 1, &vec![255; length]))).into(),
        ),
        (
            "data after the end of the stream",
            vec![after_hello(&[valid_head(1, END_STREAM), frame(DATA, 0, 1, &[0; 5])])],
        ),
        ("headers on the connection", vec![after_hello(&[valid_head(0, 0)])]),
        (
            "headers on a stream of the server",
            vec![after_hello(&[valid_head(2, 0)]), after_hello(&[valid_head(200, 0)])],
        ),
        (
            "headers on an old stream",
            vec![after_hello(&[valid_head(5, END_STREAM), valid_head(3, END_STREAM)])],
        ),
        (
            "headers with wrong padding",
            frames(
                [vec![255], vec![9, 0], vec![]]
                    .map(|payload| (HEADERS, PADDED | END_HEADERS, 1, payload)),
            ),
        ),
        ("headers that depend on themselves", {
            let payload = [&1_u32.to_be_bytes()[..], &[16], &block(&call_headers())].concat();
            frames([(HEADERS, WITH_PRIORITY | END_HEADERS | END_STREAM, 1, payload)])
        }),
        ("second headers without the end", vec![open(valid_head(1, 0))]),
        (
            "continuation without headers",
            frames([0, 1, 3].map(|stream| (CONTINUATION, END_HEADERS, stream, vec![0; 4]))),
        ),
        (
            "another frame inside headers",
            [PING, DATA, SETTINGS, HEADERS]
                .map(|kind| {
                    let head = frame(HEADERS, 0, 1, &block(&call_headers()));
                    after_hello(&[head, frame(kind, 0, u32::from(kind < 2), &[0; 8])])
                })
                .into(),
        ),
        (
            "continuation of another stream",
            vec![after_hello(&[
                frame(HEADERS, 0, 1, &block(&call_headers())),
                frame(CONTINUATION, END_HEADERS, 3, &[]),
            ])],
        ),
        (
            "push promise of a client",
            frames([1, 2].map(|stream| (PUSH_PROMISE, END_HEADERS, stream, vec![0, 0, 0, 2]))),
        ),
        (
            "content length that differs",
            ["0", "1", "999999", "-1", "x"]
                .map(|length| {
                    let mut headers = call_headers();
                    headers.push(("content-length".to_owned(), length.as_bytes().to_vec()));
                    after_hello(&[
                        frame(HEADERS, END_HEADERS, 1, &block(&headers)),
                        data(&message(&[0; 9])),
                    ])
                })
                .into(),
        ),
    ]
}

fn incomplete() -> Vec<Kind> {
    let open = |next: Vec<u8>| after_hello(&[valid_head(1, 0), next]);
    vec![
        ("unfinished head", vec![after_hello(&[frame(HEADERS, 0, 1, &block(&call_headers()))])]),
        (
            "unfinished body",
            (0..5).map(|length| open(frame(DATA, 0, 1, &vec![0; length]))).collect(),
        ),
    ]
}

fn header_blocks() -> Vec<Kind> {
    let without = |name: &str| {
        let headers: Vec<_> =
            call_headers().into_iter().filter(|(known, _)| known != name).collect();
        after_hello(&[frame(HEADERS, END_HEADERS, 1, &block(&headers)), data(&message(&[]))])
    };
    vec![
        ("HPACK index 0", blocks(&[&[0x80]])),
        (
            "HPACK index beyond the tables",
            blocks(&[&[0xff, 0x80, 0x01], &[0xff, 0xff, 0x7f], &[0xbe]]),
        ),
        (
            "HPACK integer without end",
            blocks(&[&[0xff; 20], &[0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]),
        ),
        (
            "HPACK string beyond the block",
            blocks(&[&[0x00, 0x05, b'a'], &[0x40, 0x7f, 0xff, 0x01], &[0x00, 0x01, b'a', 0x20]]),
        ),
        (
            "HPACK with invalid Huffman code",
            blocks(&[
                &[0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00],
                &[0x40, 0x82, 0xff, 0xfe, 0x01, b'a'],
            ]),
        ),
        (
            "HPACK table above the maximum",
            blocks(&[&[0x3f, 0xff, 0xff, 0x7f], &[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x07]]),
        ),
        ("missing pseudo headers", [":method", ":scheme", ":path"].map(without).into()),
        (
            "duplicate pseudo headers",
            heads(&[(":method", "POST"), (":path", "/"), (":scheme", "http")]),
        ),
        ("unknown pseudo headers", heads(&[(":status", "200"), (":protocol", "x"), (":x", "y")])),
        ("header names in upper case", heads(&[("X-Test", "1"), ("TE", "trailers")])),
        ("invalid header names", heads(&[("a b", "1"), ("a\u{7f}", "1"), ("", "1"), ("a:b", "1")])),
        ("invalid header values", heads(&[("x", "a\r\nb: c"), ("x", "\0"), ("x", "\u{7f}")])),
        (
            "headers of HTTP/1.1",
            heads(&[
                ("connection", "close"),
                ("transfer-encoding", "chunked"),
                ("keep-alive", "1"),
                ("te", "gzip"),
            ]),
        ),
    ]
}

/// Random bytes, and valid requests with random changes.
fn mutations() -> Vec<Kind> {
    let mut random = Random::new(20);
    let byte = |random: &mut Random| u8::try_from(random.within(0, 255)).expect("a byte");
    let noise = (0..60).map(|_| {
        let length = random.within(1, 400);
        let noise: Vec<u8> = (0..length).map(|_| byte(&mut random)).collect();
        [hello(), noise].concat()
    });
    let noise = noise.collect();
    let valid = || {
        after_hello(&[
            valid_head(1, 0),
            data(&message(b"\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v")),
        ])
    };
    let flipped = (0..80).map(|_| {
        let mut bytes = valid();
        for _ in 0..random.within(1, 4) {
            let at = usize::try_from(random.within(0, bytes.len() as u64 - 1)).expect("an index");
            bytes[at] ^= 1 << random.within(0, 7);
        }
        bytes
    });
    let flipped = flipped.collect();
    let cut = (1..60).map(|part| valid()[..valid().len() * part / 60].to_vec()).collect();
    vec![("random bytes", noise), ("flipped bits", flipped), ("truncated requests", cut)]
}
