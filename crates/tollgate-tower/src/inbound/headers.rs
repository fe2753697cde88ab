//! Rate limit headers of responses.

use std::mem;

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, FieldValue, HeaderStyle, Status, Timestamp};

use super::limit_value::limit_value;
use super::number_value::{EMPTY, number_values};

/// Encodes decisions as headers in the configured styles.
#[derive(Debug)]
pub(super) struct HeaderWriter {
    styles: Vec<HeaderStyle>,
    expose_value: Option<HeaderValue>,
    is_exposed: bool,
}

impl Default for HeaderWriter {
    fn default() -> Self {
        Self { styles: vec![HeaderStyle::XUnix], expose_value: None, is_exposed: false }
    }
}

/// The headers for one decision.
#[derive(Debug, Clone, Default)]
pub(super) enum HeaderValues {
    #[default]
    None,
    /// The headers of one style. Numbers are formatted when the response is sent, into its header map.
    Numbers(HeaderStyle, [u64; 3]),
    /// The headers of several styles or with texts, and the value that exposes them to scripts of browsers.
    Many(Box<ManyValues>),
}

#[derive(Debug, Clone)]
pub(super) struct ManyValues {
    fields: Vec<(&'static HeaderName, HeaderValue)>,
    expose_value: Option<HeaderValue>,
}

impl HeaderWriter {
    pub(super) fn set_styles(&mut self, styles: impl IntoIterator<Item = HeaderStyle>) {
        self.styles = Vec::new();
        for style in styles {
            if !self.styles.contains(&style) {
                self.styles.push(style);
            }
        }
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
        for name in self.styles.iter().flat_map(|style| names(*style)).chain([&RETRY_AFTER]) {
            if !exposed.contains(name) {
                exposed.push(name.clone());
            }
        }
        exposed
    }

    /// Returns the headers for a decision.
    #[inline]
    pub(super) fn values(&self, decision: &Decision<'_>) -> HeaderValues {
        match (&*self.styles, &self.expose_value) {
            ([], None) => HeaderValues::None,
            ([style], None) if has_numbers_only(*style) => {
                let numbers = style.numbers(decision);
                numbers.map_or(HeaderValues::None, |numbers| HeaderValues::Numbers(*style, numbers))
            }
            _ => self.many_values(Some(decision)),
        }
    }

    /// Returns the headers for a decision at time `at` by one limit.
    #[inline]
    pub(super) fn status_values(&self, status: Status<'_>, at: Timestamp) -> HeaderValues {
        match (&*self.styles, &self.expose_value) {
            ([], None) => HeaderValues::None,
            ([style], None) if has_numbers_only(*style) => {
                let numbers = style.status_numbers(&status, at);
                numbers.map_or(HeaderValues::None, |numbers| HeaderValues::Numbers(*style, numbers))
            }
            _ => self.many_values(Some(&Decision::new(at, [status]))),
        }
    }

    /// Returns the headers of a response without a decision.
    pub(super) fn values_without_decision(&self) -> HeaderValues {
        match self.expose_value {
            Some(_) => self.many_values(None),
            None => HeaderValues::None,
        }
    }

    #[inline(never)]
    fn many_values(&self, decision: Option<&Decision<'_>>) -> HeaderValues {
        let mut fields = Vec::new();
        for (style, decision) in self.styles.iter().zip(decision.into_iter().cycle()) {
            let mut names = names(*style).iter();
            style.write(decision, |field, value| {
                // Fields have the order of the names, but some can be absent.
                let name = names.find(|name| name.as_str() == field);
                fields.extend(name.map(|name| (name, header_value(value))));
            });
        }
        let expose_value = self.expose_value.clone();
        HeaderValues::Many(Box::new(ManyValues { fields, expose_value }))
    }
}

impl HeaderValues {
    /// Writes the headers, once. If the response already has them with a smaller remaining amount (from an inner layer), it
    /// keeps them: of several limits, the headers describe the most restrictive.
    #[inline]
    pub(super) fn write(&mut self, headers: &mut HeaderMap) {
        match self {
            Self::None => {}
            Self::Numbers(style, numbers) => insert_numbers(headers, names(*style), *numbers),
            Self::Many(many) => {
                insert_strictest(headers, mem::take(&mut many.fields).into_iter());
                if let Some(expose_value) = many.expose_value.take() {
                    headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, expose_value);
                }
            }
        }
    }
}

/// Inserts the limit, the remaining amount and the reset.
#[inline]
fn insert_numbers(headers: &mut HeaderMap, names: &'static [HeaderName], numbers: [u64; 3]) {
    let [limit, remaining, reset] = numbers;
    let mut replaced = Vec::new();
    let mut insert = |place: usize, value| {
        if let Some(name) = names.get(place)
            && let Some(previous) = headers.insert(name, value)
        {
            replaced.push((name, previous));
        }
    };
    let [limit, remaining, reset] = match limit_value(limit) {
        Some(limit) => {
            let [remaining, reset] = number_values([remaining, reset]);
            [limit, remaining, reset]
        }
        None => number_values(numbers),
    };
    insert(0, limit);
    insert(1, remaining);
    insert(2, reset);
    if !replaced.is_empty() {
        restore_stricter(headers, replaced);
    }
}

