//! Figures of one event, and of a response so far.

use std::num::NonZero;

use super::tokens::{TokenUsage, Usage};

/// The kinds of figures that providers report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// All input tokens.
    Prompt,
    /// Input tokens of Anthropic without cached ones, or all of OpenAI's Responses API.
    Input,
    CacheCreation,
    CacheRead,
    /// Input tokens of tool results (Gemini), not part of the prompt.
    ToolPrompt,
    Output,
    /// Output tokens of reasoning that are not part of the output (Gemini).
    Thoughts,
    Total,
}

/// The latest value of each figure, and the length of text that none of them covers yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Figures {
    prompt: Option<u64>,
    input: Option<u64>,
    cache_creation: Option<u64>,
    cache_read: Option<u64>,
    tool_prompt: Option<u64>,
    output: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
    text_bytes: u64,
}

impl Figures {
    pub(super) const fn set(&mut self, figure: Figure, value: u64) {
        let field = match figure {
            Figure::Prompt => &mut self.prompt,
            Figure::Input => &mut self.input,
            Figure::CacheCreation => &mut self.cache_creation,
            Figure::CacheRead => &mut self.cache_read,
            Figure::ToolPrompt => &mut self.tool_prompt,
            Figure::Output => &mut self.output,
            Figure::Thoughts => &mut self.thoughts,
            Figure::Total => &mut self.total,
        };
        *field = Some(value);
    }

    pub(super) fn add_text(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.text_bytes = self.text_bytes.saturating_add(bytes);
    }

    /// Adds the figures of the next event. Its output covers all text so far, unless it is 0, which some providers send in
    /// every event but the last. Thoughts are not text.
    pub(super) fn add_event(&mut self, event: Self) {
        let text_bytes = match event.output {
            None | Some(0) => self.text_bytes.saturating_add(event.text_bytes),
            Some(_) => 0,
        };
        *self = Self {
            prompt: event.prompt.or(self.prompt),
            input: event.input.or(self.input),
            cache_creation: event.cache_creation.or(self.cache_creation),
            cache_read: event.cache_read.or(self.cache_read),
            tool_prompt: event.tool_prompt.or(self.tool_prompt),
            output: event.output.or(self.output),
            thoughts: event.thoughts.or(self.thoughts),
            total: event.total.or(self.total),
            text_bytes,
        };
    }

    /// Returns the input tokens. Cached tokens are added to Anthropic's input only: a prompt includes them, also where a
    /// gateway translates Anthropic's fields and keeps them.
    fn input(&self) -> Option<u64> {
        match self.prompt {
            Some(_) => sum([self.prompt, self.tool_prompt]),
            None => sum([self.input, self.cache_creation, self.cache_read]),
        }
    }

    /// Returns the output tokens. Some providers count reasoning in the total only.
    fn output(&self) -> Option<u64> {
        let rest = self.total.zip(self.input()).map(|(total, input)| total.saturating_sub(input));
        sum([self.output, self.thoughts]).max(rest)
    }

    pub(super) fn usage(&self, bytes_per_token: NonZero<u64>) -> Usage {
        let estimate = self.text_bytes.div_ceil(bytes_per_token.get());
        match (self.input(), self.output(), estimate) {
            (None, None, 0) => Usage::Unknown,
            (Some(input), output, 0) => {
                Usage::Exact(TokenUsage { input, output: output.unwrap_or(0) })
            }
            (input, output, estimate) => {
                let output = output.unwrap_or(0).saturating_add(estimate);
                Usage::Estimated { input, output }
            }
        }
    }
}

/// Returns the sum of the known values; `None` if none is known.
fn sum<const N: usize>(values: [Option<u64>; N]) -> Option<u64> {
    values.into_iter().flatten().reduce(u64::saturating_add)
}
