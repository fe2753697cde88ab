//! The compared commands.

use crate::Outcome;
use crate::http::policy::{BURST, PERIOD_SECONDS};
use crate::load::template::KEY;

/// A command for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `CL.THROTTLE` of redis-cell.
    ClThrottle,
    /// `THROTTLE` of throttlecrab.
    Throttle,
    /// `INCR` of Redis.
    Incr,
}

impl Command {
    const ALL: [Self; 3] = [Self::ClThrottle, Self::Throttle, Self::Incr];

    /// Returns the name of the command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClThrottle => "CL.THROTTLE",
            Self::Throttle => "THROTTLE",
            Self::Incr => "INCR",
        }
    }

    /// Returns the command with this name.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(name: &str) -> Outcome<Self> {
        let command = Self::ALL.into_iter().find(|command| command.name() == name);
        command.ok_or_else(|| format!("unknown command {name}").into())
    }

    /// Returns the request with the placeholder of the key.
    #[must_use]
    pub fn request(self) -> Vec<u8> {
        let key = format!("user:{KEY}");
        let [burst, period] = [BURST, PERIOD_SECONDS].map(|number| number.to_string());
        let words = match self {
            Self::ClThrottle | Self::Throttle => vec![self.name(), &key, &burst, "1", &period],
            Self::Incr => vec![self.name(), &key],
        };
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        request.into_bytes()
    }

    /// Returns the start of a reply that allows the request.
    #[must_use]
    pub const fn allowed(self) -> &'static [u8] {
        match self {
            Self::ClThrottle => b"*5\r\n:0\r\n",
            Self::Throttle => b"*5\r\n:1\r\n",
            Self::Incr => b":",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for command in Command::ALL {
            assert_eq!(Command::parse(command.name()).unwrap(), command);
        }
        assert_eq!(Command::parse("GET").unwrap_err().to_string(), "unknown command GET");
    }

    #[test]
    fn requests_are_arrays_of_strings() {
        let text = |command: Command| String::from_utf8(command.request()).unwrap();
        assert_eq!(text(Command::Incr), "*2\r\n$4\r\nINCR\r\n$13\r\nuser:<key-no>\r\n");
        assert!(text(Command::ClThrottle).starts_with("*5\r\n$11\r\nCL.THROTTLE\r\n$13\r\n"));
        assert!(text(Command::Throttle).ends_with("$7\r\n1000000\r\n$1\r\n1\r\n$4\r\n3600\r\n"));
    }
}
