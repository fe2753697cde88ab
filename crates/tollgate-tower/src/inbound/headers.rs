//! What responses tell of limits in their headers.

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, FieldValue, HeaderStyle};

/// How limits are told of.
#[derive(Debug)]
pub(super) struct Telling {
    styles: Vec<HeaderStyle>,
    /// The fields of all styles in their order, made once: a name is checked when it is made.
    names: Vec<HeaderName>,
    exposed: Option<HeaderValue>,
    is_exposed: bool,
}

impl Default for Telling {
    fn default() -> Self {
        let styles = vec![HeaderStyle::XUnix];
        Self { names: names(&styles), styles, exposed: None, is_exposed: false }
    }
}

/// What one decision gave for the fields of all styles; nothing if no limit applies.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<HeaderValue>);

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
        let names = self.exposed();
        let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
        let list = self.is_exposed.then(|| HeaderValue::from_str(&names.join(", ")).ok());
        self.exposed = list.flatten();
    }

    /// Every header there may be, each once.
    pub(super) fn exposed(&self) -> Vec<HeaderName> {
        let mut exposed: Vec<HeaderName> = Vec::new();
        for name in self.names.iter().chain([&RETRY_AFTER]) {
            if !exposed.contains(name) {
                exposed.push(name.clone());
            }
        }
        exposed
    }

    pub(super) fn of(&self, decision: &Decision<'_>) -> Fields {
        let mut fields = Fields(Vec::with_capacity(self.names.len()));
        for style in &self.styles {
            style.write(decision, |_, value| fields.0.push(header_value(value)));
        }
        fields
    }

    /// Adds what is told. Where the response has told of less already, as by a layer within, that stays: of several
    /// limits the one most in the way is told of.
    pub(super) fn tell(&self, headers: &mut HeaderMap, fields: Fields) {
        let mut before = Vec::new();
        for (name, value) in self.names.iter().zip(fields.0) {
            if let Some(old) = headers.insert(name, value) {
                before.push((name, old));
            }
        }
        let told_less = before.iter().any(|(name, old)| {
            left(name, old).is_some_and(|old| Some(old) < left_in(headers, name))
        });
        if told_less {
            for (name, old) in before {
                headers.insert(name, old);
            }
        }
        if let Some(exposed) = &self.exposed {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
        }
    }
}

fn left_in(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name).and_then(|value| left(name, value))
}

/// What is left, as a field says it: a number, or the `r` of a structured one. None of a field that does not say.
fn left(name: &HeaderName, value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    if name.as_str().ends_with("-remaining") {
        return text.parse().ok();
    }
    let (_, after) = text.split_once(";r=").filter(|_| name.as_str() == "ratelimit")?;
    after.split(';').next()?.parse().ok()
}

/// In the order in which the styles write their fields.
fn names(styles: &[HeaderStyle]) -> Vec<HeaderName> {
    let fields = styles.iter().flat_map(|style| style.fields());
    fields.map(|name| HeaderName::from_static(name)).collect()
}

/// A number takes one small allocation; `HeaderValue::from` needs two. Texts are names and numbers, all of them
/// printable.
fn header_value(value: FieldValue) -> HeaderValue {
    let value = match value {
        FieldValue::Number(number) => HeaderValue::from_str(itoa::Buffer::new().format(number)),
        FieldValue::Text(text) => return text.try_into().unwrap_or(EMPTY),
    };
    value.unwrap_or(EMPTY)
}

const EMPTY: HeaderValue = HeaderValue::from_static("");

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use tollgate::{HeaderStyle, Limit, LocalLimiter, Quota};

    use super::Telling;

    /// What a service says of limits stays only if it says of less.
    #[test]
    fn nonsense_is_not_told_in_our_place() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        let telling = Telling::default();
        for (said, told) in [("many", "10"), ("12", "10"), ("3", "3")] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-remaining", said.parse().unwrap());
            telling.tell(&mut headers, telling.of(&limiter.peek("c1")));
            assert_eq!(headers["x-ratelimit-remaining"], told, "{said}");
        }
    }

    /// Names and values are told apart, so they must come in one order.
    #[test]
    fn fields_are_written_in_the_order_of_their_names() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        for style in HeaderStyle::ALL {
            let mut written = Vec::new();
            style.write(&limiter.take("c1"), |name, _| written.push(name));
            assert_eq!(written, style.fields());
        }
    }
}
