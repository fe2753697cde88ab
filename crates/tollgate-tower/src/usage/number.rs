//! Numbers of JSON, byte by byte.

/// The maximum figure: integers above it are not exact in every JSON parser.
const MAX_FIGURE: u64 = 1 << 53;

/// A number that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    part: Part,
    /// The value so far; `None` if it is negative, not an integer or too large.
    integer: Option<u64>,
}

/// What was read last.
#[derive(Debug, Clone, Copy)]
enum Part {
    Minus,
    /// A first digit 0, which no further digit may follow.
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    /// Starts a number with its first byte; `None` if no number starts with it.
    pub(super) fn starting_with(byte: u8) -> Option<Self> {
        let (part, integer) = match byte {
            b'-' => (Part::Minus, None),
            b'0' => (Part::Zero, Some(0)),
            b'1'..=b'9' => (Part::Integer, Some(u64::from(byte - b'0'))),
            _ => return None,
        };
        Some(Self { part, integer })
    }

    /// Returns the number continued with `byte`; `None` if the number ends before it.
    pub(super) fn continued_with(self, byte: u8) -> Option<Self> {
        let part = match (self.part, byte) {
            (Part::Minus, b'0') => Part::Zero,
            (Part::Minus | Part::Integer, b'0'..=b'9') => Part::Integer,
            (Part::Zero | Part::Integer, b'.') => Part::Point,
            (Part::Point | Part::Fraction, b'0'..=b'9') => Part::Fraction,
            (Part::Zero | Part::Integer | Part::Fraction, b'e' | b'E') => Part::Exponent,
            (Part::Exponent, b'+' | b'-') => Part::ExponentSign,
            (Part::Exponent | Part::ExponentSign | Part::ExponentDigits, b'0'..=b'9') => {
                Part::ExponentDigits
            }
            _ => return None,
        };
        let appended = |integer: u64| {
            let digit = u64::from(byte.checked_sub(b'0')?);
            integer.checked_mul(10)?.checked_add(digit).filter(|integer| *integer <= MAX_FIGURE)
        };
        let integer = self.integer.filter(|_| matches!(part, Part::Integer)).and_then(appended);
        Some(Self { part, integer })
    }

    /// Returns the complete number: an integer from 0 to 2^53, `Some(None)` for other numbers. `None` if more must follow.
    pub(super) const fn end(self) -> Option<Option<u64>> {
        match self.part {
            Part::Zero | Part::Integer | Part::Fraction | Part::ExponentDigits => {
                Some(self.integer)
            }
            Part::Minus | Part::Point | Part::Exponent | Part::ExponentSign => None,
        }
    }
}
