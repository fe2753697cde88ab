//! Parser of the `RateLimit` header of the IETF draft: a structured field list (RFC 9651) such as `"burst";r=0;t=30`.
//!
//! Strict: a field that is not a valid list, or whose limit name is not a string, is ignored.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// One limit of the list.
#[derive(Debug, Default, PartialEq, Eq)]
struct LimitItem {
    /// `r`: the remaining amount.
    remaining: Option<u64>,
    /// `t`: seconds until more is available.
    reset: Option<u64>,
}

/// Returns the seconds until all exhausted limits are available again; none if no exhausted limit has a time.
pub(super) fn exhausted_for(field: &str) -> Option<u64> {
    let exhausted = parse(field)?.into_iter().filter(|item| item.remaining == Some(0));
    exhausted.filter_map(|item| item.reset).max()
}

fn parse(field: &str) -> Option<Vec<LimitItem>> {
    let mut cursor = Cursor(field.as_bytes());
    let mut items = Vec::new();
    cursor.skip(b" ");
    if cursor.0.is_empty() {
        return Some(items);
    }
    loop {
        items.push(cursor.item()?);
        cursor.skip(b" \t");
        if cursor.0.is_empty() {
            return Some(items);
        }
        cursor.expect(b',')?;
        cursor.skip(b" \t");
    }
}

/// A parameter value; only integers matter.
enum Value {
    Integer(i64),
    Other,
}

/// The unread part of the field.
struct Cursor<'f>(&'f [u8]);

impl<'f> Cursor<'f> {
    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }

    /// Consumes the bytes that match the predicate.
    fn take_while(&mut self, is_match: impl Fn(u8) -> bool) -> &'f [u8] {
        let length = self.0.iter().position(|byte| !is_match(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.0.first() == Some(&byte);
        if is_there {
            self.next();
        }
        is_there
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    fn item(&mut self) -> Option<LimitItem> {
        self.expect(b'"')?;
        self.string()?;
        let mut item = LimitItem::default();
        while self.eat(b';') {
            self.skip(b" ");
            let key = self.key()?;
            let value = if self.eat(b'=') { self.value()? } else { Value::Other };
            let number = match value {
                Value::Integer(number) => u64::try_from(number).ok(),
                Value::Other => None,
            };
            // Of duplicate parameters the last counts.
            match key {
                b"r" => item.remaining = number,
                b"t" => item.reset = number,
                _ => {}
            }
        }
        Some(item)
    }

    fn key(&mut self) -> Option<&'f [u8]> {
        let first = *self.0.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    fn value(&mut self) -> Option<Value> {
        match self.0.first()? {
            b'-' | b'0'..=b'9' => return self.number(),
            b'"' => {
                self.next();
                self.string()?;
            }
            b':' => {
                self.next();
                self.bytes()?;
            }
            b'?' => {
                self.next();
                self.next().filter(|byte| matches!(byte, b'0' | b'1'))?;
            }
            b'%' => {
                self.next();
                self.display_string()?;
            }
            b'@' => {
                self.next();
                let Value::Integer(_) = self.number()? else { return None };
            }
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
            }
            _ => return None,
        }
        Some(Value::Other)
    }

    /// Parses an integer of up to 15 digits, or a decimal of up to 12 digits with up to 3 decimal places.
    fn number(&mut self) -> Option<Value> {
        let is_negative = self.eat(b'-');
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if !(1..=15).contains(&whole.len()) {
            return None;
        }
        if self.eat(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let is_decimal = whole.len() <= 12 && (1..=3).contains(&fraction.len());
            return is_decimal.then_some(Value::Other);
        }
        let number: i64 = std::str::from_utf8(whole).ok()?.parse().ok()?;
        Some(Value::Integer(if is_negative { -number } else { number }))
    }

    /// Parses a string after its opening quote.
    fn string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => {
                    self.next().filter(|byte| matches!(byte, b'"' | b'\\'))?;
                }
                b' '..=b'~' => {}
                _ => return None,
            }
        }
    }

    /// Parses a display string (non-ASCII) after its percent sign.
    fn display_string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return std::str::from_utf8(&bytes).ok().map(drop),
                b'%' => bytes.push(self.hex_digit()? << 4 | self.hex_digit()?),
                byte @ b' '..=b'~' => bytes.push(byte),
                _ => return None,
            }
        }
    }

    fn hex_digit(&mut self) -> Option<u8> {
        match self.next()? {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        }
    }

    /// Parses a base64 byte sequence after its opening colon.
    fn bytes(&mut self) -> Option<()> {
        let text = self.take_while(|byte| byte != b':');
        self.expect(b':')?;
        let lenient = GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(&STANDARD, lenient).decode(text).ok().map(drop)
    }
}

#[cfg(test)]
mod tests;
