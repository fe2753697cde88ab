//! Choice of the store, and the reason, which is logged at start.

use tollgate_redis::Address;

use super::Environment;
use crate::error::SettingsError;

/// Location of the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// In this process.
    Memory {
        /// Reason, for the log.
        why: &'static str,
    },
    /// In Redis.
    Redis {
        /// Address of the server.
        address: Box<Address>,
        /// Setting that chose Redis.
        source: &'static str,
    },
}

const FLAG: &str = "--redis";
const SWITCH: &str = "ENABLE_DISTRIBUTED_RATE_LIMITING";
const FILE: &str = "redis in the settings file";

/// Tollgate's own variables take precedence over [`SHARED_VARIABLES`].
const VARIABLE: &str = "TOLLGATE_REDIS";
const VARIABLE_FILE: &str = "TOLLGATE_REDIS_FILE";
/// Variables that other programs use too.
const SHARED_VARIABLES: [&str; 2] = ["RATE_LIMIT_REDIS_URL", "REDIS_URL"];

/// Setting and URL.
type Source = (&'static str, String);

impl StoreChoice {
    /// Returns `memory` or `redis`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "memory",
            Self::Redis { .. } => "redis",
        }
    }

    /// Returns the reason for the choice.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Memory { why } => (*why).to_owned(),
            Self::Redis { source, .. } => format!("set by {source}"),
        }
    }

    pub(super) fn of(
        flag: Option<String>,
        file: Option<String>,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let switch = environment.flag(SWITCH)?;
        if switch == Some(false) {
            return match flag {
                Some(_) => Err(SettingsError::new(
                    FLAG,
                    format!("conflicts with {SWITCH}=false; remove one of them"),
                )),
                None => Ok(Self::Memory { why: "ENABLE_DISTRIBUTED_RATE_LIMITING is false" }),
            };
        }
        match (find_url(flag, file, environment)?, switch) {
            (Some(source), _) => Self::from_source(source),
            (None, Some(_)) => {
                Ok(Self::Redis { address: Box::new(Address::local()), source: SWITCH })
            }
            (None, None) => Ok(Self::Memory { why: "no Redis is configured" }),
        }
    }

    fn from_source((source, url): Source) -> Result<Self, SettingsError> {
        // The error names the invalid part of the URL without its text, which may be a password.
        let address = url.parse().map_err(|error| SettingsError::new(source, error))?;
        Ok(Self::Redis { address: Box::new(address), source })
    }
}

/// Returns the URL with the highest precedence.
fn find_url(
    flag: Option<String>,
    file: Option<String>,
    environment: &Environment,
) -> Result<Option<Source>, SettingsError> {
    if let Some(url) = flag {
        return Ok(Some((FLAG, url)));
    }
    if let Some(source) = environment.secret(VARIABLE, VARIABLE_FILE)? {
        return Ok(Some(source));
    }
    let mut names = SHARED_VARIABLES.into_iter();
    let shared = names.find_map(|name| Some((name, environment.get(name)?.to_owned())));
    Ok(shared.or_else(|| file.map(|url| (FILE, url))))
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

    fn chosen<const N: usize>(flag: Option<&str>, environment: [(&str, &str); N]) -> String {
        describe(&choose(flag, environment).unwrap())
    }

    fn describe(choice: &StoreChoice) -> String {
        format!("{}: {}", choice.kind(), choice.why())
    }

    #[test]
    fn defaults_to_memory() {
        assert_eq!(chosen(None, []), "memory: no Redis is configured");
        let off =
            chosen(None, [(SWITCH, "false"), ("REDIS_URL", URL), (VARIABLE_FILE, "/no/such")]);
        assert_eq!(off, "memory: ENABLE_DISTRIBUTED_RATE_LIMITING is false");
    }

    #[test]
    fn highest_precedence_wins_without_showing_secrets() {
        let all = [("REDIS_URL", URL), ("RATE_LIMIT_REDIS_URL", URL), (VARIABLE, URL)];
        assert_eq!(chosen(Some(URL), all), "redis: set by --redis");
        assert_eq!(chosen(None, all), "redis: set by TOLLGATE_REDIS");
        assert_eq!(chosen(None, [all[0], all[1]]), "redis: set by RATE_LIMIT_REDIS_URL");
        assert_eq!(chosen(None, [all[0], (SWITCH, "true")]), "redis: set by REDIS_URL");
        let file = StoreChoice::of(None, Some(URL.to_owned()), &Environment::default()).unwrap();
        assert_eq!(describe(&file), "redis: set by redis in the settings file");
        assert!(!format!("{file:?}").contains("hunter2"), "{file:?}");
    }

    #[test]
    fn switch_without_address_selects_local_redis() {
        let choice = choose(None, [(SWITCH, "true"), ("REDIS_URL", "")]).unwrap();
        assert_eq!(
            choice,
            StoreChoice::Redis { address: Box::new(Address::local()), source: SWITCH }
        );
    }

    #[test]
    fn invalid_url_names_its_source_without_secrets() {
        for bad in ["http://:hunter2@localhost", "redis://:hunter2@localhost:0x", "hunter2", ""] {
            let error = choose(Some(bad), [("REDIS_URL", URL)]).unwrap_err().to_string();
            assert!(error.starts_with("--redis: ") && !error.contains("hunter2"), "{error}");
        }
        let error = choose(None, [("REDIS_URL", "redis://:hunter2@localhost/x")]).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("REDIS_URL: ") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn rejects_conflicts_and_invalid_values() {
        let error = choose(Some(URL), [(SWITCH, "false")]).unwrap_err().to_string();
        assert!(error.contains("conflicts with"), "{error}");
        assert!(choose(None, [(SWITCH, "maybe")]).unwrap_err().to_string().starts_with(SWITCH));
        let error =
            choose(None, [(VARIABLE, URL), (VARIABLE_FILE, "/no/such")]).unwrap_err().to_string();
        assert!(error.contains(VARIABLE) && error.contains(VARIABLE_FILE), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
