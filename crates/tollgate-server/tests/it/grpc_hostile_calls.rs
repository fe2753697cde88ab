//! Invalid calls in valid HTTP/2: every one gets an error, except those that protobuf and gRPC permit.

use tollgate_testkit::http2::{call_headers, message};
use tollgate_testkit::random::Random;

/// What the server must do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Error,
    /// An error or a decision: the specification permits the input, or it depends on random bytes.
    Anything,
}

/// A call: its headers and the bytes of its body.
pub(crate) struct Call {
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// A named kind of call, with its calls.
pub(crate) type Kind = (&'static str, Expected, Vec<Call>);

/// A protobuf field of wire type 2.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 128 {
        encoded.push(u8::try_from(length % 128).expect("seven bits") | 128);
        length /= 128;
    }
    encoded.push(u8::try_from(length).expect("seven bits"));
    encoded.extend(bytes);
    encoded
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    field(1, &[field(1, key), field(2, value)].concat())
}

fn request(domain: &[u8], descriptors: &[Vec<u8>]) -> Vec<u8> {
    let descriptors = descriptors.iter().flat_map(|descriptor| field(2, descriptor));
    field(1, domain).into_iter().chain(descriptors).collect()
}

/// A valid request.
fn valid() -> Vec<u8> {
    request(b"hostile", &[entry(b"k", b"v")])
}

fn call(body: Vec<u8>) -> Call {
    Call { headers: call_headers(), body }
}

fn messages(protobufs: impl IntoIterator<Item = Vec<u8>>) -> Vec<Call> {
    protobufs.into_iter().map(|protobuf| call(message(&protobuf))).collect()
}

/// Valid calls in which one header has another value, or none.
fn with_header(name: &str, values: impl IntoIterator<Item = Vec<u8>>) -> Vec<Call> {
    let changed = |value: Vec<u8>| {
        let mut headers = call_headers();
        headers.retain(|(known, _)| known != name);
        headers.push((name.to_owned(), value));
        // Pseudo headers come first.
        headers.sort_by_key(|(name, _)| !name.starts_with(':'));
        Call { headers, body: message(&valid()) }
    };
    values.into_iter().map(changed).collect()
}

fn texts(values: &[&str]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.as_bytes().to_vec()).collect()
}

pub(crate) fn kinds() -> Vec<Kind> {
    let mut kinds = heads();
    kinds.extend(bodies());
    kinds.extend(protobufs());
    kinds.extend(requests());
    kinds
}

fn heads() -> Vec<Kind> {
    use Expected::{Anything, Error};
    let without_type = Call {
        headers: call_headers().into_iter().filter(|(name, _)| name != "content-type").collect(),
        body: message(&valid()),
    };
    let many = (0..2000).map(|number| (format!("x-{number}"), b"y".to_vec()));
    let many =
        Call { headers: call_headers().into_iter().chain(many).collect(), body: message(&valid()) };
    let mut two_deadlines = call_headers();
    two_deadlines.extend(["1S", "1S"].map(|value| ("grpc-timeout".to_owned(), value.into())));
    let two_deadlines = Call { headers: two_deadlines, body: message(&valid()) };
    let kinds = [
        "",
        "text/plain",
        "application/json",
        "application/grpc-web",
        "application/grpc+json",
        "application/grpcx",
        "application/x-protobuf",
        "multipart/form-data; boundary=x",
    ];
    vec![
        (
            "other methods",
            Error,
            with_header(":method", texts(&["GET", "PUT", "HEAD", "DELETE", "OPTIONS", "X"])),
        ),
        ("no content type", Error, vec![without_type]),
        ("wrong content types", Error, with_header("content-type", texts(&kinds))),
        (
            "unknown paths",
            Error,
            with_header(
                ":path",
                texts(&[
                    "/",
                    "/check",
                    "//",
                    "/x/y",
                    "/grpc.health.v1.Health/X",
                    "/envoy.service.ratelimit.v3.RateLimitService",
                    "/%00/x",
                ]),
            ),
        ),
        (
            "long paths",
            Error,
            with_header(":path", vec![[b"/".to_vec(), vec![b'x'; 8000]].concat()]),
        ),
        (
            "headers beyond the maximum",
            Error,
            with_header("x-long", vec![vec![b'x'; 17_000], vec![b'x'; 100_000]]),
        ),
        ("many headers", Error, vec![many]),
        (
            "invalid deadlines",
            Error,
            with_header(
                "grpc-timeout",
                texts(&["", "x", "1", "m", "-1m", "1.5S", "999999999m", "1h", "1 m", "1m1m"]),
            ),
        ),
        ("two deadlines", Error, vec![two_deadlines]),
        ("passed deadlines", Error, with_header("grpc-timeout", texts(&["0m", "0H", "1n"]))),
        (
            "endless deadlines",
            Anything,
            with_header("grpc-timeout", texts(&["99999999H", "99999999M"])),
        ),
        (
            "unknown encodings",
            Error,
            with_header("grpc-encoding", texts(&["gzip", "deflate", "x", ""])),
        ),
        (
            "tokens that are not needed",
            Anything,
            with_header(
                "authorization",
                vec![
                    b"Bearer x".to_vec(),
                    b"\xff\xfe".to_vec(),
                    b"Basic Og==".to_vec(),
                    vec![b'x'; 4000],
                ],
            ),
        ),
        ("binary metadata", Anything, with_header("x-bin", texts(&["!!!", "=", "AAAA"]))),
        (
            "metadata that is not text",
            Anything,
            with_header("x-meta", vec![b"\x80\xff".to_vec(), b"caf\xc3\xa9".to_vec()]),
        ),
        (
            "invalid trace contexts",
            Anything,
            with_header(
                "traceparent",
                texts(&[
                    "x",
                    "00-0-0-0",
                    "ff-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01",
                ]),
            ),
        ),
    ]
}

