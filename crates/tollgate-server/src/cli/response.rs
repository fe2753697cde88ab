//! Answers as a person reads them: what the command line shows of a service's JSON.

use serde::Deserialize;

/// What is said of an answer that the shared store had no part in.
const ALONE: &str = "the store is lost, this node decides alone";

/// An answer of /check.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    pub(super) allowed: bool,
    degraded: bool,
    verdict: String,
    rule: String,
    limit: Option<u64>,
    burst: Option<u64>,
    share: Option<u64>,
    remaining: Option<u64>,
    retry_after: Option<f64>,
    reset_after_ms: Option<u64>,
    limits: Vec<ToldLimit>,
}

#[derive(Debug, Deserialize)]
struct ToldLimit {
    rule: String,
    name: String,
    mode: String,
    allowed: bool,
    remaining: u64,
    reset_after_ms: u64,
}

/// An answer of /explain.
#[derive(Debug, Deserialize)]
pub(super) struct ExplainReply {
    answer: Told,
    rules: Vec<TriedRule>,
    takes: Vec<ToldTake>,
}

#[derive(Debug, Deserialize)]
struct TriedRule {
    rule: String,
    because: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToldTake {
    key: String,
    algorithm: String,
    numbers: ToldNumbers,
    mode: String,
    cost: u64,
}

#[derive(Debug, Deserialize)]
struct ToldNumbers {
    limit: u64,
    window_ms: Option<u64>,
    ttl_ms: Option<u64>,
}

/// Why a service did not answer.
#[derive(Debug, Deserialize)]
pub(super) struct ToldProblem {
    pub(super) detail: String,
}

impl Told {
    /// The answer in a line.
    pub(super) fn sentence(&self) -> String {
        let rule = &self.rule;
        let by = match self.deciding() {
            Some(limit) => format!("rule {rule}, limit {}", limit.name),
            None => format!("rule {rule}"),
        };
        let by = if self.degraded { format!("{by}; degraded: {ALONE}") } else { by };
        match (self.verdict.as_str(), self.remaining, self.retry_after) {
            ("allow", Some(left), _) => {
                let whole = self.share.or(self.burst).or(self.limit).unwrap_or(left);
                format!("allowed: {left} of {whole} left ({by})")
            }
            ("allow", None, _) => format!("allowed: no limit ({by})"),
            (_, _, Some(seconds)) => format!("refused: retry in {seconds} s ({by})"),
            _ => format!("refused: it never fits, waiting will not help ({by})"),
        }
    }

    /// The limit whose figures stand at the top.
    fn deciding(&self) -> Option<&ToldLimit> {
        self.limits.iter().find(|limit| {
            limit.mode == "enforce"
                && limit.rule == self.rule
                && limit.allowed == self.allowed
                && Some(limit.remaining) == self.remaining
                && Some(limit.reset_after_ms) == self.reset_after_ms
        })
    }
}

impl ExplainReply {
    /// The explanation in lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let rules = self.rules.iter().map(|tried| match &tried.because {
            Some(because) => format!("  {}: no match: {because}", tried.rule),
            None => format!("  {}: matched", tried.rule),
        });
        let takes = self.takes.iter().map(ToldTake::sentence);
        rules.chain(takes).chain([self.answer.sentence()]).collect()
    }
}

impl ToldTake {
    fn sentence(&self) -> String {
        let Self { key, algorithm, numbers, mode, cost } = self;
        let limit = numbers.limit;
        let window = match (numbers.window_ms, numbers.ttl_ms) {
            (Some(window), _) => format!(" per {window} ms"),
            (None, Some(ttl)) => format!(" at once, {ttl} ms each"),
            (None, None) => String::new(),
        };
        format!("takes {cost} from {key}: {limit}{window}, {algorithm}, {mode}")
    }
}
