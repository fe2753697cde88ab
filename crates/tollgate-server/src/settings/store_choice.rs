//! Which store, and why: said at the start, so that nobody must guess.

use std::fmt;

use super::{Environment, SettingsError};

/// Where counters live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// In this process.
    Memory {
        /// Why, for the log.
        why: &'static str,
    },
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { why } => write!(f, "memory ({why})"),
        }
    }
}

/// Where a Redis URL may come from, the strongest first.
const SOURCES: [&str; 3] = ["TOLLGATE_REDIS", "RATE_LIMIT_REDIS_URL", "REDIS_URL"];
const SWITCH: &str = "ENABLE_DISTRIBUTED_RATE_LIMITING";

impl StoreChoice {
    pub(super) fn of(
        flag: Option<String>,
        file: Option<String>,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let switch = environment.flag(SWITCH)?;
        if flag.is_some() && switch == Some(false) {
            let reason = format!("contradicts {SWITCH}=false");
            return Err(SettingsError::new("--redis", reason));
        }
        if switch == Some(false) {
            return Ok(Self::Memory { why: "ENABLE_DISTRIBUTED_RATE_LIMITING is false" });
        }
        let from_environment = SOURCES.into_iter().find(|name| environment.get(name).is_some());
        let source = match (flag, from_environment, file, switch) {
            (Some(_), _, _, _) => "--redis",
            (None, Some(name), _, _) => name,
            (None, None, Some(_), _) => "redis in the settings file",
            (None, None, None, Some(_)) => SWITCH,
            (None, None, None, None) => {
                return Ok(Self::Memory { why: "no Redis is configured" });
            }
        };
        // The URL itself may hold a password, so only its source is named.
        Err(SettingsError::new(
            source,
            format!(
                "asks for Redis, and this version keeps counters in memory only; unset it, or set \
                 {SWITCH}=false to use memory all the same",
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "redis://:hunter2@localhost";

    fn choose<const N: usize>(
        flag: Option<&str>,
        environment: [(&str, &str); N],
    ) -> Result<StoreChoice, SettingsError> {
        StoreChoice::of(flag.map(str::to_owned), None, &Environment::from(environment))
    }

    #[test]
    fn nothing_configured_is_memory() {
        assert!(choose(None, []).is_ok());
        assert!(choose(None, [(SWITCH, "false"), ("REDIS_URL", URL)]).is_ok());
    }

    #[test]
    fn the_strongest_source_is_named_and_its_secret_is_not() {
        let all = [("REDIS_URL", URL), ("RATE_LIMIT_REDIS_URL", URL), ("TOLLGATE_REDIS", URL)];
        let named = |result: Result<StoreChoice, SettingsError>| result.unwrap_err().to_string();
        let flag = named(choose(Some(URL), all));
        assert!(flag.starts_with("--redis: asks") && !flag.contains("hunter2"), "{flag}");
        assert!(named(choose(None, all)).starts_with("TOLLGATE_REDIS: "));
        assert!(named(choose(None, [all[0], all[1]])).starts_with("RATE_LIMIT_REDIS_URL: "));
        assert!(named(choose(None, [all[0]])).starts_with("REDIS_URL: "));
        assert!(named(choose(None, [(SWITCH, "true")])).starts_with(SWITCH));
    }

    #[test]
    fn contradictions_and_nonsense_are_errors() {
        let error = choose(Some(URL), [(SWITCH, "false")]).unwrap_err().to_string();
        assert!(error.contains("contradicts"), "{error}");
        assert!(choose(None, [(SWITCH, "maybe")]).unwrap_err().to_string().starts_with(SWITCH));
    }
}
