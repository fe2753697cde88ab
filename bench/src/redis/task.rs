//! What the load on Redis is told to do, and how it is told.

use std::time::Duration;

use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::work::Work;

/// Nobody gives up on an answer sooner: a machine that stands still for a moment is a figure, not a
/// failure.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Which keys ask, and what they may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// How many keys are drawn from.
    pub keys: u32,
    /// The number of the first: others are not the keys of another run.
    pub first: u32,
    /// Under which limits.
    pub limits: Limits,
    /// How much a key may have at once. Nothing comes back within a run.
    pub burst: u32,
}

/// One run of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The server, or all nodes of a cluster. They run on this machine.
    pub url: String,
    /// How it is asked.
    pub way: Way,
    /// Tasks of one process, each with one decision under way.
    pub callers: u32,
    /// What they ask.
    pub ask: Ask,
    /// How long.
    pub work: Work,
}

/// The options, with their defaults last.
pub const OPTIONS: &str = "--url redis://HOST:PORT|redis+cluster://HOST:PORT,… [--callers 64] [--seconds 5 | --fill] [--warm-up 1] \
    [--keys 100000] [--first 0] [--burst PLENTY] \
    [--algorithm sliding_window|sliding_counter|fixed_window|two_limits|two_subjects|token_bucket] \
    [--way remembering|multiplexed|pool|cell|tollgate]";

impl Task {
    /// As arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let Ask { keys, first, limits, burst } = self.ask;
        let mut pairs = vec![
            ("--url", self.url.clone()),
            ("--way", self.way.name().to_owned()),
            ("--callers", self.callers.to_string()),
            ("--keys", keys.to_string()),
            ("--first", first.to_string()),
            ("--algorithm", limits.name().to_owned()),
            ("--burst", burst.to_string()),
        ];
        if let Work::Timed { warm_up, window } = self.work {
            pairs.push(("--warm-up", warm_up.as_secs_f64().to_string()));
            pairs.push(("--seconds", window.as_secs_f64().to_string()));
        }
        let fill = (self.work == Work::Fill).then(|| "--fill".to_owned());
        pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).chain(fill).collect()
    }

    /// The addresses of each server by itself.
    pub(super) fn servers(&self) -> impl Iterator<Item = String> {
        let nodes = self.url.strip_prefix("redis+cluster://").unwrap_or_default().split(',');
        let nodes = nodes.filter(|node| !node.is_empty()).map(|node| format!("redis://{node}"));
        let one = self.url.starts_with("redis://").then(|| self.url.clone());
        nodes.chain(one)
    }

    /// From arguments.
    ///
    /// # Errors
    /// Arguments that are not [`OPTIONS`], and what is wrong with them.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Outcome<Self> {
        let limits = Limits::TokenBucket;
        let ask = Ask { keys: 100_000, first: 0, limits, burst: limits.plenty() };
        let mut task =
            Self { url: String::new(), way: Way::Tollgate, callers: 64, ask, work: Work::Fill };
        let (mut warm_up, mut window) = (Duration::from_secs(1), Duration::from_secs(5));
        let (mut is_timed, mut burst) = (true, None);
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            if name == "--fill" {
                is_timed = false;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} wants a value"))?;
            match name.as_str() {
                "--url" => task.url = value,
                "--way" => task.way = Way::named(&value)?,
                "--callers" => task.callers = positive(&value)?,
                "--keys" => task.ask.keys = positive(&value)?,
                "--first" => task.ask.first = value.parse()?,
                "--algorithm" => task.ask.limits = Limits::named(&value)?,
                "--burst" => burst = Some(positive(&value)?),
                "--warm-up" => warm_up = Duration::try_from_secs_f64(value.parse()?)?,
                "--seconds" => window = Duration::try_from_secs_f64(value.parse()?)?,
                _ => return Err(format!("there is no {name}").into()),
            }
        }
        if task.url.is_empty() {
            return Err("--url is missing".into());
        }
        task.ask.burst = burst.unwrap_or_else(|| task.ask.limits.plenty());
        if is_timed {
            task.work = Work::Timed { warm_up, window };
        }
        Ok(task)
    }
}

fn positive(text: &str) -> Outcome<u32> {
    let number = text.parse()?;
    if number == 0 { Err("none is too few".into()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_task_is_understood_as_it_is_told() {
        let timed =
            Work::Timed { warm_up: Duration::from_millis(200), window: Duration::from_secs(5) };
        for work in [Work::Fill, timed] {
            let ask = Ask { keys: 7, first: 3, limits: Limits::TwoLimits, burst: 2 };
            let url = "redis://127.0.0.1:7000".to_owned();
            let task = Task { url, way: Way::Pool, callers: 9, ask, work };
            assert_eq!(Task::parse(task.arguments()).unwrap(), task);
        }
    }

    #[test]
    fn every_node_of_a_cluster_is_a_server() {
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
    fn only_the_server_must_be_named() {
        let task = Task::parse(words("--url redis://127.0.0.1:7000")).unwrap();
        assert_eq!((task.callers, task.way, task.ask.keys), (64, Way::Tollgate, 100_000));
        for (line, complaint) in [
            ("", "--url is missing"),
            ("--url", "--url wants a value"),
            ("--callers 0", "none is too few"),
            ("--way post", "no way of asking"),
            ("--algorithm none", "no algorithm"),
            ("--slow down", "there is no --slow"),
        ] {
            let error = Task::parse(words(line)).unwrap_err().to_string();
            assert!(error.contains(complaint), "{line}: {error}");
        }
    }
}
