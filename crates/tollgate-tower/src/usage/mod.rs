//! Token usage of LLM responses: OpenAI (chat completions, completions, embeddings and responses), Anthropic and Gemini,
//! as JSON or streamed as server-sent events, and everything compatible with them.
//!
//! [`UsageBody`] wraps a response body: it passes all frames through unchanged and at once, and calls a function with
//! the [`Usage`] when the body ends, fails or is dropped. [`UsageReader`] is the parser alone.
//!
//! ```
//! use tollgate_tower::usage::{TokenUsage, Usage, UsageReader};
//!
//! let mut reader = UsageReader::event_stream();
//! reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choi");
//! reader.push(b"ces\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n");
//! assert_eq!(reader.finish(), Usage::Exact(TokenUsage { input: 9, output: 1 }));
//! ```
//!
//! # What is counted
//! | provider | `input` | `output` |
//! |---|---|---|
//! | OpenAI | `prompt_tokens` or `input_tokens`, which include cached tokens | `completion_tokens` or `output_tokens`, which include reasoning tokens |
//! | Anthropic | `input_tokens` + `cache_creation_input_tokens` + `cache_read_input_tokens` | `output_tokens`, which include thinking tokens |
//! | Gemini | `promptTokenCount`, which includes cached tokens, + `toolUsePromptTokenCount` | `candidatesTokenCount` + `thoughtsTokenCount` |
//!
//! If the total is larger than `input` and `output` together, the rest is output: some providers, such as xAI, count
//! reasoning tokens there only. Figures in a stream are cumulative: the last one counts.
//! Numbers that are not integers from 0 to 2^53 are ignored.
//!
//! A stream can end early, because the client disconnects or the provider fails, and OpenAI reports usage only if the
//! request has `stream_options: {"include_usage": true}`. The text streamed after the last output figure is then
//! [estimated](Usage::Estimated) as one token per 4 bytes. Tokens that are not streamed, such as hidden
//! reasoning, are missing from the estimate.
//!
//! The reader needs constant memory, however long a response, an event or a line is: it parses byte by byte and
//! buffers none of them. Events that are not valid JSON are ignored. Compressed bodies are not read.

mod body;
mod event_stream;
mod figures;
mod json;
mod number;
mod place;
mod reader;
mod tokens;

pub use body::UsageBody;
pub use reader::UsageReader;
pub use tokens::{TokenUsage, Usage};
