//! Reads the figures of JSON documents, byte by byte and without keeping the document.

use super::figures::{Figure, Figures};
use super::number::Number;
use super::place::Place;

/// The maximum depth of nesting. Deeper documents are ignored.
const MAX_DEPTH: usize = 128;

/// The maximum length of the name of a field. Longer names are never those of usage or text.
const MAX_NAME: usize = 32;

/// A parser of one JSON document after the other.
#[derive(Debug)]
pub(super) struct JsonScanner {
    state: State,
    /// The open objects and arrays, at most `MAX_DEPTH`.
    open: Vec<Container>,
    /// The place of the next value, or of the one that is being read.
    place: Place,
    name: Name,
    /// Figures of the document, or of the item if the document is an array.
    figures: Figures,
}

#[derive(Debug, Clone, Copy)]
enum Container {
    /// An object, with its place.
    Object(Place),
    /// An array, with the place of its items.
    Array(Place),
}

/// What is expected next.
#[derive(Debug, Clone, Copy)]
enum State {
    Value,
    /// A value, or the end of an empty array.
    FirstItem,
    /// A field, or the end of an empty object.
    FirstField,
    Field,
    Colon,
    /// A comma, the end of the array or object, or nothing more.
    AfterValue,
    String(Role),
    Escape(Role),
    /// The rest of `\u0000`: the number of digits left, and the value of those before.
    Unicode(Role, u8, u16),
    Number(Number),
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    /// The document is not valid JSON. The rest of it is ignored.
    Invalid,
}

/// What a string is.
#[derive(Debug, Clone, Copy)]
enum Role {
    Name,
    Value,
}

impl JsonScanner {
    pub(super) fn new() -> Self {
        Self {
            state: State::Value,
            open: Vec::with_capacity(MAX_DEPTH),
            place: Place::Event,
            name: Name::default(),
            figures: Figures::default(),
        }
    }

    /// Reads the next bytes of the document. Adds the complete items to `total` if the document is an array.
    pub(super) fn push(&mut self, mut bytes: &[u8], total: &mut Figures) {
        while let Some((first, rest)) = bytes.split_first() {
            bytes = match self.state {
                State::Invalid => return,
                State::String(role) => self.read_string(role, bytes, total),
                _ => {
                    self.state = self.step(*first, total);
                    rest
                }
            };
        }
    }

    /// Ends the document. Adds it to `total` if it is complete and valid.
    pub(super) fn end(&mut self, total: &mut Figures) {
        if matches!(self.state, State::AfterValue) && self.open.is_empty() {
            total.add_event(self.figures);
        }
        self.state = State::Value;
        self.open.clear();
        self.place = Place::Event;
        self.figures = Figures::default();
    }

