//! What responses tell of limits in their headers.

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, FieldValue, HeaderStyle};

/// How limits are told of.
#[derive(Debug)]
pub(super) struct Telling {
    styles: Vec<HeaderStyle>,
    /// Every field there may be, made once: a name is checked when it is made.
    names: Vec<HeaderName>,
    exposed: Option<HeaderValue>,
    is_exposed: bool,
}

impl Default for Telling {
    fn default() -> Self {
        let styles = vec![HeaderStyle::XUnix];
        let names = names(&styles);
        Self { styles, names, exposed: None, is_exposed: false }
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
        self.names = names(&self.styles);
        self.list();
    }

    pub(super) fn expose(&mut self) {
        self.is_exposed = true;
        self.list();
    }

    fn list(&mut self) {
        let names: Vec<&str> = self.names.iter().map(HeaderName::as_str).collect();
        let list = self.is_exposed.then(|| HeaderValue::from_str(&names.join(", ")).ok());
        self.exposed = list.flatten();
    }

    /// Every header there may be.
    pub(super) fn names(&self) -> &[HeaderName] {
        &self.names
    }

    pub(super) fn of(&self, decision: &Decision<'_>) -> Fields {
        let mut fields = Fields::with_capacity(3 * self.styles.len());
        for style in &self.styles {
            style.write(decision, |name, value| {
                let value = match value {
                    FieldValue::Number(number) => number_value(number),
                    FieldValue::Text(text) => HeaderValue::try_from(text).ok(),
                };
                let name = self.names.iter().find(|known| known.as_str() == name);
                fields.extend(name.cloned().zip(value));
            });
        }
        fields
    }

    /// Adds what is told, in place of what the service itself may have said under these names: two answers to one
    /// question are none.
    pub(super) fn tell(&self, headers: &mut HeaderMap, fields: Fields) {
        for (name, value) in fields {
            headers.insert(name, value);
        }
        if let Some(exposed) = &self.exposed {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
        }
    }
}

fn names(styles: &[HeaderStyle]) -> Vec<HeaderName> {
    let mut names: Vec<HeaderName> = Vec::new();
    let told = styles.iter().flat_map(|style| style.fields());
    for name in told.map(|name| HeaderName::from_static(name)).chain([RETRY_AFTER]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The value of a number, with one small allocation; `HeaderValue::from` needs two.
fn number_value(number: u64) -> Option<HeaderValue> {
    let mut digits = itoa::Buffer::new();
    HeaderValue::from_str(digits.format(number)).ok()
}
