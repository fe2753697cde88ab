//! Encoding of protobuf messages field by field, without a struct for each message.

/// Wire types.
const VARINT: u8 = 0;
const LENGTH_DELIMITED: u8 = 2;

/// The number of a field, from 1 to 15, so that its key is one byte.
type Field = u8;

/// The encoded fields of a message. As usual in proto3, fields with the default value are omitted.
#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns the encoded fields so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends encoded fields.
    pub(super) fn append(&mut self, encoded: &[u8]) {
        self.0.extend_from_slice(encoded);
    }

    /// Encodes a number, or an enum value, that is not negative.
    pub(super) fn number(&mut self, field: Field, number: u64) {
        if number != 0 {
            self.0.push(key(field, VARINT));
            self.varint(number);
        }
    }

    /// Encodes a text that consists of these parts.
    pub(super) fn text(&mut self, field: Field, parts: &[&str]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length != 0 {
            self.0.push(key(field, LENGTH_DELIMITED));
            self.varint(length.try_into().unwrap_or(u64::MAX));
            for part in parts {
                self.append(part.as_bytes());
            }
        }
    }

    /// Encodes a message, whose fields are written by `write`.
    pub(super) fn message(&mut self, field: Field, write: impl FnOnce(&mut Self)) {
        self.0.extend_from_slice(&[key(field, LENGTH_DELIMITED), 0]);
        let begin = self.0.len();
        write(self);
        let length = self.0.len().saturating_sub(begin);
        match (u8::try_from(length), self.0.get_mut(begin.saturating_sub(1))) {
            (Ok(length @ ..0x80), Some(place)) => *place = length,
            _ => self.insert_length(begin, length),
        }
    }

    /// Replaces the byte before the begin of a message by a length that needs more than one.
    fn insert_length(&mut self, begin: usize, length: usize) {
        let mut encoded = Self::default();
        encoded.varint(length.try_into().unwrap_or(u64::MAX));
        self.0.splice(begin.saturating_sub(1)..begin, encoded.0);
    }

    fn varint(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.0.push(low & 0x7f);
            }
            self.0.push(low | 0x80);
        }
    }
}

const fn key(field: Field, wire_type: u8) -> u8 {
    field << 3 | wire_type
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::grpc::proto::HeaderValue;

    #[test]
    fn encodes_as_prost() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut encoder = Encoder::default();
            encoder.number(1, number);
            assert_eq!(encoder.into_bytes(), number.encode_to_vec(), "{number}");
        }
        for length in [0, 1, 127, 128, 20_000] {
            let (name, value) = ("n".repeat(length), "v".repeat(length / 2));
            let mut encoder = Encoder::with_capacity(4);
            encoder.text(1, &[&name]);
            encoder.text(2, &[&value, "", &value]);
            let header = HeaderValue { key: name, value: value.repeat(2) };
            assert_eq!(encoder.as_bytes(), header.encode_to_vec(), "{length}");
        }
    }

    #[test]
    fn lengths_of_messages_have_one_or_more_bytes() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
            let mut encoder = Encoder::default();
            encoder.number(1, 5);
            encoder.message(2, |inner| inner.append(&vec![9; length]));
            encoder.number(3, 7);
            let mut expected = Encoder::default();
            expected.number(1, 5);
            expected.text(2, &[&"\t".repeat(length)]);
            if length == 0 {
                // An empty message is present, unlike an empty text.
                expected.append(&[0x12, 0]);
            }
            expected.number(3, 7);
            assert_eq!(encoder.into_bytes(), expected.into_bytes(), "{length}");
        }
    }
}
