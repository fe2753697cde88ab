//! Settings of forward auth: trusted proxies, and the style of responses.

use tollgate::net::TrustedProxies;
use tollgate::{HeaderStyle, RefusalStyle};

use super::args::ServeArgs;
use super::file::SettingsFile;
use crate::error::SettingsError;

const TRUSTED_PROXIES: &str = "--trusted-proxies";
const AUTH_HEADERS: &str = "--auth-headers";
/// The word for no headers.
const NONE: &str = "none";

/// Settings of forward auth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardAuthSettings {
    /// The proxies whose forwarding headers are read.
    pub(crate) proxies: TrustedProxies,
    /// The styles of the rate limit headers; empty for no headers.
    pub(crate) header_styles: Vec<HeaderStyle>,
    /// The style of the bodies of refusals.
    pub(crate) body_style: RefusalStyle,
}

impl Default for ForwardAuthSettings {
    fn default() -> Self {
        Self {
            proxies: TrustedProxies::default(),
            header_styles: vec![HeaderStyle::XUnix],
            body_style: RefusalStyle::default(),
        }
    }
}

impl ForwardAuthSettings {
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Self, SettingsError> {
        let default = Self::default();
        let proxies = args.trusted_proxies.as_ref().or(file.trusted_proxies.as_ref());
        let styles = args.auth_headers.as_ref().or(file.auth_headers.as_ref());
        let body_style = args.auth_body.or(file.auth_body);
        Ok(Self {
            proxies: proxies.map_or(Ok(default.proxies), |text| trusted_proxies(text))?,
            header_styles: styles.map_or(Ok(default.header_styles), |text| header_styles(text))?,
            body_style: body_style.map_or(default.body_style, Into::into),
        })
    }
}

/// Returns the items of a list, without empty ones.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn trusted_proxies(text: &str) -> Result<TrustedProxies, SettingsError> {
    TrustedProxies::parse(items(text)).map_err(|error| SettingsError::new(TRUSTED_PROXIES, error))
}

fn header_styles(text: &str) -> Result<Vec<HeaderStyle>, SettingsError> {
    let invalid = |reason: String| Err(SettingsError::new(AUTH_HEADERS, reason));
    let mut styles = Vec::new();
    for name in items(text) {
        let Some(style) = HeaderStyle::named(name) else {
            if name == NONE && items(text).count() == 1 {
                return Ok(Vec::new());
            }
            let known = HeaderStyle::ALL.map(HeaderStyle::as_str).join(", ");
            return invalid(format!("{name:?} is not a style; use {known}, or none alone"));
        };
        if !styles.contains(&style) {
            styles.push(style);
        }
    }
    if styles.contains(&HeaderStyle::XUnix) && styles.contains(&HeaderStyle::XDelta) {
        return invalid("x-unix and x-delta use the same header names; use one of them".to_owned());
    }
    match styles.is_empty() {
        true => invalid("is empty; use none for no headers".to_owned()),
        false => Ok(styles),
    }
}

#[cfg(test)]
mod tests {
    use super::{HeaderStyle, header_styles, trusted_proxies};

    #[test]
    fn styles_can_be_combined() {
        let styles = header_styles("draft11, x-unix,draft11").unwrap();
        assert_eq!(styles, [HeaderStyle::Draft11, HeaderStyle::XUnix]);
        assert_eq!(header_styles("provider"), Ok(vec![HeaderStyle::Provider]));
        assert_eq!(header_styles("none"), Ok(Vec::new()));
        for (text, reason) in [
            ("x-unix,none", "\"none\" is not a style"),
            ("unix", "\"unix\" is not a style"),
            ("x-unix,x-delta", "the same header names"),
            ("", "is empty"),
        ] {
            let error = header_styles(text).unwrap_err().to_string();
            assert!(error.starts_with("--auth-headers: ") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn proxies_are_addresses_and_networks() {
        let proxies = trusted_proxies("10.0.0.0/8, ::1").unwrap();
        assert!(proxies.trusts("10.1.2.3".parse().unwrap()));
        assert!(!proxies.trusts("192.0.2.1".parse().unwrap()));
        assert!(trusted_proxies("").unwrap().is_empty());
        let error = trusted_proxies("10.0.0.1/8").unwrap_err().to_string();
        assert!(error.starts_with("--trusted-proxies: trusted proxy \"10.0.0.1/8\""), "{error}");
    }
}