fn bodies() -> Vec<Kind> {
    use Expected::{Anything, Error};
    let bodies = |bodies: Vec<Vec<u8>>| bodies.into_iter().map(call).collect();
    let prefixed =
        |flag: u8, length: u32, bytes: &[u8]| [&[flag][..], &length.to_be_bytes(), bytes].concat();
    let valid_length = u32::try_from(valid().len()).expect("short");
    vec![
        ("no message", Error, bodies(vec![vec![]])),
        ("incomplete prefix", Error, bodies((1..5).map(|length| vec![0; length]).collect())),
        (
            "announced length beyond the body",
            Error,
            bodies([1, 100, 60_000].map(|more| prefixed(0, valid_length + more, &valid())).into()),
        ),
        (
            "announced length of gigabytes",
            Error,
            bodies([u32::MAX, 1 << 30, 65_537].map(|length| prefixed(0, length, &valid())).into()),
        ),
        (
            "announced length within the message",
            Anything,
            bodies(
                (1..valid_length).map(|less| prefixed(0, valid_length - less, &valid())).collect(),
            ),
        ),
        (
            "compressed without an encoding",
            Error,
            bodies(vec![prefixed(1, valid_length, &valid())]),
        ),
        (
            "unknown flags",
            Error,
            bodies([2, 3, 127, 128, 255].map(|flag| prefixed(flag, valid_length, &valid())).into()),
        ),
        ("two messages", Anything, bodies(vec![[message(&valid()), message(&valid())].concat()])),
        (
            "message beyond 64 KiB",
            Error,
            messages(
                [65_537, 70_000].map(|length| request(b"d", &[entry(b"k", &vec![b'x'; length])])),
            ),
        ),
    ]
}

