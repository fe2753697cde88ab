//! The setting `--allowed-hosts`.

use super::args::ServeArgs;
use super::file::SettingsFile;
use crate::error::SettingsError;

/// Host names under which clients on this machine may use the dashboard, `/api` and `/admin`, besides addresses and names
/// without a dot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Self, SettingsError> {
        let text = args.allowed_hosts.as_ref().or(file.allowed_hosts.as_ref());
        text.map_or_else(|| Ok(Self::default()), |text| Self::parse(text))
    }

    /// Parses names separated by commas.
    pub(crate) fn parse(text: &str) -> Result<Self, SettingsError> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let valid = |name: &str| {
            let is_name = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
            if is_name {
                return Ok(without_root(name).to_owned());
            }
            let reason = format!("{name:?} is not a host name; write it without scheme and port");
            Err(SettingsError::new("--allowed-hosts", reason))
        };
        names.map(valid).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let name = without_root(name);
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// Returns a name without the dot of the DNS root: `a.example.` is the same host as `a.example`.
fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::AllowedHosts;

    #[test]
    fn names_are_separated_by_commas() {
        let hosts = AllowedHosts::parse(" limits.example,other-host ,c.example.").expect("names");
        assert!(hosts.contains("limits.example.") && hosts.contains("c.example"));
        assert!(!hosts.contains("limits.example.."));
        assert!(hosts.contains("LIMITS.example") && hosts.contains("other-host"));
        assert!(!hosts.contains("") && !hosts.contains("limits.example.evil"));
        for invalid in ["https://limits.example", "limits.example:8080", "*"] {
            let error = AllowedHosts::parse(invalid).expect_err(invalid).to_string();
            assert!(error.contains("--allowed-hosts") && error.contains(invalid), "{error}");
        }
    }
}
