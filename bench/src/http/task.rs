//! Parameters of the HTTP load generator, and their command line.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Outcome;
use crate::load_mode::LoadMode;

/// Template of the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// The path.
    pub path: String,
    /// The body with placeholders; see [`super::request`].
    pub body: String,
    /// Random key numbers are below this.
    pub keys: u32,
    /// Random rule numbers are below this.
    pub rules: u32,
}

/// One run of the load generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Address of the server.
    pub address: SocketAddr,
    /// Process id of the server, to read its CPU time.
    pub server: u32,
    /// Connections, each with one request in flight.
    pub connections: u32,
    /// The requests.
    pub requests: RequestSpec,
    /// Fill or timed run.
    pub mode: LoadMode,
}

/// The positional arguments.
pub const OPTIONS: &str =
    "ADDRESS SERVER_PID CONNECTIONS PATH BODY KEYS RULES fill | … timed WARM_UP_MS WINDOW_MS";

impl Task {
    /// Formats the task as command-line arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let RequestSpec { path, body, keys, rules } = &self.requests;
        let mut arguments = vec![
            self.address.to_string(),
            self.server.to_string(),
            self.connections.to_string(),
            path.clone(),
            body.clone(),
            keys.to_string(),
            rules.to_string(),
        ];
        match self.mode {
            LoadMode::Fill => arguments.push("fill".to_owned()),
            LoadMode::Timed { warm_up, window } => {
                arguments.push("timed".to_owned());
                arguments.extend([warm_up, window].map(|time| time.as_millis().to_string()));
            }
        }
        arguments
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// The arguments do not match [`OPTIONS`].
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let [address, server, connections, path, body, keys, rules, mode @ ..] = arguments else {
            return Err(OPTIONS.into());
        };
        let requests = RequestSpec {
            path: path.clone(),
            body: body.clone(),
            keys: positive(keys)?,
            rules: positive(rules)?,
        };
        Ok(Self {
            address: address.parse()?,
            server: server.parse()?,
            connections: positive(connections)?,
            requests,
            mode: parse_mode(mode)?,
        })
    }
}

fn parse_mode(arguments: &[String]) -> Outcome<LoadMode> {
    let millis = |text: &str| Outcome::Ok(Duration::from_millis(text.parse()?));
    match arguments {
        [fill] if fill == "fill" => Ok(LoadMode::Fill),
        [timed, warm_up, window] if timed == "timed" => {
            Ok(LoadMode::Timed { warm_up: millis(warm_up)?, window: millis(window)? })
        }
        _ => Err(OPTIONS.into()),
    }
}

fn positive(text: &str) -> Outcome<u32> {
    let number = text.parse()?;
    if number == 0 { Err("must be at least 1".into()) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(mode: LoadMode) -> Task {
        let requests = RequestSpec {
            path: "/check".to_owned(),
            body: r#"{"key":"user:%k"}"#.to_owned(),
            keys: 1000,
            rules: 1,
        };
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        Task { address, server: 42, connections: 50, requests, mode }
    }

    #[test]
    fn task_arguments_round_trip() {
        let timed =
            LoadMode::Timed { warm_up: Duration::from_millis(200), window: Duration::from_secs(5) };
        for mode in [LoadMode::Fill, timed] {
            assert_eq!(Task::parse(&task(mode).arguments()).unwrap(), task(mode));
        }
    }

    #[test]
    fn rejects_invalid_arguments() {
        let complete = task(LoadMode::Fill).arguments();
        assert!(Task::parse(&complete[..complete.len() - 1]).is_err());
        for (place, text) in [(0, "nowhere"), (2, "0"), (5, "0"), (6, "-1"), (7, "empty")] {
            let mut changed = complete.clone();
            changed[place] = text.to_owned();
            assert!(Task::parse(&changed).is_err(), "{changed:?}");
        }
    }
}
