//! Streams that end before the provider reports usage, and providers that do not report it.

use tollgate_tower::usage::{TokenUsage, Usage};

use super::fixtures::{FIXTURES, read, read_events, read_json};

/// Returns the usage of a fixture up to and including the first occurrence of `end`, and the rest of its event.
fn read_until(name: &str, end: &str) -> Usage {
    let fixture = FIXTURES.iter().find(|fixture| fixture.name == name).unwrap();
    let text = std::str::from_utf8(fixture.body).unwrap();
    let (before, rest) = text.split_once(end).unwrap();
    let line = rest.split(['\n', '\r']).next().unwrap();
    let part = format!("{before}{end}{line}\n\n");
    read((fixture.reader)(), [part.as_bytes()])
}

#[test]
fn text_without_figures_is_estimated() {
    // `Hello`, and ` wörld` with 7 bytes.
    let usage = read_until("openai_chat.sse", " w\\u00f6rld");
    assert_eq!(usage, Usage::Estimated { input: None, output: 3 });
    assert!(usage.is_estimated());
    assert_eq!(usage.tokens_or(20), Some(TokenUsage { input: 20, output: 3 }));
    // `done` events repeat the text of the deltas.
    let usage = read_until("openai_responses.sse", "response.content_part.done\"");
    assert_eq!(usage, Usage::Estimated { input: None, output: 7 });
}

#[test]
fn text_after_the_last_figures_is_added_as_an_estimate() {
    // `message_start` reports 1 token; 17 bytes of text follow.
    let usage = read_until("anthropic.sse", " from Claude");
    assert_eq!(usage, Usage::Estimated { input: Some(100), output: 1 + 5 });
    assert_eq!(usage.tokens_or(20), Some(TokenUsage { input: 100, output: 6 }));
    // The figures of an event cover its own text.
    let usage = read_until("gemini.sse", " How can I help");
    assert_eq!(usage, Usage::Exact(TokenUsage { input: 4, output: 26 }));
    let usage = read_until("gemini.sse", "Hello!");
    assert_eq!(usage, Usage::Estimated { input: None, output: 2 });
}

#[test]
fn a_stream_without_text_before_its_end_is_exact() {
    let usage = read_until("anthropic.sse", "\"type\": \"ping\"");
    assert_eq!(usage, Usage::Exact(TokenUsage { input: 100, output: 1 }));
    assert_eq!(read_until("openai_chat.sse", "\"role\":\"assistant\""), Usage::Unknown);
}

#[test]
fn zeros_of_unfinished_events_do_not_cover_text() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"}}],\
        \"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}\n\n";
    assert_eq!(read_events(event), Usage::Estimated { input: Some(0), output: 2 });
    let last = "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";
    let usage = read_events(&[event, event, last].concat());
    assert_eq!(usage, Usage::Exact(TokenUsage { input: 3, output: 4 }));
}

/// Gemini counts thoughts before it counts the text.
#[test]
fn thoughts_do_not_cover_text() {
    let event = r#"{"candidates":[{"content":{"parts":[{"text":"12345678"}]}}],
        "usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":50,"totalTokenCount":53}}"#;
    assert_eq!(read_json(event), Usage::Estimated { input: Some(3), output: 52 });
}

#[test]
fn every_kind_of_generated_text_is_counted() {
    for event in [
        r#"{"choices":[{"delta":{"content":"12345678"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"12345678"}]}}]}"#,
        r#"{"choices":[{"delta":{"refusal":"12345678"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"12345678"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"12345678"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"12345678"}}]}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"12345678"}}}]}"#,
        r#"{"choices":[{"text":"12345678"}]}"#,
        r#"{"choices":[{"text":"1234"},{"text":"5678"}]}"#,
        r#"{"choices":[{"message":{"content":"12345678"}}]}"#,
        r#"{"type":"response.output_text.delta","delta":"12345678"}"#,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"12345678"}}"#,
        r#"{"delta":{"type":"thinking_delta","thinking":"12345678"}}"#,
        r#"{"delta":{"type":"input_json_delta","partial_json":"12345678"}}"#,
        r#"{"content":[{"type":"text","text":"12345678"}]}"#,
        r#"{"output":[{"content":[{"type":"output_text","text":"12345678"}]}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"12345678"}]}}]}"#,
    ] {
        let expected = Usage::Estimated { input: None, output: 2 };
        assert_eq!(read_events(&format!("data: {event}\n\n")), expected, "{event}");
        assert_eq!(read_json(event), expected, "{event}");
    }
    let other = r#"{"choices":[{"delta":{"role":"assistant"}}],"delta":{"signature":"12345678"}}"#;
    assert_eq!(read_json(other), Usage::Unknown);
}

/// Escapes count as the text that they stand for: 4 bytes are one token.
#[test]
fn escaped_text_is_measured_in_utf_8() {
    for (text, bytes) in [
        (r"\n\t\\\/", 4_u64),
        (r"\u0041", 1),
        (r"\u00e9", 2),
        (r"\u20ac", 3),
        (r"\ud83d\ude00", 4),
        ("é€😀", 9),
    ] {
        let event = format!("data: {{\"delta\":\"{}\"}}\n\n", text.repeat(4));
        let expected = Usage::Estimated { input: None, output: bytes };
        assert_eq!(read_events(&event), expected, "{text}");
    }
}

#[test]
fn an_unfinished_event_is_ignored_and_an_unterminated_one_is_not() {
    let whole = "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}";
    assert_eq!(read_events(whole), Usage::Exact(TokenUsage { input: 3, output: 4 }));
    assert_eq!(read_events(whole.trim_end_matches('}')), Usage::Unknown);
    assert_eq!(read_json(r#"{"usage":{"prompt_tokens":3,"completion_tokens":4}"#), Usage::Unknown);
}

#[test]
fn complete_items_of_a_json_stream_count() {
    let item = r#"{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":9}}"#;
    let exact = Usage::Exact(TokenUsage { input: 4, output: 9 });
    for text in [format!("[{item}"), format!("[{item},{{\"candid"), format!("[{item},null,[1],2]")]
    {
        assert_eq!(read_json(&text), exact, "{text}");
    }
    assert_eq!(read_json(&format!("[[{item}]")), exact);
}
