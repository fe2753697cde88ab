//! Tests of the codec: valid and invalid input, and that splits of the input change nothing.

mod fuzz;

use proptest::collection::vec;
use proptest::prelude::*;

use super::decode::{Bounds, Decoded, Decoder};

/// A command as a list of arguments.
type Arguments = Vec<Vec<u8>>;

/// Decodes all commands of an input that arrives in these chunks. Returns the commands and the error that ended it.
fn decode_chunks<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
    bounds: &Bounds,
) -> (Vec<Arguments>, Option<String>) {
    let (mut decoder, mut unread, mut commands) = (Decoder::default(), Vec::new(), Vec::new());
    for chunk in chunks {
        unread.extend_from_slice(chunk);
        loop {
            let length = match decoder.decode(&unread, bounds) {
                Err(error) => return (commands, Some(error.to_string())),
                Ok(Decoded::Incomplete) => break,
                Ok(Decoded::Empty { length }) => length,
                Ok(Decoded::Command { length }) => {
                    let arguments = decoder.arguments(&unread);
                    commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    length
                }
            };
            unread.drain(..length);
        }
    }
    (commands, None)
}

fn decode(input: &[u8]) -> (Vec<Arguments>, Option<String>) {
    decode_chunks([input], &Bounds::AUTHENTICATED)
}

fn encode(command: &Arguments) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn arrays_are_binary_safe() {
    let command = vec![b"ECHO".to_vec(), b"\r\n\0\xff$5\r\n*1".to_vec(), Vec::new()];
    assert_eq!(decode(&encode(&command)), (vec![command], None));
}

#[test]
fn empty_commands_are_skipped() {
    let (commands, error) = decode(b"\r\n\n*0\r\n*-1\r\n  \r\nPING\n*1\r\n$4\r\nPING\r\n");
    assert_eq!((commands.len(), error), (2, None));
}

#[test]
fn invalid_input_is_a_protocol_error() {
    for (input, expected) in [
        ("*\r\n", "invalid multibulk length"),
        ("*a\r\n", "invalid multibulk length"),
        ("*1a\r\n", "invalid multibulk length"),
        ("*--1\r\n", "invalid multibulk length"),
        ("*1\rx", "invalid multibulk length"),
        ("*65\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*99999999999\r\n", "invalid multibulk length"),
        ("*1\r\nPING\r\n", "expected '$', got 'P'"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n$\r\n", "invalid bulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\n$70000\r\n", "invalid bulk length"),
        ("*1\r\n$536870912\r\n", "invalid bulk length"),
        ("*1\r\n$4\r\nPINGPONG", "expected CRLF after a bulk string"),
        ("PING \"a\r\n", "unbalanced quotes in request"),
        ("PING 'a'b\r\n", "unbalanced quotes in request"),
    ] {
        let (commands, error) = decode(input.as_bytes());
        let expected = format!("ERR Protocol error: {expected}");
        assert_eq!((commands.len(), error), (0, Some(expected)), "{input:?}");
    }
}

#[test]
fn clients_that_have_not_authenticated_send_little() {
    let bounds = &Bounds::UNAUTHENTICATED;
    let decode = |input: &[u8]| decode_chunks([input], bounds).1.unwrap_or_default();
    assert!(decode(b"*11\r\n").ends_with("unauthenticated multibulk length"));
    assert!(decode(b"*1\r\n$2000\r\n").ends_with("unauthenticated bulk length"));
    assert!(decode(&[b'a'; 1024]).ends_with("too big inline request"));
    assert!(decode(&b"a ".repeat(500)).is_empty(), "it is incomplete");
    assert!(
        decode(b"a b c d e f g h i j k\r\n").ends_with("too many arguments in an inline request")
    );
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..20), vec(prop::sample::select(b"\r\n$*:0 ".to_vec()), 0..9)]
}

/// Valid commands, empty commands and rarely invalid input.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(argument(), 1..6).prop_map(|command| encode(&command)),
        2 => prop::sample::select(vec![&b"PING\r\n"[..], b"a \"b\\x00\" 'c'\n", b"\r\n", b"*0\r\n"])
            .prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..12),
    ]
}

proptest! {
    #[test]
    fn any_split_of_the_input_gives_the_same_commands(
        pieces in vec(piece(), 0..12),
        mut cuts in vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let input = pieces.concat();
        let whole = decode(&input);
        let mut cuts: Vec<usize> = cuts.drain(..).map(|cut| cut.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]);
        prop_assert_eq!(&decode_chunks(chunks, &Bounds::AUTHENTICATED), &whole);
        prop_assert_eq!(&decode_chunks(input.chunks(1), &Bounds::AUTHENTICATED), &whole);
    }

    #[test]
    fn any_input_is_decoded_or_refused(input in vec(any::<u8>(), 0..300)) {
        for bounds in [Bounds::AUTHENTICATED, Bounds::UNAUTHENTICATED] {
            decode_chunks([&input[..]], &bounds);
        }
    }
}
