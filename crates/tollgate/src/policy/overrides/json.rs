//! Overrides as JSON on one line, the format that stores keep.

use std::fmt::Write;
use std::time::Duration;

use super::Override;
use super::error::{OverrideError, OverrideErrorKind};
use super::other_limits::OtherLimits;
use super::override_limit::OverrideLimit;
use crate::policy::error::FieldError;
use crate::policy::node_ref::{Fields, NodeRef};
use crate::policy::yaml_tree::{POLICY, YamlTree};
use crate::time::{Timestamp, saturating_micros};
use crate::unit::Unit;

/// The version of the format.
const VERSION: u64 = 1;

const FIELDS: &[&str] =
    &["version", "limits", "rule", "only", "reason", "author", "set_at_us", "expires_at_us"];
const LIMIT: &[&str] = &["limit", "window_us", "burst", "algorithm", "unit", "name"];

impl Override {
    /// Returns the override as one line of JSON.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Override, OverrideLimit};
    ///
    /// let raised = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
    /// assert_eq!(Override::from_text(&raised.to_text())?, raised);
    /// # Ok::<(), tollgate::OverrideError>(())
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let limits: Vec<String> = self.limits.iter().map(limit_to_json).collect();
        let mut text = format!(r#"{{"version":{VERSION},"limits":[{}]"#, limits.join(","));
        if let Some(rule) = &self.rule {
            push(&mut text, "rule", rule);
        }
        // Absent by default, so that earlier versions can read the text.
        if self.other_limits == OtherLimits::Remove {
            text.push_str(r#","only":true"#);
        }
        push(&mut text, "reason", &self.reason);
        push(&mut text, "author", &self.author);
        push_number(&mut text, "set_at_us", self.set_at.as_micros());
        if let Some(expiry) = self.expires_at {
            push_number(&mut text, "expires_at_us", expiry.as_micros());
        }
        text + "}"
    }

    /// Parses the JSON that [`to_text`](Self::to_text) writes.
    ///
    /// # Errors
    /// The text is not an override, or has an unsupported version.
    pub fn from_text(text: &str) -> Result<Self, OverrideError> {
        let invalid =
            |error: FieldError| OverrideError::new(OverrideErrorKind::Text, error.to_string());
        let tree = YamlTree::parse(text, POLICY).map_err(invalid)?;
        let empty = || OverrideError::new(OverrideErrorKind::Text, "the text is empty");
        let fields = NodeRef::root(&tree).ok_or_else(empty)?.fields(FIELDS).map_err(invalid)?;
        let version = fields.required("version").and_then(|entry| entry.number(1));
        let version = version.map_err(invalid)?;
        if version != VERSION {
            let reason = format!("unsupported version {version}; this program reads {VERSION}");
            return Err(OverrideError::new(OverrideErrorKind::Text, reason));
        }
        let limits = fields.required("limits").and_then(NodeRef::list).map_err(invalid)?;
        let limits =
            limits.into_iter().map(parse_limit).collect::<Result<_, _>>().map_err(invalid)?;
        Self::new(limits)?.with_metadata(&fields).map_err(invalid)
    }

    fn with_metadata(self, fields: &Fields<'_>) -> Result<Self, FieldError> {
        let text = |name: &str| fields.optional(name, |entry| entry.text().map(str::to_owned));
        let time =
            |name: &str| fields.optional(name, |entry| entry.number(0).map(Timestamp::from_micros));
        Ok(Self {
            rule: text("rule")?,
            other_limits: match fields.optional("only", NodeRef::boolean)? {
                Some(true) => OtherLimits::Remove,
                Some(false) | None => OtherLimits::Keep,
            },
            reason: text("reason")?.unwrap_or_default(),
            author: text("author")?.unwrap_or_default(),
            set_at: time("set_at_us")?.unwrap_or(Timestamp::EPOCH),
            expires_at: time("expires_at_us")?,
            ..self
        })
    }
}

fn parse_limit(entry: NodeRef<'_>) -> Result<OverrideLimit, FieldError> {
    let fields = entry.fields(LIMIT)?;
    let number = |name: &str| fields.optional(name, |entry| entry.number(0));
    Ok(OverrideLimit {
        count: fields.required("limit")?.number(0)?,
        window: number("window_us")?.map(Duration::from_micros),
        burst: number("burst")?,
        algorithm: fields.optional("algorithm", |entry| entry.algorithm(|_| true))?,
        unit: fields.optional("unit", unit)?,
        name: fields.optional("name", |entry| entry.text().map(str::to_owned))?,
    })
}

fn unit(entry: NodeRef<'_>) -> Result<Unit, FieldError> {
    Unit::new(entry.text()?).map_err(|error| entry.limit_error(&error))
}

fn limit_to_json(limit: &OverrideLimit) -> String {
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
    if let Some(unit) = &limit.unit {
        push(&mut text, "unit", unit.as_str());
    }
    if let Some(name) = &limit.name {
        push(&mut text, "name", name);
    }
    text + "}"
}

fn push_number(text: &mut String, name: &str, number: u64) {
    // Writing to a String cannot fail.
    let _ = write!(text, r#","{name}":{number}"#);
}

/// Appends a string field. Characters that are not printable, or that a parser could take for a line break, are
/// escaped.
fn push(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, r#","{name}":""#);
    for char in value.chars() {
        let is_plain = char == ' ' || char.is_alphanumeric() || char.is_ascii_graphic();
        if is_plain && !matches!(char, '"' | '\\') {
            text.push(char);
        } else {
            let mut units = [0; 2];
            match char.encode_utf16(&mut units) {
                [unit] => {
                    let _ = write!(text, "\\u{unit:04x}");
                }
                // Not escaped above U+FFFF: YAML has no surrogate pairs, and JSON has no other escape.
                _ => text.push(char),
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::algorithm::Algorithm;

    fn limits() -> impl Strategy<Value = OverrideLimit> {
        let algorithm = prop::option::of(prop::sample::select(Algorithm::NAMES));
        let unit = prop::option::of("[a-z]{1,9}".prop_map(|name| Unit::new(&name).unwrap()));
        let name = prop::option::of("[a-z]{1,9}");
        let max = (1u64 << 53) - 1;
        (0..max, prop::option::of(0..max), prop::option::of(0..max), algorithm, unit, name)
            .prop_map(|(count, window, burst, algorithm, unit, name)| OverrideLimit {
                count,
                window: window.map(Duration::from_micros),
                burst,
                algorithm: algorithm.and_then(Algorithm::from_name),
                unit,
                name,
            })
    }

    proptest! {
        #[test]
        fn text_round_trips(
            limit in limits(),
            rule in prop::option::of("[a-z]{1,9}"),
            reason in any::<String>(),
            author in any::<String>(),
            times in any::<[u32; 2]>(),
            other_limits in prop::sample::select(vec![OtherLimits::Keep, OtherLimits::Remove]),
        ) {
            let [set_at, expiry] = times.map(|time| Timestamp::from_micros(time.into()));
            let original = Override {
                rule, other_limits, reason, author, set_at, expires_at: Some(expiry),
                ..Override::new(vec![limit]).unwrap()
            };
            let text = original.to_text();
            prop_assert!(!text.contains(['\n', '\r', '\0']));
            prop_assert_eq!(Override::from_text(&text).unwrap(), original);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json.get("version"), Some(&serde_json::json!(1)));
        }
    }

    #[test]
    fn rejects_texts_that_are_not_overrides() {
        let invalid = ["", "{", "[]", "{}", r#"{"version":2,"limits":[{"limit":1}]}"#];
        for text in invalid {
            let error = Override::from_text(text).unwrap_err();
            assert_eq!(error.kind(), OverrideErrorKind::Text, "{text}");
        }
    }
}
