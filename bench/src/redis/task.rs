//! Parameters of the Redis load generator, and their command line.

use std::time::Duration;

use super::limits::Limits;
use super::method::Method;
use crate::Outcome;
use crate::load_mode::LoadMode;

/// Reply timeout of all callers. Long enough that a short stall of the machine shows as latency and
/// not as an error.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Keys and limits of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSpec {
    /// Number of keys.
    pub keys: u32,
    /// Number of the first key. Runs with disjoint ranges do not share keys.
    pub first: u32,
    /// The limits.
    pub limits: Limits,
    /// Burst of each limit. Nothing refills during a run.
    pub burst: u32,
}

/// One run of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// URL of the server, or of all nodes of a cluster. They must run on this machine.
    pub url: String,
    /// The method of access.
    pub method: Method,
    /// Number of concurrent callers, each with one decision in flight.
    pub callers: u32,
    /// The requests.
    pub requests: RequestSpec,
    /// Fill or timed run.
    pub mode: LoadMode,
}

/// The options, with their defaults last.
pub const OPTIONS: &str = "--url redis://HOST:PORT|redis+cluster://HOST:PORT,… [--callers 64] [--seconds 5 | --fill] [--warm-up 1] \
    [--keys 100000] [--first 0] [--burst NUMBER] \
    [--algorithm sliding_window|sliding_counter|fixed_window|two_limits|five_limits|two_subjects|refilling_bucket|token_bucket] \
    [--way remembering|leasing|multiplexed|pool|cell|tollgate]";

impl Task {
    /// Formats the task as command-line arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let RequestSpec { keys, first, limits, burst } = self.requests;
        let mut pairs = vec![
            ("--url", self.url.clone()),
            ("--way", self.method.name().to_owned()),
            ("--callers", self.callers.to_string()),
            ("--keys", keys.to_string()),
            ("--first", first.to_string()),
            ("--algorithm", limits.name().to_owned()),
            ("--burst", burst.to_string()),
        ];
        if let LoadMode::Timed { warm_up, window } = self.mode {
            pairs.push(("--warm-up", warm_up.as_secs_f64().to_string()));
            pairs.push(("--seconds", window.as_secs_f64().to_string()));
        }
        let fill = (self.mode == LoadMode::Fill).then(|| "--fill".to_owned());
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).chain(fill).collect()
    }

    /// Returns the URL of each server.
    pub(super) fn servers(&self) -> impl Iterator<Item = String> {
        let nodes = self.url.strip_prefix("redis+cluster://").unwrap_or_default().split(',');
        let nodes = nodes.filter(|node| !node.is_empty()).map(|node| format!("redis://{node}"));
        let one = self.url.starts_with("redis://").then(|| self.url.clone());
        nodes.chain(one)
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// The arguments do not match [`OPTIONS`].
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Outcome<Self> {
        let limits = Limits::TokenBucket;
        let requests = RequestSpec { keys: 100_000, first: 0, limits, burst: limits.ample_burst() };
        let mut task = Self {
            url: String::new(),
            method: Method::Tollgate,
            callers: 64,
            requests,
            mode: LoadMode::Fill,
        };
        let (mut warm_up, mut window) = (Duration::from_secs(1), Duration::from_secs(5));
        let (mut is_timed, mut burst) = (true, None);
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            if name == "--fill" {
                is_timed = false;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--url" => task.url = value,
                "--way" => task.method = Method::parse(&value)?,
                "--callers" => task.callers = positive(&value)?,
                "--keys" => task.requests.keys = positive(&value)?,
                "--first" => task.requests.first = value.parse()?,
                "--algorithm" => task.requests.limits = Limits::parse(&value)?,
                "--burst" => burst = Some(positive(&value)?),
                "--warm-up" => warm_up = Duration::try_from_secs_f64(value.parse()?)?,
                "--seconds" => window = Duration::try_from_secs_f64(value.parse()?)?,
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        if task.url.is_empty() {
            return Err("--url is missing".into());
        }
        task.requests.burst = burst.unwrap_or_else(|| task.requests.limits.ample_burst());
        if is_timed {
            task.mode = LoadMode::Timed { warm_up, window };
        }
        Ok(task)
    }
}

fn positive(text: &str) -> Outcome<u32> {
    let number = text.parse()?;
    if number == 0 { Err("must be at least 1".into()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn task_arguments_round_trip() {
        let timed =
            LoadMode::Timed { warm_up: Duration::from_millis(200), window: Duration::from_secs(5) };
        for mode in [LoadMode::Fill, timed] {
            let requests = RequestSpec { keys: 7, first: 3, limits: Limits::TwoLimits, burst: 2 };
            let url = "redis://127.0.0.1:7000".to_owned();
            let task = Task { url, method: Method::Pool, callers: 9, requests, mode };
            assert_eq!(Task::parse(task.arguments()).unwrap(), task);
        }
    }

    #[test]
    fn cluster_url_lists_every_node() {
        for (url, servers) in [
            ("redis://a:1", vec!["redis://a:1"]),
            ("redis+cluster://a:1", vec!["redis://a:1"]),
            ("redis+cluster://a:1,b:2", vec!["redis://a:1", "redis://b:2"]),
        ] {
            let task = Task::parse(words(&format!("--url {url}"))).unwrap();
            assert_eq!(task.servers().collect::<Vec<_>>(), servers);
        }
    }

    #[test]
    fn only_url_is_required() {
        let task = Task::parse(words("--url redis://127.0.0.1:7000")).unwrap();
        assert_eq!(
            (task.callers, task.method, task.requests.keys),
            (64, Method::Tollgate, 100_000)
        );
        for (line, message) in [
            ("", "--url is missing"),
            ("--url", "--url needs a value"),
            ("--callers 0", "must be at least 1"),
            ("--way post", "unknown --way post"),
            ("--algorithm none", "unknown --algorithm none"),
            ("--slow down", "unknown option --slow"),
        ] {
            let error = Task::parse(words(line)).unwrap_err().to_string();
            assert!(error.contains(message), "{line}: {error}");
        }
    }
}
