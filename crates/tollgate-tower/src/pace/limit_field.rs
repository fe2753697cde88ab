//! The field `RateLimit` of the IETF draft: a list of structured fields (RFC 9651), such as
//! `"burst";r=0;t=30`.
//!
//! Strict: a field that is not such a list, or names a limit by anything but a string, says nothing.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What a limit says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Service {
    /// `r`: what remains.
    remaining: Option<u64>,
    /// `t`: in how many seconds there is more.
    reset: Option<u64>,
}

/// In how many seconds there is room again in all limits that are used up; none if none says so.
pub(super) fn used_up_for(field: &str) -> Option<u64> {
    let used_up = parse(field)?.into_iter().filter(|service| service.remaining == Some(0));
    used_up.filter_map(|service| service.reset).max()
}

fn parse(field: &str) -> Option<Vec<Service>> {
    let mut rest = Rest(field.as_bytes());
    let mut services = Vec::new();
    rest.skip(b" ");
    if rest.0.is_empty() {
        return Some(services);
    }
    loop {
        services.push(rest.service()?);
        rest.skip(b" \t");
        if rest.0.is_empty() {
            return Some(services);
        }
        rest.expect(b',')?;
        rest.skip(b" \t");
    }
}

/// A value, as far as it matters here.
enum Value {
    Integer(i64),
    Other,
}

/// What is still to be read.
struct Rest<'f>(&'f [u8]);

impl<'f> Rest<'f> {
    fn skip(&mut self, bytes: &[u8]) {
        self.run(|byte| bytes.contains(&byte));
    }

    /// As many bytes as are of a kind.
    fn run(&mut self, is_of: impl Fn(u8) -> bool) -> &'f [u8] {
        let length = self.0.iter().position(|byte| !is_of(*byte)).unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest;
        run
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

    fn service(&mut self) -> Option<Service> {
        self.expect(b'"')?;
        self.string()?;
        let mut service = Service::default();
        while self.eat(b';') {
            self.skip(b" ");
            let key = self.key()?;
            let value = if self.eat(b'=') { self.value()? } else { Value::Other };
            let number = match value {
                Value::Integer(number) => u64::try_from(number).ok(),
                Value::Other => None,
            };
            // Of two of the same name the later one counts.
            match key {
                b"r" => service.remaining = number,
                b"t" => service.reset = number,
                _ => {}
            }
        }
        Some(service)
    }

    fn key(&mut self) -> Option<&'f [u8]> {
        let first = *self.0.first()?;
        if !first.is_ascii_lowercase() && first != b'*' {
            return None;
        }
        Some(self.run(|byte| {
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
                self.run(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
            }
            _ => return None,
        }
        Some(Value::Other)
    }

    /// An integer of up to 15 digits, or a decimal of up to 12 with up to 3 behind the point.
    fn number(&mut self) -> Option<Value> {
        let is_negative = self.eat(b'-');
        let whole = self.run(|byte| byte.is_ascii_digit());
        if !(1..=15).contains(&whole.len()) {
            return None;
        }
        if self.eat(b'.') {
            let fraction = self.run(|byte| byte.is_ascii_digit());
            let is_decimal = whole.len() <= 12 && (1..=3).contains(&fraction.len());
            return is_decimal.then_some(Value::Other);
        }
        let number: i64 = std::str::from_utf8(whole).ok()?.parse().ok()?;
        Some(Value::Integer(if is_negative { -number } else { number }))
    }

    /// The rest of a string, whose first quote is behind us.
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

    /// The rest of a string beyond ASCII, whose percent sign is behind us.
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

    /// The rest of a sequence of bytes in base64, whose first colon is behind us.
    fn bytes(&mut self) -> Option<()> {
        let text = self.run(|byte| byte != b':');
        self.expect(b':')?;
        let lenient = GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        GeneralPurpose::new(&STANDARD, lenient).decode(text).ok().map(drop)
    }
}

#[cfg(test)]
mod tests;
