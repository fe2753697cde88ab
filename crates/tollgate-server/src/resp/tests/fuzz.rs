//! Fuzz target of the decoder. `scripts/fuzz resp` runs it for longer.

use tollgate_testkit::fuzz::{Target, chunks};

use super::{Bounds, Decoded, Decoder, decode_chunks, encode};

const WORDS: [&str; 26] = [
    "*1\r\n",
    "*5\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*64\r\n",
    "*65\r\n",
    "$0\r\n\r\n",
    "$4\r\nPING\r\n",
    "$11\r\nCL.THROTTLE\r\n",
    "$14\r\nTOLLGATE.CHECK\r\n",
    "$1\r\na\r\n",
    "$-1\r\n",
    "$65536\r\n",
    "PING\r\n",
    "AUTH ",
    "HELLO 3\r\n",
    "\r\n",
    "\n",
    "\r",
    "\"",
    "'",
    "\\x41",
    "\\",
    " ",
    "\x0b",
    "$1023\r\n",
];

#[test]
fn fuzz_resp() {
    let target = Target::new("resp", 8000).dictionary(&WORDS).max_length(3 * 1024);
    let summary = target.run(|input| {
        [Bounds::AUTHENTICATED, Bounds::UNAUTHENTICATED].map(|bounds| {
            let whole = decode_chunks([input], &bounds);
            assert_eq!(decode_chunks(chunks(input), &bounds), whole, "in chunks");
            let (commands, error) = whole;
            for command in &commands {
                assert!((1..=bounds.arguments).contains(&command.len()), "{command:?}");
            }
            let encoded: Vec<u8> = commands.iter().flat_map(encode).collect();
            let again = decode_chunks([&encoded[..]], &Bounds::AUTHENTICATED);
            assert_eq!(again, (commands.clone(), None), "encoded again");
            check_first(input, &bounds);
            (commands.len().min(8), error)
        })
    });
    assert!(summary.outcomes > 30, "{summary:?}");
}

/// An incomplete command fits the buffer; the parts of a complete one are its bytes around the key.
fn check_first(input: &[u8], bounds: &Bounds) {
    let mut decoder = Decoder::default();
    match decoder.decode(input, bounds) {
        // The header of a string that does not fit can be incomplete itself.
        Ok(Decoded::Incomplete) => assert!(input.len() < bounds.length + 16),
        Ok(Decoded::Empty { length }) => assert!((1..=input.len()).contains(&length)),
        Ok(Decoded::Command { length }) => {
            assert!(length <= input.len() && length <= bounds.length);
            if let Some(parts) = decoder.parts(input, length) {
                let key = decoder.arguments(input).get(1).unwrap();
                let command = &input[..length];
                assert!(command.starts_with(parts.head) && parts.head.ends_with(b"$"));
                assert!(command.strip_suffix(parts.tail).unwrap().ends_with(key));
            }
        }
        Err(_) => {}
    }
}
