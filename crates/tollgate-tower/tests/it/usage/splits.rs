//! The result does not depend on where chunks end.

use proptest::prelude::*;
use proptest::sample::Index;

use super::fixtures::{FIXTURES, read, read_events};
use tollgate_tower::usage::{TokenUsage, Usage, UsageReader};

#[test]
fn two_chunks_give_the_same_result_wherever_they_are_split() {
    for fixture in FIXTURES {
        for middle in 0..=fixture.body.len() {
            let (first, second) = fixture.body.split_at(middle);
            let usage = read((fixture.reader)(), [first, second]);
            assert_eq!(usage, fixture.usage, "{} at {middle}", fixture.name);
        }
    }
}

/// Every feature of the format in one stream: a byte order mark, comments, other fields, all line ends, several data
/// fields, empty data, invalid JSON and text beyond ASCII.
const STREAM: &str = "\u{feff}: comment\r\rid: 7\revent: é\r\n\r\nretry: 5\n\n\
    data: [DONE\n\ndata\n\ndata:\n\ndatax: {\"usage\":{\"prompt_tokens\":1}}\n\n data: {\"usage\":{}}\n\n\
    data:{\"delta\":\"caf\u{e9} 1\"}\n\ndata: {\"usage\":\r\ndata: {\"prompt_tokens\":\rdata:70\n: comment\ndata: }\n\
    event: end\ndata: }\r\n\r\ndata: {not json}\n\ndata: {\"usage\":{\"completion_tokens\": 12}}\n\n";

const OF_STREAM: Usage = Usage::Exact(TokenUsage { input: 70, output: 12 });

#[test]
fn every_line_end_and_field_of_event_streams_is_read() {
    assert_eq!(read_events(STREAM), OF_STREAM);
    for middle in 0..=STREAM.len() {
        let (first, second) = STREAM.as_bytes().split_at(middle);
        assert_eq!(read(UsageReader::event_stream(), [first, second]), OF_STREAM, "at {middle}");
    }
    let bytes = STREAM.as_bytes().chunks(1);
    assert_eq!(read(UsageReader::event_stream(), bytes), OF_STREAM);
}

#[test]
fn one_line_end_is_not_two() {
    // If `\r\n` ended the line and the event, the data would be two invalid documents.
    let text = "data: {\"usage\":\r\ndata: {\"prompt_tokens\":5}}\r\n\r\n";
    assert_eq!(read_events(text), Usage::Exact(TokenUsage { input: 5, output: 0 }));
    // Two `\r` are two line ends.
    let text = "data: {\"usage\":\r\rdata: {\"prompt_tokens\":5}}\r\r";
    assert_eq!(read_events(text), Usage::Unknown);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_number_of_chunks_gives_the_same_result(
        fixture in 0..FIXTURES.len(), ends in prop::collection::vec(any::<Index>(), 0..40),
    ) {
        let fixture = &FIXTURES[fixture];
        let mut ends: Vec<usize> =
            ends.iter().map(|end| end.index(fixture.body.len() + 1)).collect();
        ends.extend([0, fixture.body.len()]);
        ends.sort_unstable();
        let chunks = ends.windows(2).map(|range| &fixture.body[range[0]..range[1]]);
        prop_assert_eq!(read((fixture.reader)(), chunks), fixture.usage);
    }
}