    /// Reads the characters of a string up to an escape or its end. Returns the remaining bytes.
    fn read_string<'b>(&mut self, role: Role, bytes: &'b [u8], total: &mut Figures) -> &'b [u8] {
        let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let (plain, rest) = bytes.split_at(bytes.iter().take_while(is_plain).count());
        match role {
            Role::Name => self.name.append(plain),
            Role::Value => self.add_text(plain.len()),
        }
        let Some((delimiter, rest)) = rest.split_first() else { return rest };
        self.state = match (delimiter, role) {
            (b'\\', _) => State::Escape(role),
            (b'"', Role::Name) => State::Colon,
            (b'"', Role::Value) => self.end_value(total),
            _ => State::Invalid,
        };
        rest
    }

    /// Returns the state after a byte outside of the plain characters of a string.
    fn step(&mut self, byte: u8, total: &mut Figures) -> State {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.state {
            State::Escape(role) => self.escape(role, byte),
            State::Unicode(role, left, unit) => self.unicode(role, left, unit, byte),
            State::Number(number) => match number.continued_with(byte) {
                Some(number) => State::Number(number),
                None => self.end_number(number, byte, total),
            },
            State::Literal(rest) => match rest.split_first() {
                Some((expected, [])) if *expected == byte => self.end_value(total),
                Some((expected, rest)) if *expected == byte => State::Literal(rest),
                _ => State::Invalid,
            },
            unchanged if is_space => unchanged,
            State::FirstItem if byte == b']' => self.close(byte, total),
            State::FirstField if byte == b'}' => self.close(byte, total),
            State::Value | State::FirstItem => self.start_value(byte),
            State::FirstField | State::Field if byte == b'"' => {
                self.name = Name::default();
                State::String(Role::Name)
            }
            State::Colon if byte == b':' => self.start_field(),
            State::AfterValue => self.after_value(byte, total),
            _ => State::Invalid,
        }
    }

    fn start_value(&mut self, byte: u8) -> State {
        match byte {
            b'"' => State::String(Role::Value),
            b'{' => self.open(Container::Object(self.place), State::FirstField),
            b'[' => self.open(Container::Array(self.place.item()), State::FirstItem),
            b't' => State::Literal(b"rue"),
            b'f' => State::Literal(b"alse"),
            b'n' => State::Literal(b"ull"),
            _ => Number::starting_with(byte).map_or(State::Invalid, State::Number),
        }
    }

    fn open(&mut self, container: Container, state: State) -> State {
        if self.open.len() == MAX_DEPTH {
            return State::Invalid;
        }
        self.open.push(container);
        if let Container::Array(item) = container {
            self.place = item;
        }
        state
    }

    fn start_field(&mut self) -> State {
        let Some(Container::Object(place)) = self.open.last() else { return State::Invalid };
        self.place = place.field(self.name.as_bytes());
        State::Value
    }

    fn after_value(&mut self, byte: u8, total: &mut Figures) -> State {
        match (byte, self.open.last()) {
            (b',', Some(Container::Object(_))) => State::Field,
            (b',', Some(Container::Array(item))) => {
                self.place = *item;
                State::Value
            }
            _ => self.close(byte, total),
        }
    }

    /// Ends the innermost object or array with this byte.
    fn close(&mut self, byte: u8, total: &mut Figures) -> State {
        match (byte, self.open.pop()) {
            (b'}', Some(Container::Object(_))) | (b']', Some(Container::Array(_))) => {
                self.end_value(total)
            }
            _ => State::Invalid,
        }
    }

    /// Ends a number before `byte`.
    fn end_number(&mut self, number: Number, byte: u8, total: &mut Figures) -> State {
        let Some(integer) = number.end() else { return State::Invalid };
        if let (Place::Figure(figure), Some(integer)) = (self.place, integer) {
            self.set(figure, integer);
        }
        self.state = self.end_value(total);
        self.step(byte, total)
    }

    const fn set(&mut self, figure: Figure, integer: u64) {
        self.figures.set(figure, integer);
    }

    fn end_value(&mut self, total: &mut Figures) -> State {
        // Each item of Gemini's JSON stream is an event, also if the stream ends before the array.
        if let [Container::Array(_)] = self.open.as_slice() {
            total.add_event(std::mem::take(&mut self.figures));
        }
        State::AfterValue
    }

    fn add_text(&mut self, bytes: usize) {
        if self.place.is_text() {
            self.figures.add_text(bytes);
        }
    }

    fn escape(&mut self, role: Role, byte: u8) -> State {
        self.name.append_escape();
        match byte {
            b'u' => return State::Unicode(role, 4, 0),
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
            _ => return State::Invalid,
        }
        if let Role::Value = role {
            self.add_text(1);
        }
        State::String(role)
    }

    /// Reads a digit of `\u0000`. The text has the length of its UTF-8; each half of a surrogate pair has 2 bytes.
    fn unicode(&mut self, role: Role, left: u8, unit: u16, byte: u8) -> State {
        let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
        let Some(digit) = digit else { return State::Invalid };
        let unit = (unit << 4) | digit;
        if left > 1 {
            return State::Unicode(role, left - 1, unit);
        }
        if let Role::Value = role {
            self.add_text(match unit {
                0..0x80 => 1,
                0x80..0x800 | 0xd800..0xe000 => 2,
                _ => 3,
            });
        }
        State::String(role)
    }
}

/// The name of a field: empty if it is longer than `MAX_NAME` or contains an escape, which no provider writes there.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    bytes: [u8; MAX_NAME],
    length: usize,
    is_unknown: bool,
}

impl Name {
    fn append(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        match self.bytes.get_mut(self.length..end) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.is_unknown = true,
        }
    }

    const fn append_escape(&mut self) {
        self.is_unknown = true;
    }

    fn as_bytes(&self) -> &[u8] {
        let known = self.bytes.get(..self.length).filter(|_| !self.is_unknown);
        known.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
