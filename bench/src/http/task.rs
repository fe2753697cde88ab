//! What the load generator is told to do, and how it is told.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Outcome;
use crate::work::Work;

/// What requests are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Where to.
    pub path: String,
    /// With places for numbers: see [`super::request`].
    pub body: String,
    /// Keys are drawn below this.
    pub keys: u32,
    /// Rules are drawn below this.
    pub rules: u32,
}

/// One run of the load generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Who is asked.
    pub address: SocketAddr,
    /// The process whose time is read.
    pub server: u32,
    /// Sockets, each with one request on its way.
    pub connections: u32,
    /// What is asked.
    pub ask: Ask,
    /// How long.
    pub work: Work,
}

/// The arguments in the order they are given.
pub const OPTIONS: &str =
    "ADDRESS SERVER_PID CONNECTIONS PATH BODY KEYS RULES fill | … timed WARM_UP_MS WINDOW_MS";

impl Task {
    /// As arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let Ask { path, body, keys, rules } = &self.ask;
        let mut arguments = vec![
            self.address.to_string(),
            self.server.to_string(),
            self.connections.to_string(),
            path.clone(),
            body.clone(),
            keys.to_string(),
            rules.to_string(),
        ];
        match self.work {
            Work::Fill => arguments.push("fill".to_owned()),
            Work::Timed { warm_up, window } => {
                arguments.push("timed".to_owned());
                arguments.extend([warm_up, window].map(|time| time.as_millis().to_string()));
            }
        }
        arguments
    }

    /// From arguments.
    ///
    /// # Errors
    /// Arguments that are not [`OPTIONS`].
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let [address, server, connections, path, body, keys, rules, work @ ..] = arguments else {
            return Err(OPTIONS.into());
        };
        let ask = Ask {
            path: path.clone(),
            body: body.clone(),
            keys: positive(keys)?,
            rules: positive(rules)?,
        };
        Ok(Self {
            address: address.parse()?,
            server: server.parse()?,
            connections: positive(connections)?,
            ask,
            work: work_of(work)?,
        })
    }
}

fn work_of(arguments: &[String]) -> Outcome<Work> {
    let millis = |text: &str| Outcome::Ok(Duration::from_millis(text.parse()?));
    match arguments {
        [fill] if fill == "fill" => Ok(Work::Fill),
        [timed, warm_up, window] if timed == "timed" => {
            Ok(Work::Timed { warm_up: millis(warm_up)?, window: millis(window)? })
        }
        _ => Err(OPTIONS.into()),
    }
}

fn positive(text: &str) -> Outcome<u32> {
    let number = text.parse()?;
    if number == 0 { Err("none is too few".into()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(work: Work) -> Task {
        let ask = Ask {
            path: "/check".to_owned(),
            body: r#"{"key":"user:%k"}"#.to_owned(),
            keys: 1000,
            rules: 1,
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        Task { address, server: 42, connections: 50, ask, work }
    }

    #[test]
    fn a_task_is_understood_as_it_is_told() {
        let timed =
            Work::Timed { warm_up: Duration::from_millis(200), window: Duration::from_secs(5) };
        for work in [Work::Fill, timed] {
            assert_eq!(Task::parse(&task(work).arguments()).unwrap(), task(work));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let whole = task(Work::Fill).arguments();
        assert!(Task::parse(&whole[..whole.len() - 1]).is_err());
        for (place, text) in [(0, "nowhere"), (2, "0"), (5, "0"), (6, "-1"), (7, "empty")] {
            let mut changed = whole.clone();
            changed[place] = text.to_owned();
            assert!(Task::parse(&changed).is_err(), "{changed:?}");
        }
    }
}
