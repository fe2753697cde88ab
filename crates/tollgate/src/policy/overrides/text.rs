//! Overrides as text: JSON of one line, as stores keep them.

use std::fmt::Write;
use std::time::Duration;

use super::Override;
use super::error::{OverrideError, OverrideErrorKind};
use super::override_limit::OverrideLimit;
use crate::limit::identity::Algorithm;
use crate::policy::cursor::{Cursor, Fields};
use crate::policy::error::Flaw;
use crate::policy::tree::Tree;
use crate::time::{Timestamp, saturating_micros};

const VERSION: u64 = 1;

const FIELDS: &[&str] =
    &["version", "limits", "rule", "reason", "author", "set_at_us", "expires_at_us"];
const LIMIT: &[&str] = &["limit", "window_us", "burst", "algorithm", "name"];

const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("token_bucket", Algorithm::TokenBucket),
    ("sliding_window", Algorithm::SlidingWindow),
    ("sliding_counter", Algorithm::SlidingCounter),
    ("fixed_window", Algorithm::FixedWindow),
    ("concurrency", Algorithm::Concurrency),
];

impl Override {
    /// The text that stores keep.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Override, OverrideLimit};
    ///
    /// let own = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
    /// assert_eq!(Override::from_text(&own.to_text())?, own);
    /// # Ok::<(), tollgate::OverrideError>(())
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let limits: Vec<String> = self.limits.iter().map(written).collect();
        let mut text = format!(r#"{{"version":{VERSION},"limits":[{}]"#, limits.join(","));
        if let Some(rule) = &self.rule {
            push(&mut text, "rule", rule);
        }
        push(&mut text, "reason", &self.reason);
        push(&mut text, "author", &self.author);
        push_number(&mut text, "set_at_us", self.set_at.as_micros());
        if let Some(end) = self.expires_at {
            push_number(&mut text, "expires_at_us", end.as_micros());
        }
        text + "}"
    }

    /// What a text says.
    ///
    /// # Errors
    /// It says no override, or one of a later version.
    pub fn from_text(text: &str) -> Result<Self, OverrideError> {
        let broken = |flaw: Flaw| OverrideError::new(OverrideErrorKind::Text, flaw.to_string());
        let tree = Tree::parse(text).map_err(broken)?;
        let empty = || OverrideError::new(OverrideErrorKind::Text, "is empty");
        let fields = Cursor::root(&tree).ok_or_else(empty)?.fields(FIELDS).map_err(broken)?;
        let version = fields.require("version").and_then(|entry| entry.number(1));
        if version.map_err(broken)? != VERSION {
            let reason = "is of a later version";
            return Err(OverrideError::new(OverrideErrorKind::Text, reason));
        }
        let limits = fields.require("limits").and_then(Cursor::list).map_err(broken)?;
        let limits = limits.into_iter().map(limit).collect::<Result<_, _>>().map_err(broken)?;
        let own = Self::new(limits)?;
        own.described(&fields).map_err(broken)
    }

    fn described(self, fields: &Fields<'_>) -> Result<Self, Flaw> {
        let text = |name: &str| fields.read(name, |entry| entry.text().map(str::to_owned));
        let moment =
            |name: &str| fields.read(name, |entry| entry.number(0).map(Timestamp::from_micros));
        Ok(Self {
            rule: text("rule")?,
            reason: text("reason")?.unwrap_or_default(),
            author: text("author")?.unwrap_or_default(),
            set_at: moment("set_at_us")?.unwrap_or(Timestamp::EPOCH),
            expires_at: moment("expires_at_us")?,
            ..self
        })
    }
}

fn limit(entry: Cursor<'_>) -> Result<OverrideLimit, Flaw> {
    let fields = entry.fields(LIMIT)?;
    let number = |name: &str| fields.read(name, |entry| entry.number(0));
    Ok(OverrideLimit {
        count: fields.require("limit")?.number(0)?,
        window: number("window_us")?.map(Duration::from_micros),
        burst: number("burst")?,
        algorithm: fields.read("algorithm", |entry| entry.word(ALGORITHMS))?,
        name: fields.read("name", |entry| entry.text().map(str::to_owned))?,
    })
}

fn written(limit: &OverrideLimit) -> String {
    let mut text = format!(r#"{{"limit":{}"#, limit.count);
    if let Some(window) = limit.window {
        push_number(&mut text, "window_us", saturating_micros(window));
    }
    if let Some(burst) = limit.burst {
        push_number(&mut text, "burst", burst);
    }
    if let Some(algorithm) = limit.algorithm {
        push(&mut text, "algorithm", algorithm.as_str());
    }
    if let Some(name) = &limit.name {
        push(&mut text, "name", name);
    }
    text + "}"
}

fn push_number(text: &mut String, name: &str, number: u64) {
    // Writing to a string does not fail.
    let _ = write!(text, r#","{name}":{number}"#);
}

/// What is not printable, or of a kind that readers may take for an end of line, is escaped.
fn push(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, r#","{name}":""#);
    for letter in value.chars() {
        let is_plain = letter == ' ' || letter.is_alphanumeric() || letter.is_ascii_graphic();
        if is_plain && !matches!(letter, '"' | '\\') {
            text.push(letter);
        } else {
            let mut units = [0; 2];
            match letter.encode_utf16(&mut units) {
                [unit] => {
                    let _ = write!(text, "\\u{unit:04x}");
                }
                // Beyond the first plane YAML knows no pairs, and JSON no other escape.
                _ => text.push(letter),
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> impl Strategy<Value = OverrideLimit> {
        let algorithm = prop::option::of(prop::sample::select(ALGORITHMS));
        let name = prop::option::of("[a-z]{1,9}");
        let most = (1u64 << 53) - 1;
        (0..most, prop::option::of(0..most), prop::option::of(0..most), algorithm, name).prop_map(
            |(count, window, burst, algorithm, name)| OverrideLimit {
                count,
                window: window.map(Duration::from_micros),
                burst,
                algorithm: algorithm.map(|(_, algorithm)| algorithm),
                name,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            limit in limits(),
            rule in prop::option::of("[a-z]{1,9}"),
            reason in any::<String>(),
            author in any::<String>(),
            times in any::<[u32; 2]>(),
        ) {
            let [set_at, end] = times.map(|time| Timestamp::from_micros(time.into()));
            let own = Override {
                rule, reason, author, set_at, expires_at: Some(end),
                ..Override::new(vec![limit]).unwrap()
            };
            let text = own.to_text();
            prop_assert!(!text.contains(['\n', '\r', '\0']));
            prop_assert_eq!(Override::from_text(&text).unwrap(), own);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json.get("version"), Some(&serde_json::json!(1)));
        }
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is() {
        let bad = ["", "{", "[]", "{}", r#"{"version":2,"limits":[{"limit":1}]}"#];
        for text in bad {
            let error = Override::from_text(text).unwrap_err();
            assert_eq!(error.kind(), OverrideErrorKind::Text, "{text}");
        }
    }
}
