//! The query parameters of an address.

use std::path::PathBuf;

use tokio_rustls::rustls::pki_types::ServerName;

use super::error::{AddressError, DATABASE};
use super::escape::unescaped;
use super::parse::number;
use super::parts::{ClientFiles, Login, Secret, TlsFiles};

/// The kinds of URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Unix,
    Single { is_tls: bool },
    Cluster { is_tls: bool },
    Sentinel { is_tls: bool },
}

const DB: [&str; 1] = ["db"];
const TLS: [&str; 4] = ["ca", "cert", "key", "server_name"];
const SENTINEL: [&str; 2] = ["sentinel_user", "sentinel_password"];

impl Form {
    pub(super) fn of_scheme(scheme: &str) -> Option<Self> {
        Some(match scheme {
            "unix" => Self::Unix,
            "redis" => Self::Single { is_tls: false },
            "rediss" => Self::Single { is_tls: true },
            "redis+cluster" => Self::Cluster { is_tls: false },
            "rediss+cluster" => Self::Cluster { is_tls: true },
            "redis+sentinel" => Self::Sentinel { is_tls: false },
            "rediss+sentinel" => Self::Sentinel { is_tls: true },
            _ => return None,
        })
    }

    const fn is_tls(self) -> bool {
        match self {
            Self::Unix => false,
            Self::Single { is_tls } | Self::Cluster { is_tls } | Self::Sentinel { is_tls } => {
                is_tls
            }
        }
    }

    /// Returns the parameters of this kind of URL.
    fn known(self) -> Vec<&'static str> {
        let db = DB.into_iter().filter(|_| self == Self::Unix);
        let tls = TLS.into_iter().filter(|_| self.is_tls());
        let sentinel = SENTINEL.into_iter().filter(|_| matches!(self, Self::Sentinel { .. }));
        db.chain(tls).chain(sentinel).collect()
    }
}

/// The parameters that have not been read yet.
pub(super) struct Query {
    form: Form,
    values: Vec<(&'static str, Vec<u8>)>,
}

impl Query {
    pub(super) fn parse(text: &str, form: Form) -> Result<Self, AddressError> {
        if text.contains('@') {
            return Err(AddressError::new(
                "the query of a Redis address contains an @ (write ? in a password as %3F, and @ in a path as %40)",
            ));
        }
        let known = form.known();
        let mut values: Vec<(&'static str, Vec<u8>)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name =
                known.iter().find(|known| **known == name).ok_or_else(|| unknown(name, &known))?;
            let value = unescaped(value).filter(|value| !value.is_empty()).ok_or_else(|| {
                invalid(name, "must have a value, with a % only before two hexadecimal digits")
            })?;
            if values.iter().any(|(earlier, _)| earlier == name) {
                return Err(invalid(name, "is given twice"));
            }
            values.push((*name, value));
        }
        Ok(Self { form, values })
    }

    fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        let found = self.values.iter().position(|(known, _)| *known == name)?;
        Some(self.values.swap_remove(found).1)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, AddressError> {
        let text = self.take(name).map(String::from_utf8).transpose();
        text.map_err(|_| invalid(name, "must be UTF-8"))
    }

    pub(super) fn number(&mut self, name: &str) -> Option<Result<u32, AddressError>> {
        let digits = self.take(name)?;
        let digits = String::from_utf8(digits).ok();
        Some(digits.and_then(|digits| number(&digits)).ok_or(DATABASE))
    }

    pub(super) fn sentinel_login(&mut self) -> Result<Option<Login>, AddressError> {
        let (user, password) = (self.take("sentinel_user"), self.take("sentinel_password"));
        match (user.map(Secret::new), password.map(Secret::new)) {
            (user, Some(password)) => Ok(Some(Login { user, password })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(invalid("sentinel_user", "also needs sentinel_password")),
        }
    }

    /// Returns the TLS parameters, if the scheme uses TLS.
    pub(super) fn tls(&mut self) -> Result<Option<TlsFiles>, AddressError> {
        if !self.form.is_tls() {
            return Ok(None);
        }
        let ca = self.text("ca")?.map(PathBuf::from);
        let client = match (self.text("cert")?, self.text("key")?) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(ClientFiles { certificate: certificate.into(), key: key.into() })
            }
            (Some(_), None) => return Err(invalid("cert", "also needs key")),
            (None, Some(_)) => return Err(invalid("key", "also needs cert")),
        };
        let server_name = self.text("server_name")?.map(ServerName::try_from).transpose();
        let server_name = server_name
            .map_err(|_| invalid("server_name", "must be a DNS name or an IP address"))?;
        Ok(Some(TlsFiles { ca, client, server_name }))
    }
}

fn invalid(name: &str, problem: &str) -> AddressError {
    AddressError::composed(format!("the query parameter {name} of a Redis address {problem}"))
}

/// Suggests a parameter. Does not repeat the unknown name: it may be part of a password.
fn unknown(name: &str, known: &[&'static str]) -> AddressError {
    let name = name.to_ascii_lowercase();
    let other_scheme = match name.as_str() {
        allowed if known.contains(&allowed) => None,
        "db" => Some("is for unix:// addresses; here the path is the database"),
        tls if TLS.contains(&tls) => Some("is for TLS; use a rediss scheme"),
        sentinel if SENTINEL.contains(&sentinel) => Some("is for redis+sentinel:// addresses"),
        _ => None,
    };
    if let Some(hint) = other_scheme {
        return invalid(&name, hint);
    }
    let prefix = known.iter().find(|known| name.starts_with(**known));
    let nearest = prefix.or_else(|| known.iter().min_by_key(|known| distance(&name, known)));
    let advice = match nearest {
        None => "this scheme has none; remove the ? and the rest (write ? in a password as %3F)"
            .to_owned(),
        Some(nearest)
            if prefix.is_some() || distance(&name, nearest) <= nearest.len().div_ceil(3) =>
        {
            format!("did you mean {nearest}?")
        }
        Some(_) => format!("known parameters: {}", known.join(", ")),
    };
    AddressError::composed(format!(
        "the query of a Redis address has an unknown parameter: {advice}"
    ))
}

/// Returns the Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.bytes().take(64).enumerate() {
        let mut before = row + 1;
        let mut current = vec![before];
        for (other, pair) in right.bytes().zip(above.windows(2)) {
            let [diagonal, over] = pair else { continue };
            before = (diagonal + usize::from(letter != other)).min(over + 1).min(before + 1);
            current.push(before);
        }
        above = current;
    }
    above.last().copied().unwrap_or_default()
}
