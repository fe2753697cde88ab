//! Complete responses of each provider, and their figures.

use http::HeaderMap;
use tollgate_tower::usage::{TokenUsage, Usage, UsageReader};

/// A response, how it is read, and its figures.
pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) body: &'static [u8],
    pub(crate) reader: fn() -> UsageReader,
    pub(crate) usage: Usage,
}

macro_rules! fixture {
    ($name:literal, $reader:ident, $input:literal, $output:literal) => {
        Fixture {
            name: $name,
            body: include_bytes!(concat!("fixtures/", $name)),
            reader: UsageReader::$reader,
            usage: Usage::Exact(TokenUsage { input: $input, output: $output }),
        }
    };
}

pub(crate) const FIXTURES: &[Fixture] = &[
    fixture!("openai_chat.json", json, 1117, 46),
    fixture!("openai_embeddings.json", json, 8, 0),
    fixture!("openai_responses.json", json, 36, 87),
    fixture!("anthropic.json", json, 2395, 503),
    fixture!("gemini.json", json, 12, 120),
    fixture!("gemini_array.json", json, 4, 9),
    fixture!("openai_chat.sse", event_stream, 19, 10),
    fixture!("openai_responses.sse", event_stream, 37, 11),
    fixture!("anthropic.sse", event_stream, 100, 15),
    fixture!("gemini.sse", event_stream, 4, 30),
];

/// Reads a body in these chunks.
pub(crate) fn read<'c>(
    mut reader: UsageReader,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Usage {
    for chunk in chunks {
        reader.push(chunk);
    }
    reader.finish()
}

pub(crate) fn read_json(text: &str) -> Usage {
    read(UsageReader::json(), [text.as_bytes()])
}

pub(crate) fn read_events(text: &str) -> Usage {
    read(UsageReader::event_stream(), [text.as_bytes()])
}

const fn exact(input: u64, output: u64) -> Usage {
    Usage::Exact(TokenUsage { input, output })
}

#[test]
fn reads_the_figures_of_every_provider() {
    for fixture in FIXTURES {
        assert_eq!(read((fixture.reader)(), [fixture.body]), fixture.usage, "{}", fixture.name);
    }
}

#[test]
fn the_last_figures_of_a_stream_count() {
    let event = |output: u64| {
        format!("data: {{\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{output}}}}}\n\n")
    };
    assert_eq!(read_events(&[event(1), event(2), event(5)].concat()), exact(7, 5));
    // The input tokens of Anthropic can grow when it calls tools.
    let tools = "data: {\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n\
        data: {\"usage\":{\"input_tokens\":90,\"cache_read_input_tokens\":null,\"output_tokens\":8}}\n\n";
    assert_eq!(read_events(tools), exact(90, 8));
}

/// Gateways that translate Anthropic to OpenAI add cached tokens to the prompt and keep their fields.
#[test]
fn cached_tokens_are_part_of_prompt_tokens() {
    let text =
        r#"{"usage":{"prompt_tokens":100,"cache_read_input_tokens":60,"completion_tokens":5}}"#;
    assert_eq!(read_json(text), exact(100, 5));
}

/// xAI does not count reasoning tokens as completion tokens.
#[test]
fn the_rest_of_the_total_is_output() {
    let text = r#"{"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,
        "completion_tokens_details":{"reasoning_tokens":94}}}"#;
    assert_eq!(read_json(text), exact(32, 103));
    let smaller = r#"{"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":40}}"#;
    assert_eq!(read_json(smaller), exact(32, 9));
    let metadata = r#"{"usageMetadata":{"promptTokenCount":4,"totalTokenCount":30}}"#;
    assert_eq!(read_json(metadata), exact(4, 26));
    assert_eq!(read_json(r#"{"usage":{"input_tokens":4,"total_tokens":3}}"#), exact(4, 0));
}

#[test]
fn figures_that_are_not_integers_up_to_two_to_the_53_are_ignored() {
    for value in [
        "-1",
        "-0",
        "1.5",
        "1e3",
        "10.0",
        "9007199254740993",
        "99999999999999999999",
        "\"5\"",
        "null",
        "[5]",
        "{\"a\":5}",
        "true",
    ] {
        let text = format!(r#"{{"usage":{{"prompt_tokens":{value},"completion_tokens":3}}}}"#);
        let expected = Usage::Estimated { input: None, output: 3 };
        assert_eq!(read_json(&text), expected, "{value}");
    }
    let largest = r#"{"usage":{"prompt_tokens":9007199254740992,"completion_tokens":0}}"#;
    assert_eq!(read_json(largest), exact(1 << 53, 0));
}

#[test]
fn fields_with_similar_names_are_ignored() {
    let long = "x".repeat(40);
    for name in
        ["Usage", "usage\\n", "us\\u0061ge", "\\tusage", "usag", "usages", &format!("usage{long}")]
    {
        let text = format!(r#"{{"{name}":{{"prompt_tokens":1,"completion_tokens":1}}}}"#);
        assert_eq!(read_json(&text), Usage::Unknown, "{name}");
    }
    let bytes = format!(r#"{{"usage":{{"prompt_tokens{long}":1}}}}"#);
    assert_eq!(read(UsageReader::json(), bytes.as_bytes().chunks(1)), Usage::Unknown);
}

#[test]
fn figures_elsewhere_are_ignored() {
    let usage = r#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    for text in [
        format!(r#"{{"error":{usage}}}"#),
        format!(r#"{{"choices":[{usage}]}}"#),
        format!(r#"{{"tools":[{usage}],"metadata":{usage}}}"#),
        format!(r#"{{"usage":[{usage}]}}"#),
        r#"{"prompt_tokens":1,"completion_tokens":1}"#.to_owned(),
        r#"{"usage":{"total":{"prompt_tokens":1}}}"#.to_owned(),
        r#"{"error":{"message":"overloaded"}}"#.to_owned(),
        String::new(),
    ] {
        assert_eq!(read_json(&text), Usage::Unknown, "{text}");
    }
}

#[test]
fn content_type_selects_the_format() {
    let is_read = |fields: &[(&'static str, &str)], body: &str| {
        let headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let reader = UsageReader::for_headers(&headers)?;
        Some(read(reader, [body.as_bytes()]) == exact(1, 2))
    };
    let json = r#"{"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let events = format!("data: {json}\n\n");
    for (content_type, of_json, of_events) in [
        ("application/json", Some(true), Some(false)),
        ("Application/JSON; charset=utf-8", Some(true), Some(false)),
        ("application/vnd.api+json", Some(true), Some(false)),
        ("text/event-stream", Some(false), Some(true)),
        ("text/event-stream;charset=utf-8", Some(false), Some(true)),
        ("text/plain", None, None),
        ("application/jsonl", None, None),
    ] {
        let headers = [("content-type", content_type)];
        assert_eq!(is_read(&headers, json), of_json, "{content_type}");
        assert_eq!(is_read(&headers, &events), of_events, "{content_type}");
    }
    let with_encoding = |encoding| {
        is_read(&[("content-type", "application/json"), ("content-encoding", encoding)], json)
    };
    assert_eq!(with_encoding("identity"), Some(true));
    assert_eq!(with_encoding("br"), None);
    assert_eq!(is_read(&[], json), None);
}
