//! A JSON writer for responses. A busy node writes mostly decisions, whose field names need no escaping.
//!
//! The functions for fields are inlined, so that a field name is copied with a few instructions instead of a call.

/// A field name with comma, quotes and colon, as written before the value of a field that is not the first one. It
/// contains nothing to escape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name(pub(crate) &'static str);

/// Builds a [`Name`] at compile time.
macro_rules! name {
    ($name:literal) => {
        $crate::wire::json::Name(concat!(",\"", $name, "\":"))
    };
}
pub(crate) use name;

/// A JSON object that is being written.
#[derive(Debug)]
pub(crate) struct Object<'t> {
    text: &'t mut Vec<u8>,
    is_begun: bool,
}

impl<'t> Object<'t> {
    /// Writes the start of an object.
    pub(crate) fn begin(text: &'t mut Vec<u8>) -> Self {
        text.push(b'{');
        Self { text, is_begun: false }
    }

    /// Writes the end of the object.
    pub(crate) fn end(self) {
        self.text.push(b'}');
    }

    #[inline(always)]
    pub(crate) fn boolean(&mut self, name: Name, value: bool) -> &mut Self {
        self.name(name).extend_from_slice(if value { b"true" } else { b"false" });
        self
    }

    #[inline(always)]
    pub(crate) fn integer(&mut self, name: Name, value: u64) -> &mut Self {
        write_integer(self.name(name), value);
        self
    }

    /// Writes a number, or null.
    #[inline(always)]
    pub(crate) fn integer_or_null(&mut self, name: Name, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => write_integer(self.name(name), value),
            None => self.name(name).extend_from_slice(b"null"),
        }
        self
    }

    /// Writes a number, or omits the field.
    #[inline(always)]
    pub(crate) fn integer_if_some(&mut self, name: Name, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            write_integer(self.name(name), value);
        }
        self
    }

    /// Writes milliseconds as exact decimal seconds, or null.
    pub(crate) fn seconds_or_null(&mut self, name: Name, millis: Option<u64>) -> &mut Self {
        let text = self.name(name);
        match millis {
            Some(millis) => {
                write_integer(text, millis / 1000);
                text.push(b'.');
                let thousandths = millis % 1000;
                // Without trailing zeros, as other JSON writers do: 250 is .25 and 0 is .0.
                let (digits, width) = match thousandths {
                    n if n.is_multiple_of(100) => (n / 100, 1),
                    n if n.is_multiple_of(10) => (n / 10, 2),
                    n => (n, 3),
                };
                text.extend_from_slice(format!("{digits:0width$}").as_bytes());
            }
            None => text.extend_from_slice(b"null"),
        }
        self
    }

    pub(crate) fn text(&mut self, name: Name, value: &str) -> &mut Self {
        write_text(self.name(name), value);
        self
    }

    /// Writes a string that needs no escaping: a constant, or the name of a rule or limit.
    #[inline(always)]
    pub(crate) fn word(&mut self, name: Name, value: &str) -> &mut Self {
        write_word(self.name(name), value);
        self
    }

    /// Writes a word, or null.
    #[inline(always)]
    pub(crate) fn word_or_null(&mut self, name: Name, value: Option<&str>) -> &mut Self {
        let text = self.name(name);
        match value {
            Some(value) => write_word(text, value),
            None => text.extend_from_slice(b"null"),
        }
        self
    }

    /// Writes a string, or omits the field.
    pub(crate) fn text_if_some(&mut self, name: Name, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            write_text(self.name(name), value);
        }
        self
    }

    /// Writes a list; `write` writes each item.
    pub(crate) fn list<T>(
        &mut self,
        name: Name,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        write_list(self.name(name), items, write);
        self
    }

    /// Writes the name of the next field.
    #[inline(always)]
    fn name(&mut self, name: Name) -> &mut Vec<u8> {
        let name = name.0.as_bytes();
        // The first field has no comma.
        let name = if self.is_begun { name } else { name.get(1..).unwrap_or_default() };
        self.is_begun = true;
        self.text.extend_from_slice(name);
        self.text
    }
}

fn write_list<T>(
    text: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    text.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write(text, item);
    }
    text.push(b']');
}

fn write_integer(text: &mut Vec<u8>, value: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_word(text: &mut Vec<u8>, value: &str) {
    text.push(b'"');
    text.extend_from_slice(value.as_bytes());
    text.push(b'"');
}

fn write_text(text: &mut Vec<u8>, value: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if value.bytes().all(is_plain) {
        write_word(text, value);
    } else {
        // Writing a string to a `Vec` cannot fail.
        let _ = serde_json::to_writer(text, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(write: impl FnOnce(&mut Object<'_>)) -> Value {
        let mut text = Vec::new();
        let mut object = Object::begin(&mut text);
        write(&mut object);
        object.end();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn every_field_type_round_trips() {
        let object = written(|object| {
            object
                .boolean(name!("yes"), true)
                .boolean(name!("no"), false)
                .integer(name!("max"), u64::MAX)
                .integer_or_null(name!("some"), Some(0))
                .integer_or_null(name!("none"), None)
                .integer_if_some(name!("omitted"), None)
                .word(name!("word"), "token_bucket")
                .text(name!("text"), "a\"\\\n\u{0}\u{202e}ä💥")
                .text_if_some(name!("absent"), None)
                .list(name!("list"), [1, 2], write_integer);
        });
        let expected = json!({
            "yes": true, "no": false, "max": u64::MAX, "some": 0, "none": null,
            "word": "token_bucket", "text": "a\"\\\n\u{0}\u{202e}ä💥", "list": [1, 2],
        });
        assert_eq!(object, expected);
        assert_eq!(written(|_| {}), json!({}));
    }

    #[test]
    fn seconds_are_exact() {
        for (millis, seconds) in
            [(0, "0.0"), (1, "0.001"), (10, "0.01"), (100, "0.1"), (5250, "5.25"), (60_000, "60.0")]
        {
            let mut text = Vec::new();
            Object::begin(&mut text).seconds_or_null(name!("s"), Some(millis));
            assert_eq!(String::from_utf8(text).unwrap(), format!("{{\"s\":{seconds}"));
        }
    }
}
