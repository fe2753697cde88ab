//! Recognises a command that equals the previous one except for its key, as most commands of a connection do. Its name and
//! numbers are not parsed again.

use super::decode::{CommandParts, read_short_length};
use super::throttle::ThrottleCall;

/// The last `CL.THROTTLE` or `THROTTLE` command of a connection.
#[derive(Debug, Default)]
pub(super) struct RepeatedCommand {
    /// The bytes before the length of the key.
    head: Vec<u8>,
    /// The bytes after the key.
    tail: Vec<u8>,
    /// The decoded command, with the last key. `None` if nothing is remembered.
    call: Option<Box<ThrottleCall>>,
}

impl RepeatedCommand {
    /// Returns the call at the start of the input and its length in bytes, if it differs from the last one at most in its
    /// key.
    #[inline]
    pub(super) fn find(&mut self, input: &[u8]) -> Option<(&ThrottleCall, usize)> {
        let call = self.call.as_mut()?;
        let rest = input.strip_prefix(&*self.head)?;
        let (length, digits) = read_short_length(rest)?;
        let (key, rest) = rest.get(digits..)?.split_at_checked(usize::try_from(length).ok()?)?;
        // An empty key is an error, which the decoder reports.
        if key.is_empty() || !rest.starts_with(&self.tail) {
            return None;
        }
        call.set_key(key);
        Some((call, self.head.len() + digits + key.len() + self.tail.len()))
    }

    /// Remembers a call and the bytes around its key. Returns the call.
    pub(super) fn remember(
        &mut self,
        call: Box<ThrottleCall>,
        parts: &CommandParts<'_>,
    ) -> &ThrottleCall {
        self.head.clear();
        self.tail.clear();
        self.head.extend_from_slice(parts.head);
        self.tail.extend_from_slice(parts.tail);
        self.call.insert(call)
    }

    /// Forgets the command. A command of another kind may change what the client is allowed to do.
    pub(super) fn forget(&mut self) {
        self.call = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::resp::decode::{Bounds, Decoded, Decoder};
    use crate::resp::limit_cache::LimitCache;
    use crate::resp::throttle::{self, Convention};

    fn encode(arguments: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// Decodes the first command of an input without a previous one, and remembers it. Returns the call and its length in
    /// bytes, or `None` if it is incomplete or invalid.
    fn decode(input: &[u8], repeated: &mut RepeatedCommand) -> Option<(String, usize)> {
        let mut decoder = Decoder::default();
        let Ok(Decoded::Command { length }) = decoder.decode(input, &Bounds::AUTHENTICATED) else {
            return None;
        };
        let arguments = decoder.arguments(input);
        let call = throttle::read(Convention::Cell, &arguments, &mut LimitCache::default()).ok()?;
        let text = format!("{call:?}");
        if let Some(parts) = decoder.parts(input, length) {
            repeated.remember(Box::new(call), &parts);
        }
        Some((text, length))
    }

    fn find(input: &[u8], repeated: &mut RepeatedCommand) -> Option<(String, usize)> {
        repeated.find(input).map(|(call, length)| (format!("{call:?}"), length))
    }

    #[test]
    fn finds_commands_that_differ_in_the_key() {
        let mut repeated = RepeatedCommand::default();
        assert_eq!(find(&encode(&[b"CL.THROTTLE", b"a", b"9", b"1", b"60"]), &mut repeated), None);
        decode(&encode(&[b"CL.THROTTLE", b"a", b"9", b"1", b"60"]), &mut repeated).unwrap();
        for key in ["b", "another:key", "$1\r\na", &"k".repeat(99)] {
            let command = encode(&[b"CL.THROTTLE", key.as_bytes(), b"9", b"1", b"60"]);
            let expected = decode(&command, &mut RepeatedCommand::default());
            assert!(expected.is_some());
            let pipeline = [&command[..], b"*1\r\n$4\r\nPING\r\n"].concat();
            assert_eq!(find(&pipeline, &mut repeated), expected, "{key:?}");
            for end in 0..command.len() {
                assert_eq!(find(&command[..end], &mut repeated), None, "{end} bytes of {key:?}");
            }
        }
        for other in [
            encode(&[b"CL.THROTTLE", b"", b"9", b"1", b"60"]),
            encode(&[b"CL.THROTTLE", b"a", b"8", b"1", b"60"]),
            encode(&[b"CL.THROTTLE", b"a", b"9", b"1", b"60", b"2"]),
            encode(&[b"THROTTLE", b"a", b"9", b"1", b"60"]),
            encode(&[b"CL.THROTTLE", &b"k".repeat(100), b"9", b"1", b"60"]),
            b"CL.THROTTLE a 9 1 60\r\n".to_vec(),
        ] {
            assert_eq!(find(&other, &mut repeated), None);
        }
        repeated.forget();
        assert_eq!(find(&encode(&[b"CL.THROTTLE", b"a", b"9", b"1", b"60"]), &mut repeated), None);
    }

    fn argument() -> impl Strategy<Value = Vec<u8>> {
        let numbers = ["0", "1", "9", "60", "061", "x"].map(|text| text.as_bytes().to_vec());
        prop_oneof![4 => prop::sample::select(numbers.to_vec()), 1 => vec(any::<u8>(), 0..4)]
    }

    proptest! {
        #[test]
        fn a_found_command_is_the_decoded_one(
            pairs in vec((vec(any::<u8>(), 0..120), vec(argument(), 3..5)), 1..8),
        ) {
            let mut repeated = RepeatedCommand::default();
            for (key, numbers) in pairs {
                let mut arguments = vec![&b"CL.THROTTLE"[..], &key];
                arguments.extend(numbers.iter().map(Vec::as_slice));
                let command = encode(&arguments);
                let found = find(&command, &mut repeated);
                let decoded = decode(&command, &mut repeated);
                prop_assert!(found.is_none() || found == decoded, "{found:?} {decoded:?}");
            }
        }
    }
}
