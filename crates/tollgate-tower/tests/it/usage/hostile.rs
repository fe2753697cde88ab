//! Input that is not what a provider sends.

use allocation_counter::measure;
use proptest::prelude::*;
use tollgate_tower::usage::{TokenUsage, Usage, UsageReader};

use super::fixtures::{FIXTURES, read};

const MIB: usize = 1 << 20;

/// 10 MB of each of these: one line, one string, one number, one name, deep nesting, many items.
const ENDLESS: [(&str, &str); 8] = [
    ("", "x"),
    ("data: ", "x"),
    ("data: \"", "x"),
    ("data: {\"", "usage"),
    ("data: 1", "0"),
    ("data: ", "["),
    ("data: [", "{},"),
    ("data: {\"choices\":[", "{\"delta\":{\"content\":\"x\"}},"),
];

#[test]
fn memory_does_not_grow_with_the_input() {
    for (start, repeated) in ENDLESS {
        let chunk = repeated.repeat(MIB / repeated.len());
        for (reader, start) in [
            (UsageReader::event_stream as fn() -> UsageReader, start),
            (UsageReader::json, start.trim_start_matches("data: ")),
        ] {
            let mut usage = None;
            let memory = measure(|| {
                let mut reader = reader();
                reader.push(start.as_bytes());
                for _ in 0..10 {
                    reader.push(chunk.as_bytes());
                }
                usage = Some(reader.finish());
            });
            assert!(memory.bytes_max <= 4096, "{start}{repeated}: {memory:?}");
            assert_eq!(usage, Some(Usage::Unknown), "{start}{repeated}");
        }
    }
}

/// Embeddings are long responses with the usage at the end.
#[test]
fn long_responses_and_events_are_read() {
    let numbers = vec!["-0.0123"; MIB].join(",");
    let text = format!(
        r#"{{"data":[{numbers}],"instructions":"{numbers}","usage":{{"prompt_tokens":8}}}}"#
    );
    let expected = Usage::Exact(TokenUsage { input: 8, output: 0 });
    assert_eq!(read(UsageReader::json(), [text.as_bytes()]), expected);
    let event = format!("data: {{\"response\":{text}}}\n\n");
    assert_eq!(read(UsageReader::event_stream(), [event.as_bytes()]), expected);
}

#[test]
fn reading_goes_on_after_events_that_are_not_json() {
    let valid = "\n\ndata: {\"usage\":{\"prompt_tokens\":8}}\n\n";
    for (start, repeated) in ENDLESS {
        let text = format!("{start}{}{valid}", repeated.repeat(MIB / repeated.len()));
        let usage = read(UsageReader::event_stream(), [text.as_bytes()]);
        assert_eq!(usage, Usage::Exact(TokenUsage { input: 8, output: 0 }), "{start}{repeated}");
    }
}

#[test]
fn sums_do_not_overflow() {
    let figures = r#"{"input_tokens":9007199254740992,"cache_read_input_tokens":9007199254740992,
        "output_tokens":9007199254740992}"#;
    let usage = read(UsageReader::json(), [format!("{{\"usage\":{figures}}}").as_bytes()]);
    assert_eq!(usage, Usage::Exact(TokenUsage { input: 1 << 54, output: 1 << 53 }));
    assert_eq!(TokenUsage { input: u64::MAX, output: 1 }.total(), u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_bytes_never_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        for reader in [UsageReader::json(), UsageReader::event_stream()] {
            let _ = read(reader, chunks.iter().map(Vec::as_slice));
        }
    }

    /// Changed responses are read the same way in one chunk and byte by byte.
    #[test]
    fn changed_responses_never_panic(
        fixture in 0..FIXTURES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        let fixture = &FIXTURES[fixture];
        let mut body = fixture.body.to_vec();
        for (place, byte) in edits {
            *place.get_mut(&mut body) = byte;
        }
        let whole = read((fixture.reader)(), [&body[..]]);
        prop_assert_eq!(read((fixture.reader)(), body.chunks(1)), whole);
    }
}