fn insert_strictest(
    headers: &mut HeaderMap,
    fields: impl Iterator<Item = (&'static HeaderName, HeaderValue)>,
) {
    let mut replaced = Vec::new();
    for (name, value) in fields {
        if let Some(previous) = headers.insert(name, value) {
            replaced.push((name, previous));
        }
    }
    restore_stricter(headers, replaced);
}

/// Inserts the replaced headers again if they are stricter than the current ones. Tokens are compared for themselves.
#[inline(never)]
fn restore_stricter(headers: &mut HeaderMap, replaced: Vec<(&'static HeaderName, HeaderValue)>) {
    let is_of_tokens = |(name, _): &(&HeaderName, _)| name.as_str().ends_with("-tokens");
    let (of_tokens, others) = replaced.into_iter().partition(is_of_tokens);
    restore_stricter_unit(headers, of_tokens);
    restore_stricter_unit(headers, others);
}

fn restore_stricter_unit(
    headers: &mut HeaderMap,
    replaced: Vec<(&'static HeaderName, HeaderValue)>,
) {
    let is_previous_stricter = replaced.iter().any(|(name, previous)| {
        let current = headers.get(*name).and_then(|value| remaining(name, value));
        remaining(name, previous).is_some_and(|previous| Some(previous) < current)
    });
    if is_previous_stricter {
        for (name, previous) in replaced {
            headers.insert(name, previous);
        }
    }
}

/// Returns the remaining amount in a field: a number, or the parameter `r` of a structured field. None for other
/// fields.
fn remaining(name: &HeaderName, value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    if name.as_str().contains("-remaining") {
        return text.parse().ok();
    }
    let (_, after) = text.split_once(";r=").filter(|_| name.as_str() == "ratelimit")?;
    after.split(';').next()?.parse().ok()
}

static X_NAMES: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];
static DRAFT_6_NAMES: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];
static DRAFT_11_NAMES: [HeaderName; 2] =
    [HeaderName::from_static("ratelimit-policy"), HeaderName::from_static("ratelimit")];

static PROVIDER_NAMES: [HeaderName; 6] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// Returns whether the [fields](HeaderStyle::fields) of a style are limit, remaining and reset, all of them numbers.
const fn has_numbers_only(style: HeaderStyle) -> bool {
    matches!(style, HeaderStyle::XUnix | HeaderStyle::XDelta | HeaderStyle::Draft6)
}

/// Returns the [fields](HeaderStyle::fields) of a style as header names.
fn names(style: HeaderStyle) -> &'static [HeaderName] {
    match style {
        HeaderStyle::XUnix | HeaderStyle::XDelta => &X_NAMES,
        HeaderStyle::Draft6 => &DRAFT_6_NAMES,
        HeaderStyle::Draft11 => &DRAFT_11_NAMES,
        HeaderStyle::Provider => &PROVIDER_NAMES,
        _ => &[],
    }
}

/// Texts consist of limit names and numbers, so they are printable.
fn header_value(value: FieldValue) -> HeaderValue {
    match value {
        FieldValue::Number(number) => {
            let [value] = number_values([number]);
            value
        }
        FieldValue::Text(text) => text.try_into().unwrap_or(EMPTY),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName};
    use tollgate::{HeaderStyle, Limit, LocalLimiter, Quota};

    use super::{HeaderWriter, PROVIDER_NAMES, names};

    #[test]
    fn keeps_existing_header_only_if_it_is_stricter() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        let writer = HeaderWriter::default();
        for (existing, expected) in [("many", "10"), ("12", "10"), ("3", "3")] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-remaining", existing.parse().unwrap());
            writer.values(&limiter.peek("c1")).write(&mut headers);
            assert_eq!(headers["x-ratelimit-remaining"], expected, "{existing}");
        }
    }

    /// Names are searched in the order of the values, so both must have the same order.
    #[test]
    fn names_are_those_of_the_style_in_the_order_of_the_values() {
        for style in HeaderStyle::ALL {
            let names: Vec<_> = names(style).iter().map(HeaderName::as_str).collect();
            assert_eq!(names, style.fields());
        }
    }

    /// An inner layer can have the stricter limit of one unit, and the outer layer that of the other.
    #[test]
    fn each_unit_keeps_its_stricter_limit() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        let mut writer = HeaderWriter::default();
        writer.set_styles([HeaderStyle::Provider]);
        let mut values = writer.values(&limiter.peek("c1"));
        let super::HeaderValues::Many(many) = &mut values else { panic!("{values:?}") };
        for (name, value) in PROVIDER_NAMES[3..].iter().zip(["90", "50", "1s"]) {
            many.fields.push((name, value.parse().unwrap()));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in PROVIDER_NAMES.iter().zip(["5", "3", "2s", "900", "800", "7s"]) {
            headers.insert(name, value.parse().unwrap());
        }
        values.write(&mut headers);
        let written: Vec<_> = PROVIDER_NAMES.iter().map(|name| &headers[name]).collect();
        assert_eq!(written, ["5", "3", "2s", "90", "50", "1s"]);
    }

    /// One style is written without the intermediate list of several styles.
    #[test]
    fn one_style_has_the_same_headers_as_one_of_several() {
        let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_minute(10)).unwrap());
        let decision = limiter.take("c1");
        for style in HeaderStyle::ALL {
            let headers = |styles: &[HeaderStyle]| {
                let mut writer = HeaderWriter::default();
                writer.set_styles(styles.iter().copied());
                let mut headers = HeaderMap::new();
                writer.values(&decision).write(&mut headers);
                headers
            };
            let one = headers(&[style]);
            assert_eq!(
                one.len(),
                if style == HeaderStyle::Provider { 3 } else { style.fields().len() }
            );
            let others: Vec<_> = HeaderStyle::ALL
                .into_iter()
                .filter(|other| other.fields() != style.fields())
                .chain([style])
                .collect();
            let all = headers(&others);
            assert!(one.iter().all(|(name, value)| all[name] == value), "{style:?}");
        }
    }
}
