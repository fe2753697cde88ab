//! Expressions of Limitador: references to one entry of the first descriptor, and their comparison with a text.

/// A comparison of one entry with a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Comparison<'t> {
    pub(super) key: &'t str,
    pub(super) is_equal: bool,
    pub(super) value: &'t str,
}

const NOT_A_COMPARISON: &str = "only comparisons of one entry can be imported, such as \
                                descriptors[0]['KEY'] == 'VALUE' or descriptors[0].KEY != 'VALUE'";
const NOT_A_REFERENCE: &str = "only single entries can be imported, such as descriptors[0]['KEY'], \
                               descriptors[0].KEY or KEY";
const OTHER_DESCRIPTOR: &str =
    "only descriptors[0] can be imported: other descriptors of a request are decided separately";
const BACKSLASH: &str =
    "a text with a backslash cannot be imported: versions of Limitador read it differently";
const EMPTY: &str = "a comparison with the empty text cannot be expressed in a policy";

impl<'t> Comparison<'t> {
    /// Parses `KEY == 'VALUE'` or `KEY != 'VALUE'`.
    pub(super) fn parse(text: &'t str) -> Result<Self, &'static str> {
        let (key, rest) = reference(text.trim(), NOT_A_COMPARISON)?;
        let rest = rest.trim_start();
        let equal = rest.strip_prefix("==").map(|rest| (true, rest));
        let operator = equal.or_else(|| rest.strip_prefix("!=").map(|rest| (false, rest)));
        let (is_equal, rest) = operator.ok_or(NOT_A_COMPARISON)?;
        match quoted(rest.trim_start(), NOT_A_COMPARISON)? {
            ("", "") => Err(EMPTY),
            (value, "") => Ok(Self { key, is_equal, value }),
            _ => Err(NOT_A_COMPARISON),
        }
    }
}

/// Parses a variable: a reference to one entry. Returns the key.
pub(super) fn variable(text: &str) -> Result<&str, &'static str> {
    match reference(text.trim(), NOT_A_REFERENCE)? {
        (key, "") => Ok(key),
        _ => Err(NOT_A_REFERENCE),
    }
}

/// Parses a reference to an entry at the start of `text`. Returns its key and the text after it.
fn reference<'t>(text: &'t str, invalid: &'static str) -> Result<(&'t str, &'t str), &'static str> {
    let Some(rest) = text.strip_prefix("descriptors[") else {
        // `limit.name` and `limit.id` are properties of the limit.
        return match split_name(text, "_.") {
            (key, _) if key.starts_with("limit.") || key.starts_with("descriptors") => Err(invalid),
            (key, rest) if !key.is_empty() => Ok((key, rest)),
            _ => Err(invalid),
        };
    };
    let (index, rest) = rest.split_once(']').ok_or(invalid)?;
    match index.trim() {
        "0" => {}
        index if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(OTHER_DESCRIPTOR);
        }
        _ => return Err(invalid),
    }
    if let Some(name) = rest.strip_prefix('.') {
        return match split_name(name, "_") {
            ("", _) => Err(invalid),
            found => Ok(found),
        };
    }
    let (key, rest) = quoted(rest.strip_prefix('[').ok_or(invalid)?.trim_start(), invalid)?;
    match rest.trim_start().strip_prefix(']') {
        Some(rest) if !key.is_empty() => Ok((key, rest)),
        _ => Err(invalid),
    }
}

/// Splits a name of letters, digits and the characters `others` off the start of `text`. A name does not start with a
/// digit.
fn split_name<'t>(text: &'t str, others: &str) -> (&'t str, &'t str) {
    let end = text
        .find(|char: char| !char.is_ascii_alphanumeric() && !others.contains(char))
        .unwrap_or(text.len());
    match text.split_at_checked(end) {
        Some((name, rest)) if !name.starts_with(|char: char| char.is_ascii_digit()) => (name, rest),
        _ => ("", text),
    }
}

/// Parses a text in single or double quotes. Returns it without quotes, and the text after it.
fn quoted<'t>(text: &'t str, invalid: &'static str) -> Result<(&'t str, &'t str), &'static str> {
    let quote = text.chars().next().filter(|char| ['\'', '"'].contains(char)).ok_or(invalid)?;
    let (value, rest) =
        text.strip_prefix(quote).and_then(|text| text.split_once(quote)).ok_or(invalid)?;
    if value.contains('\\') { Err(BACKSLASH) } else { Ok((value, rest)) }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, variable};

    #[test]
    fn parses_comparisons() {
        for (text, key, is_equal, value) in [
            ("req_method == 'POST'", "req_method", true, "POST"),
            ("req.method=='POST'", "req.method", true, "POST"),
            ("descriptors[0].method != \"GET\"", "method", false, "GET"),
            ("descriptors[0]['req.method'] == 'it\"s'", "req.method", true, "it\"s"),
            (" descriptors[ 0 ][ \"a b\" ]  !=  ' x ' ", "a b", false, " x "),
        ] {
            let expected = Comparison { key, is_equal, value };
            assert_eq!(Comparison::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn rejects_other_expressions() {
        for (text, reason) in [
            ("a == b", "only comparisons"),
            ("a == 'b' && c == 'd'", "only comparisons"),
            ("'b' == a", "only comparisons"),
            ("a < '3'", "only comparisons"),
            ("!(a == 'b')", "only comparisons"),
            ("limit.name == 'b'", "only comparisons"),
            ("descriptors[0].a.b == 'c'", "only comparisons"),
            ("descriptors[0] == 'c'", "only comparisons"),
            ("descriptors[i].a == 'c'", "only comparisons"),
            ("a == 'b", "only comparisons"),
            ("a == ''", "a comparison with the empty text"),
            ("descriptors[1].a == 'c'", "only descriptors[0]"),
            (r"a == 'b\'c'", "a text with a backslash"),
            ("", "only comparisons"),
        ] {
            let error = Comparison::parse(text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    #[test]
    fn parses_variables() {
        assert_eq!(variable("user_id"), Ok("user_id"));
        assert_eq!(variable("descriptors[0].user_id"), Ok("user_id"));
        assert_eq!(variable("descriptors[0]['user.id']"), Ok("user.id"));
        assert!(variable("descriptors[2].user").unwrap_err().starts_with("only descriptors[0]"));
        for text in ["", "size(a)", "a + b", "'a'", "descriptors[0]", "descriptors[0]['']"] {
            assert!(variable(text).unwrap_err().starts_with("only single entries"), "{text}");
        }
    }
}
