//! Fuzz target of the token usage of responses. `scripts/fuzz usage` runs it for longer.

use allocation_counter::measure;
use tollgate_testkit::fuzz::{Target, chunks};
use tollgate_tower::usage::{Usage, UsageReader};

use super::fixtures::{FIXTURES, read};

/// Maximum memory of a reader in bytes, whatever it reads.
const MAX_MEMORY: u64 = 4096;

const WORDS: [&str; 36] = [
    "data: ",
    "data:",
    "event: x\n",
    "\n\n",
    "\r\n\r\n",
    "\r",
    "\n",
    ": c\n",
    "id: 7\n",
    "data\n",
    "{\"usage\":",
    "\"usageMetadata\":",
    "\"prompt_tokens\":",
    "\"completion_tokens\":",
    "\"total_tokens\":",
    "\"input_tokens\":",
    "\"output_tokens\":",
    "\"cache_read_input_tokens\":",
    "\"cache_creation_input_tokens\":",
    "\"promptTokenCount\":",
    "\"candidatesTokenCount\":",
    "\"thoughtsTokenCount\":",
    "\"message\":{",
    "\"response\":{",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0061",
    "null",
    "[DONE]",
    "\u{feff}",
];

#[test]
fn fuzz_usage() {
    let format = |body: &[u8]| match body.first() {
        Some(b'{' | b'[') => "json\n".as_bytes(),
        _ => "events\n".as_bytes(),
    };
    let fixtures = FIXTURES.iter().map(|fixture| {
        let end = fixture.body.len().min(4000);
        [format(fixture.body), &fixture.body[..end]].concat()
    });
    let mut exact = 0;
    let summary = Target::new("usage", 2500).dictionary(&WORDS).seeds(fixtures).run(|input| {
        let (is_json, body) = match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => (input[..end].starts_with(b"json"), &input[end + 1..]),
            None => (false, input),
        };
        let reader = || if is_json { UsageReader::json() } else { UsageReader::event_stream() };
        let mut whole = Usage::Unknown;
        let memory = measure(|| whole = read(reader(), [body]));
        assert!(memory.bytes_max <= MAX_MEMORY, "{memory:?}");
        assert_eq!(read(reader(), chunks(body)), whole, "in chunks");
        assert_eq!(read(reader(), body.chunks(1)), whole, "byte by byte");
        exact += u32::from(matches!(whole, Usage::Exact(_)));
        outcome(whole)
    });
    assert!(summary.outcomes > 10, "{summary:?}");
    assert!(exact > 20, "{exact} with exact figures");
}

/// Returns the kind of the usage, and the magnitude of its figures.
fn outcome(usage: Usage) -> (u8, u32, u32) {
    let bits = |number: u64| u64::BITS - number.leading_zeros();
    match usage {
        Usage::Exact(tokens) => {
            assert!(tokens.input <= 3 << 53 && tokens.output <= 3 << 53, "{tokens:?}");
            (0, bits(tokens.input), bits(tokens.output))
        }
        Usage::Estimated { input, output } => (1, input.map_or(0, bits), bits(output)),
        _ => (2, 0, 0),
    }
}