fn protobufs() -> Vec<Kind> {
    use Expected::{Anything, Error};
    let mut random = Random::new(41);
    let noise = (0..80).map(|_| {
        let length = random.within(1, 200);
        (0..length).map(|_| u8::try_from(random.within(0, 255)).expect("a byte")).collect()
    });
    let noise = messages(noise.collect::<Vec<Vec<u8>>>());
    let flipped = (0..80).map(|_| {
        let mut bytes = valid();
        let at = usize::try_from(random.within(0, bytes.len() as u64 - 1)).expect("an index");
        bytes[at] ^= 1 << random.within(0, 7);
        bytes
    });
    let flipped = messages(flipped.collect::<Vec<_>>());
    let cut = (1..valid().len()).map(|length| valid()[..length].to_vec());
    let nested = |depth: usize| (0..depth).fold(Vec::new(), |inner, _| field(2, &inner));
    vec![
        ("random protobuf", Anything, noise),
        ("flipped bits of protobuf", Anything, flipped),
        ("truncated protobuf", Error, messages(cut)),
        (
            "truncated varint",
            Error,
            messages([vec![0x18], vec![0x18, 0x80], vec![0x18, 0xff, 0xff]]),
        ),
        (
            "varint beyond 64 bits",
            Error,
            messages([[&[0x18][..], &[0xff; 10]].concat(), [&[0x18][..], &[0x80; 20]].concat()]),
        ),
        ("field number 0", Error, messages([vec![0x00, 0x01], vec![0x02, 0x00]])),
        ("unknown wire types", Error, messages([vec![0x0e], vec![0x0f], vec![0x1e, 0x00]])),
        (
            "wrong wire types",
            Error,
            messages([
                vec![0x08, 0x01],
                vec![0x10, 0x01],
                vec![0x1a, 0x00],
                vec![0x0d, 0, 0, 0, 0],
            ]),
        ),
        ("groups without end", Error, messages([vec![0x23], vec![0x23; 200], vec![0x24]])),
        ("deep nesting", Error, messages([nested(10), nested(500), vec![0x7b; 5000]])),
        (
            "unknown fields",
            Anything,
            messages([[valid(), field(15, b"x")].concat(), [valid(), vec![0x78, 0x01]].concat()]),
        ),
        (
            "length beyond the message",
            Error,
            messages([vec![0x0a, 0x05, b'a'], vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]]),
        ),
        (
            "domain that is not UTF-8",
            Error,
            messages(
                [b"\xff".as_slice(), b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"]
                    .map(|domain| request(domain, &[entry(b"k", b"v")])),
            ),
        ),
        (
            "keys and values that are not UTF-8",
            Error,
            messages(
                [entry(b"\xff", b"v"), entry(b"k", b"\xff\xfe"), entry(b"k", b"\xc0\xaf")]
                    .map(|entry| request(b"d", &[entry])),
            ),
        ),
    ]
}

fn requests() -> Vec<Kind> {
    use Expected::{Anything, Error};
    let limit = |unit: Vec<u8>| {
        [entry(b"k", b"v"), field(2, &[vec![0x08, 0x01, 0x10], unit].concat())].concat()
    };
    let many = |count: usize| request(b"d", &vec![entry(b"k", b"v"); count]);
    let entries = |count: usize| {
        (0..count)
            .flat_map(|number| entry(format!("k{number}").as_bytes(), b"v"))
            .collect::<Vec<u8>>()
    };
    vec![
        (
            "no domain",
            Error,
            messages([field(2, &entry(b"k", b"v")), request(b"", &[entry(b"k", b"v")])]),
        ),
        ("no descriptors", Error, messages([vec![], field(1, b"d"), vec![0x18, 0x05]])),
        ("more than 100 descriptors", Error, messages([101, 1000, 5000].map(many))),
        (
            "descriptors without entries",
            Error,
            messages([request(b"d", &[vec![]]), request(b"d", &[entry(b"k", b"v"), vec![]])]),
        ),
        (
            "entries without a key",
            Error,
            messages([request(b"d", &[entry(b"", b"v")]), request(b"d", &[field(1, &[])])]),
        ),
        (
            "too many entries",
            Error,
            messages([30, 100, 3000].map(|count| request(b"d", &[entries(count)]))),
        ),
        (
            "unknown units",
            Error,
            messages(
                [
                    vec![0x00],
                    vec![0x08],
                    vec![0x63],
                    vec![0xff; 9].into_iter().chain([0x01]).collect(),
                ]
                .map(|unit| request(b"d", &[limit(unit)])),
            ),
        ),
        (
            "huge hits",
            Anything,
            messages([
                [request(b"d", &[entry(b"k", b"v")]), vec![0x18, 0xff, 0xff, 0xff, 0xff, 0x0f]]
                    .concat(),
                request(
                    b"d",
                    &[[entry(b"k", b"v"), field(3, &[&[0x08][..], &[0xff; 9], &[0x01]].concat())]
                        .concat()],
                ),
            ]),
        ),
        (
            "control characters",
            Anything,
            messages(
                [
                    b"\0".as_slice(),
                    b"a\r\nb",
                    b"\x1b[31m",
                    b"{tag}",
                    b"%2F",
                    b"<img src=x onerror=1>",
                ]
                .map(|value| request(value, &[entry(value, value)])),
            ),
        ),
        (
            "duplicate keys",
            Anything,
            messages([request(b"d", &[[entry(b"k", b"v"), entry(b"k", b"w")].concat()])]),
        ),
        (
            "long keys and values",
            Anything,
            messages([1024, 1025, 20_000].map(|length| {
                request(&vec![b'd'; 1000], &[entry(&vec![b'k'; length], &vec![b'v'; length])])
            })),
        ),
    ]
}
