//! Fuzz target of the decoder of replies. `scripts/fuzz redis_reply` runs it for longer.

use tollgate_testkit::fuzz::{Target, chunks};

use super::super::{Decoder, Malformed, REPLY_CAP, Reply};
use super::encode;

/// A cap that short inputs exceed.
const SMALL_CAP: usize = 600;

const WORDS: [&str; 24] = [
    "*2\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*300\r\n",
    "*349525\r\n",
    "$0\r\n\r\n",
    "$2\r\nab\r\n",
    "$-1\r\n",
    "$601\r\n",
    "$1048577\r\n",
    ":1\r\n",
    ":-1\r\n",
    ":123456789012345678\r\n",
    ":1234567890123456789\r\n",
    ":9223372036854775808\r\n",
    "+OK\r\n",
    "-ERR x\r\n",
    "_\r\n",
    "\r\n",
    "\r",
    "\n",
    ":",
    "*1\r\n*1\r\n*1\r\n",
    ":0\r\n:0\r\n:0\r\n",
];

#[test]
fn fuzz_redis_reply() {
    let summary = Target::new("redis_reply", 8000).dictionary(&WORDS).run(|input| {
        [SMALL_CAP, REPLY_CAP].map(|cap| {
            let whole = decode([input], cap);
            let (replies, end) = &whole;
            let encoded = encoded(replies);
            assert_eq!(decode([&encoded[..]], REPLY_CAP).0, *replies, "encoded again");
            for in_pieces in [decode(chunks(input), cap), decode(input.chunks(1), cap)] {
                assert_eq!(in_pieces.0, *replies);
                // Of a reply that is too long and also invalid, either is reported.
                let is_too_long =
                    [end, &in_pieces.1].iter().any(|end| matches!(end, Err(Malformed::TooLong(_))));
                assert!(is_too_long || in_pieces.1 == *end);
            }
            (replies.len().min(8), end.clone(), replies.first().map(shape))
        })
    });
    assert!(summary.outcomes > 100, "{summary:?}");
}

/// Decodes all replies of an input. Returns them, and whether bytes are left, or the error.
fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    cap: usize,
) -> (Vec<Reply>, Result<bool, Malformed>) {
    let (mut decoder, mut replies) = (Decoder::default(), Vec::new());
    let mut received = 0;
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        received += piece.len();
        loop {
            let next = decoder.next(cap);
            // Every level of nesting can reserve an item for each three bytes.
            assert!(decoder.reserved_items() <= 8 * (received + 4), "for {received} bytes");
            match next {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => return (replies, Err(error)),
            }
        }
    }
    (replies, Ok(decoder.is_empty()))
}

fn encoded(replies: &[Reply]) -> Vec<u8> {
    let mut bytes = Vec::new();
    replies.iter().for_each(|reply| encode(reply, &mut bytes));
    bytes
}

/// Returns kind and size of a reply, and of its first item.
fn shape(reply: &Reply) -> (u8, usize, Option<u8>) {
    match reply {
        Reply::Simple(text) => (0, text.len().min(4), None),
        Reply::Integer(value) => (1, usize::from(*value < 0), None),
        Reply::Bulk(bytes) => (2, bytes.len().min(4), None),
        Reply::Null => (3, 0, None),
        Reply::Array(items) => (4, items.len().min(16), items.first().map(|item| shape(item).0)),
        Reply::Error(error) => (5, error.code.len().min(4), None),
    }
}
