//! The result of reading a response.

/// Number of tokens of one request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokenUsage {
    /// Tokens of the prompt, including cached ones.
    pub input: u64,
    /// Tokens of the response, including reasoning.
    pub output: u64,
}

impl TokenUsage {
    /// Returns input and output together, at most `u64::MAX`.
    ///
    /// ```
    /// use tollgate_tower::usage::TokenUsage;
    ///
    /// assert_eq!(TokenUsage { input: 9, output: 3 }.total(), 12);
    /// ```
    #[must_use]
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the amounts by name, `input` and `output`, as the prices of a policy expect them.
    ///
    /// ```
    /// use tollgate_tower::usage::TokenUsage;
    ///
    /// let usage = TokenUsage { input: 9, output: 3 };
    /// assert_eq!(usage.amounts(), [("input", 9), ("output", 3)]);
    /// ```
    #[must_use]
    pub const fn amounts(self) -> [(&'static str, u64); 2] {
        [("input", self.input), ("output", self.output)]
    }
}

/// Token usage of one response, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Usage {
    /// The figures that the provider reported, which cover all text of the response.
    Exact(TokenUsage),
    /// The provider reported no figures, or the stream ended before the last ones.
    Estimated {
        /// Tokens of the prompt; `None` if the response did not report them.
        input: Option<u64>,
        /// The reported tokens of the response, plus an estimate for the text that they do not cover.
        output: u64,
    },
    /// The response has neither figures nor text: an error, another format, or JSON that is invalid or incomplete.
    Unknown,
}

impl Usage {
    /// Returns whether a figure is missing or estimated. Also false if the usage is unknown.
    #[must_use]
    pub const fn is_estimated(self) -> bool {
        matches!(self, Self::Estimated { .. })
    }

    /// Returns the tokens, with `input` in place of input tokens that were not reported; `None` if the usage is unknown.
    ///
    /// ```
    /// use tollgate_tower::usage::{TokenUsage, Usage};
    ///
    /// let usage = Usage::Estimated { input: None, output: 3 };
    /// assert_eq!(usage.tokens_or(9), Some(TokenUsage { input: 9, output: 3 }));
    /// assert_eq!(Usage::Unknown.tokens_or(9), None);
    /// ```
    #[must_use]
    pub fn tokens_or(self, input: u64) -> Option<TokenUsage> {
        match self {
            Self::Exact(tokens) => Some(tokens),
            Self::Estimated { input: reported, output } => {
                Some(TokenUsage { input: reported.unwrap_or(input), output })
            }
            Self::Unknown => None,
        }
    }
}
