//! What responses tell of limits in their headers.

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, FieldValue, HeaderStyle};

/// How limits are told of.
#[derive(Debug)]
pub(super) struct Telling {
    styles: Vec<HeaderStyle>,
    exposed: Option<HeaderValue>,
    is_exposed: bool,
}

impl Default for Telling {
    fn default() -> Self {
        Self { styles: vec![HeaderStyle::XUnix], exposed: None, is_exposed: false }
    }
}

/// Header fields that one decision gave.
pub(super) type Fields = Vec<(HeaderName, HeaderValue)>;

impl Telling {
    pub(super) fn set_styles(&mut self, styles: impl IntoIterator<Item = HeaderStyle>) {
        self.styles = Vec::new();
        for style in styles {
            if !self.styles.contains(&style) {
                self.styles.push(style);
            }
        }
        self.list();
    }

    pub(super) fn expose(&mut self) {
        self.is_exposed = true;
        self.list();
    }

    fn list(&mut self) {
        let names: Vec<HeaderName> = self.names();
        let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
        let list = self.is_exposed.then(|| HeaderValue::from_str(&names.join(", ")).ok());
        self.exposed = list.flatten();
    }

    /// Every header there may be.
    pub(super) fn names(&self) -> Vec<HeaderName> {
        let mut names: Vec<HeaderName> = Vec::new();
        let told = self.styles.iter().flat_map(|style| style.fields());
        for name in told.map(|name| HeaderName::from_static(name)).chain([RETRY_AFTER]) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub(super) fn of(&self, decision: &Decision<'_>) -> Fields {
        let mut fields = Fields::with_capacity(3 * self.styles.len());
        for style in &self.styles {
            style.write(decision, |name, value| {
                let value = match value {
                    FieldValue::Number(number) => Some(HeaderValue::from(number)),
                    FieldValue::Text(text) => HeaderValue::try_from(text).ok(),
                };
                fields.extend(value.map(|value| (HeaderName::from_static(name), value)));
            });
        }
        fields
    }

    /// Adds what is told. What the service said itself of these limits stays beside it in no case: two answers to
    /// one question are none.
    pub(super) fn tell(&self, headers: &mut HeaderMap, fields: Fields) {
        for (name, value) in fields {
            headers.insert(name, value);
        }
        if let Some(exposed) = &self.exposed {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
        }
    }
}
