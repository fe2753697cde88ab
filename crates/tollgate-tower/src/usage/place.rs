//! Where in a JSON response usage figures and streamed text are.

use super::figures::Figure;

/// The meaning of a value, by its path. Lists have the meaning of their items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A response, or one event of a streamed response.
    Event,
    /// What an event contains its usage in: the message of Anthropic, the response of OpenAI.
    Envelope,
    /// The usage of OpenAI and Anthropic.
    Usage,
    /// The usage of Gemini.
    UsageMetadata,
    /// A choice of OpenAI.
    Choice,
    /// A part of a message of OpenAI or Anthropic, or the whole message of a choice.
    Delta,
    ToolCall,
    Function,
    /// A candidate of Gemini.
    Candidate,
    /// A list of parts.
    Content,
    Part,
    /// Generated text.
    Text,
    Figure(Figure),
    /// Neither usage nor text.
    Other,
}

impl Place {
    /// Returns the place of a field of an object at this place.
    pub(super) const fn field(self, name: &[u8]) -> Self {
        match self {
            Self::Event => Self::field_of_event(name),
            Self::Envelope => match name {
                b"usage" => Self::Usage,
                _ => Self::Other,
            },
            Self::Usage => Self::field_of_usage(name),
            Self::UsageMetadata => Self::field_of_usage_metadata(name),
            _ => self.field_of_text(name),
        }
    }

    const fn field_of_event(name: &[u8]) -> Self {
        match name {
            b"usage" => Self::Usage,
            b"usageMetadata" => Self::UsageMetadata,
            b"message" | b"response" => Self::Envelope,
            b"choices" => Self::Choice,
            // A text in the Responses API.
            b"delta" => Self::Delta,
            b"candidates" => Self::Candidate,
            // Of a message of Anthropic that is not streamed.
            b"content" => Self::Part,
            // Of a response of OpenAI that is not streamed.
            b"output" => Self::Content,
            _ => Self::Other,
        }
    }

    const fn field_of_usage(name: &[u8]) -> Self {
        Self::Figure(match name {
            b"prompt_tokens" => Figure::Prompt,
            b"input_tokens" => Figure::Input,
            b"cache_creation_input_tokens" => Figure::CacheCreation,
            b"cache_read_input_tokens" => Figure::CacheRead,
            b"completion_tokens" | b"output_tokens" => Figure::Output,
            b"total_tokens" => Figure::Total,
            _ => return Self::Other,
        })
    }

    const fn field_of_usage_metadata(name: &[u8]) -> Self {
        Self::Figure(match name {
            b"promptTokenCount" => Figure::Prompt,
            b"toolUsePromptTokenCount" => Figure::ToolPrompt,
            b"candidatesTokenCount" => Figure::Output,
            b"thoughtsTokenCount" => Figure::Thoughts,
            b"totalTokenCount" => Figure::Total,
            _ => return Self::Other,
        })
    }

    const fn field_of_text(self, name: &[u8]) -> Self {
        match (self, name) {
            (Self::Choice, b"delta" | b"message") => Self::Delta,
            (Self::Delta, b"content" | b"refusal" | b"reasoning" | b"reasoning_content")
            | (Self::Delta, b"text" | b"thinking" | b"partial_json")
            | (Self::Choice | Self::Part | Self::Text, b"text")
            | (Self::Function, b"arguments") => Self::Text,
            (Self::Delta, b"tool_calls") => Self::ToolCall,
            (Self::Delta, b"function_call") | (Self::ToolCall, b"function") => Self::Function,
            (Self::Candidate, b"content") => Self::Content,
            (Self::Content, b"parts" | b"content") => Self::Part,
            _ => Self::Other,
        }
    }

    /// Returns the place of the items of a list at this place.
    pub(super) const fn item(self) -> Self {
        match self {
            Self::Event
            | Self::Choice
            | Self::ToolCall
            | Self::Candidate
            | Self::Content
            | Self::Part
            | Self::Text => self,
            _ => Self::Other,
        }
    }

    /// Returns whether a string at this place is generated text.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Delta)
    }
}
