//! Rate limit headers of responses.

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, FieldValue, HeaderStyle};

/// Encodes decisions as headers in the configured styles.
#[derive(Debug)]
pub(super) struct HeaderWriter {
    styles: Vec<HeaderStyle>,
    /// The field names of all styles in order, built once because building validates them.
    names: Vec<HeaderName>,
    expose_value: Option<HeaderValue>,
    is_exposed: bool,
}

impl Default for HeaderWriter {
    fn default() -> Self {
        let styles = vec![HeaderStyle::XUnix];
        Self { names: field_names(&styles), styles, expose_value: None, is_exposed: false }
    }
}

/// The values of all fields for one decision, in the order of the names. Empty if no limit applies.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderValues(Vec<HeaderValue>);

impl HeaderWriter {
    pub(super) fn set_styles(&mut self, styles: impl IntoIterator<Item = HeaderStyle>) {
        self.styles = Vec::new();
        for style in styles {
            if !self.styles.contains(&style) {
                self.styles.push(style);
            }
        }
        self.names = field_names(&self.styles);
        self.update_expose_value();
    }

    pub(super) fn expose(&mut self) {
        self.is_exposed = true;
        self.update_expose_value();
    }

    fn update_expose_value(&mut self) {
        let names = self.exposed_names();
        let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
        let list = self.is_exposed.then(|| HeaderValue::from_str(&names.join(", ")).ok());
        self.expose_value = list.flatten();
    }

    /// Returns the name of every header that may be added, without duplicates.
    pub(super) fn exposed_names(&self) -> Vec<HeaderName> {
        let mut exposed: Vec<HeaderName> = Vec::new();
        for name in self.names.iter().chain([&RETRY_AFTER]) {
            if !exposed.contains(name) {
                exposed.push(name.clone());
            }
        }
        exposed
    }

    pub(super) fn values(&self, decision: &Decision<'_>) -> HeaderValues {
        let mut values = HeaderValues(Vec::with_capacity(self.names.len()));
        for style in &self.styles {
            style.write(decision, |_, value| values.0.push(header_value(value)));
        }
        values
    }

    /// Writes the headers. If the response already has them with a smaller remaining amount (from an inner layer), it
    /// keeps them: of several limits, the headers describe the most restrictive.
    pub(super) fn write(&self, headers: &mut HeaderMap, values: HeaderValues) {
        let mut replaced = Vec::new();
        for (name, value) in self.names.iter().zip(values.0) {
            if let Some(previous) = headers.insert(name, value) {
                replaced.push((name, previous));
            }
        }
        let is_previous_stricter = replaced.iter().any(|(name, previous)| {
            let current = headers.get(*name).and_then(|value| remaining(name, value));
            remaining(name, previous).is_some_and(|previous| Some(previous) < current)
        });
        if is_previous_stricter {
            for (name, previous) in replaced {
                headers.insert(name, previous);
            }
        }
        if let Some(expose_value) = &self.expose_value {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, expose_value.clone());
        }
    }
}

/// Returns the remaining amount in a field: a number, or the parameter `r` of a structured field. None for other
/// fields.
fn remaining(name: &HeaderName, value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    if name.as_str().ends_with("-remaining") {
        return text.parse().ok();
    }
    let (_, after) = text.split_once(";r=").filter(|_| name.as_str() == "ratelimit")?;
    after.split(';').next()?.parse().ok()
}

/// Returns the field names in the order in which the styles write their fields.
fn field_names(styles: &[HeaderStyle]) -> Vec<HeaderName> {
    let fields = styles.iter().flat_map(|style| style.fields());
    fields.map(|name| HeaderName::from_static(name)).collect()
}

/// Formats a number with one small allocation; `HeaderValue::from` needs two. Texts consist of limit names and
/// numbers, so they are printable.
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

    use super::HeaderWriter;

    #[test]
    fn keeps_existing_header_only_if_it_is_stricter() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        let writer = HeaderWriter::default();
        for (existing, expected) in [("many", "10"), ("12", "10"), ("3", "3")] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-remaining", existing.parse().unwrap());
            writer.write(&mut headers, writer.values(&limiter.peek("c1")));
            assert_eq!(headers["x-ratelimit-remaining"], expected, "{existing}");
        }
    }

    /// Names and values are zipped, so both must have the same order.
    #[test]
    fn values_are_written_in_the_order_of_the_names() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        for style in HeaderStyle::ALL {
            let mut written = Vec::new();
            style.write(&limiter.take("c1"), |name, _| written.push(name));
            assert_eq!(written, style.fields());
        }
    }
}
