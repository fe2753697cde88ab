//! Which store, and why: said at the start, so that nobody must guess.

use tollgate_redis::Address;

use super::{Environment, SettingsError};

/// Where counters live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// In this process.
    Memory {
        /// Why, for the log.
        why: &'static str,
    },
    /// In a Redis.
    Redis {
        /// Where it is.
        address: Box<Address>,
        /// The setting that says so.
        source: &'static str,
    },
}

const FLAG: &str = "--redis";
const SWITCH: &str = "ENABLE_DISTRIBUTED_RATE_LIMITING";
const FILE: &str = "redis in the settings file";

/// Our own variable, which may also be a file of that content, is stronger than those of others.
const OWN: &str = "TOLLGATE_REDIS";
const OWN_FILE: &str = "TOLLGATE_REDIS_FILE";
const OTHERS: [&str; 2] = ["RATE_LIMIT_REDIS_URL", "REDIS_URL"];

/// A URL and the setting it comes from.
type Given = (&'static str, String);

impl StoreChoice {
    /// Which it is, in a word.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "memory",
            Self::Redis { .. } => "redis",
        }
    }

    /// Why it is that one.
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
                Some(_) => Err(SettingsError::new(FLAG, format!("contradicts {SWITCH}=false"))),
                None => Ok(Self::Memory { why: "ENABLE_DISTRIBUTED_RATE_LIMITING is false" }),
            };
        }
        match (strongest(flag, file, environment)?, switch) {
            (Some(given), _) => Self::at(given),
            (None, Some(_)) => {
                Ok(Self::Redis { address: Box::new(Address::local()), source: SWITCH })
            }
            (None, None) => Ok(Self::Memory { why: "no Redis is configured" }),
        }
    }

    fn at((source, url): Given) -> Result<Self, SettingsError> {
        // The error names the part of the URL that is wrong, and never repeats it.
        let address = url.parse().map_err(|error| SettingsError::new(source, error))?;
        Ok(Self::Redis { address: Box::new(address), source })
    }
}

fn strongest(
    flag: Option<String>,
    file: Option<String>,
    environment: &Environment,
) -> Result<Option<Given>, SettingsError> {
    if let Some(url) = flag {
        return Ok(Some((FLAG, url)));
    }
    if let Some(given) = environment.secret(OWN, OWN_FILE)? {
        return Ok(Some(given));
    }
    let mut others = OTHERS.into_iter();
    let other = others.find_map(|name| Some((name, environment.get(name)?.to_owned())));
    Ok(other.or_else(|| file.map(|url| (FILE, url))))
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
        told(&choose(flag, environment).unwrap())
    }

    fn told(choice: &StoreChoice) -> String {
        format!("{}: {}", choice.kind(), choice.why())
    }

    #[test]
    fn nothing_configured_is_memory() {
        assert_eq!(chosen(None, []), "memory: no Redis is configured");
        let off = chosen(None, [(SWITCH, "false"), ("REDIS_URL", URL), (OWN_FILE, "/no/such")]);
        assert_eq!(off, "memory: ENABLE_DISTRIBUTED_RATE_LIMITING is false");
    }

    #[test]
    fn the_strongest_source_decides_and_no_secret_is_shown() {
        let all = [("REDIS_URL", URL), ("RATE_LIMIT_REDIS_URL", URL), (OWN, URL)];
        assert_eq!(chosen(Some(URL), all), "redis: set by --redis");
        assert_eq!(chosen(None, all), "redis: set by TOLLGATE_REDIS");
        assert_eq!(chosen(None, [all[0], all[1]]), "redis: set by RATE_LIMIT_REDIS_URL");
        assert_eq!(chosen(None, [all[0], (SWITCH, "true")]), "redis: set by REDIS_URL");
        let file = StoreChoice::of(None, Some(URL.to_owned()), &Environment::default()).unwrap();
        assert_eq!(told(&file), "redis: set by redis in the settings file");
        assert!(!format!("{file:?}").contains("hunter2"), "{file:?}");
    }

    #[test]
    fn switched_on_without_an_address_it_is_the_local_server() {
        let choice = choose(None, [(SWITCH, "true"), ("REDIS_URL", "")]).unwrap();
        assert_eq!(
            choice,
            StoreChoice::Redis { address: Box::new(Address::local()), source: SWITCH }
        );
    }

    #[test]
    fn a_bad_address_is_named_by_its_source_and_not_repeated() {
        for bad in ["http://:hunter2@localhost", "redis://:hunter2@localhost:0x", "hunter2", ""] {
            let error = choose(Some(bad), [("REDIS_URL", URL)]).unwrap_err().to_string();
            assert!(error.starts_with("--redis: ") && !error.contains("hunter2"), "{error}");
        }
        let error = choose(None, [("REDIS_URL", "redis://:hunter2@localhost/x")]).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("REDIS_URL: ") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn contradictions_and_nonsense_are_errors() {
        let error = choose(Some(URL), [(SWITCH, "false")]).unwrap_err().to_string();
        assert!(error.contains("contradicts"), "{error}");
        assert!(choose(None, [(SWITCH, "maybe")]).unwrap_err().to_string().starts_with(SWITCH));
        let error = choose(None, [(OWN, URL), (OWN_FILE, "/no/such")]).unwrap_err().to_string();
        assert!(error.contains(OWN) && error.contains(OWN_FILE), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
