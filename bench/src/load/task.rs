//! Parameters of the load generator, and their command line.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Outcome;
use crate::load_mode::LoadMode;

/// The requests of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// The protocol and its parameters.
    pub protocol: Vec<String>,
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
    /// Number of connections.
    pub connections: u32,
    /// Requests in flight on each connection.
    pub in_flight: u32,
    /// The requests.
    pub requests: RequestSpec,
    /// Fill or timed run.
    pub mode: LoadMode,
}

/// The positional arguments.
pub const OPTIONS: &str = "ADDRESS SERVER_PID CONNECTIONS IN_FLIGHT KEYS RULES fill|timed WARM_UP_MS WINDOW_MS \
     PROTOCOL PARAMETERS…";

impl Task {
    /// Formats the task as command-line arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let RequestSpec { protocol, keys, rules } = &self.requests;
        let mut arguments = vec![
            self.address.to_string(),
            self.server.to_string(),
            self.connections.to_string(),
            self.in_flight.to_string(),
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
        arguments.extend_from_slice(protocol);
        arguments
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// The arguments do not match [`OPTIONS`].
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let [address, server, connections, in_flight, keys, rules, rest @ ..] = arguments else {
            return Err(OPTIONS.into());
        };
        let (mode, protocol) = parse_mode(rest)?;
        let requests = RequestSpec {
            protocol: protocol.to_vec(),
            keys: positive(keys)?,
            rules: positive(rules)?,
        };
        Ok(Self {
            address: address.parse()?,
            server: server.parse()?,
            connections: positive(connections)?,
            in_flight: positive(in_flight)?,
            requests,
            mode,
        })
    }
}

/// Parses the mode and returns the arguments after it.
fn parse_mode(arguments: &[String]) -> Outcome<(LoadMode, &[String])> {
    let millis = |text: &str| Outcome::Ok(Duration::from_millis(text.parse()?));
    match arguments {
        [fill, rest @ ..] if fill == "fill" => Ok((LoadMode::Fill, rest)),
        [timed, warm_up, window, rest @ ..] if timed == "timed" => {
            Ok((LoadMode::Timed { warm_up: millis(warm_up)?, window: millis(window)? }, rest))
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
        let protocol = ["http", "/check", "{}"].map(str::to_owned).to_vec();
        let requests = RequestSpec { protocol, keys: 1000, rules: 1 };
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        Task { address, server: 42, connections: 50, in_flight: 16, requests, mode }
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
        assert!(Task::parse(&complete[..6]).is_err());
        for (place, text) in
            [(0, "nowhere"), (2, "0"), (3, "0"), (4, "0"), (5, "-1"), (6, "empty"), (6, "timed")]
        {
            let mut changed = complete.clone();
            changed[place] = text.to_owned();
            assert!(Task::parse(&changed).is_err(), "{changed:?}");
        }
    }
}
