//! The encoder of commands: arrays of strings in one allocation.

use bytes::Bytes;

use super::REPLY_CAP;

/// Maximum length of the header: an asterisk, twenty digits, the end of the line.
const MAX_HEADER: usize = 23;

/// Maximum overhead of an argument below 10 MB, in bytes.
const ARGUMENT_OVERHEAD: usize = 1 + 7 + 2 + 2;

const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A command under construction.
///
/// The header contains the number of arguments, which is known last: space is reserved for it.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    bytes: Vec<u8>,
    arguments: u64,
    reply_cap: usize,
    is_asking: bool,
}

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_capacity(4, 64 + name.len()).arg(name)
    }

    /// Creates a command without a name: the first argument is the name. Allocates once if the capacity is
    /// sufficient.
    pub(crate) fn with_capacity(arguments: usize, bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(MAX_HEADER + arguments * ARGUMENT_OVERHEAD + bytes);
        buffer.resize(MAX_HEADER, 0);
        Self { bytes: buffer, arguments: 0, reply_cap: REPLY_CAP, is_asking: false }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        let argument = argument.as_ref();
        self.bytes.push(b'$');
        put_decimal(&mut self.bytes, u64::try_from(argument.len()).unwrap_or(u64::MAX));
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(argument);
        self.bytes.extend_from_slice(b"\r\n");
        self.arguments += 1;
        self
    }

    pub(crate) fn number(self, number: u64) -> Self {
        let mut digits = Vec::with_capacity(20);
        put_decimal(&mut digits, number);
        self.arg(digits)
    }

    /// Sets the maximum reply in bytes, in place of [`REPLY_CAP`].
    pub(crate) fn reply_up_to(mut self, bytes: usize) -> Self {
        self.reply_cap = bytes;
        self
    }

    pub(crate) fn reply_cap(&self) -> usize {
        self.reply_cap
    }

    /// Sets whether to send `ASKING` first, for a slot that is migrating to the node.
    pub(crate) fn asking(mut self, is_asking: bool) -> Self {
        self.is_asking = is_asking;
        self
    }

    /// Returns the number of replies before the reply to the command.
    pub(crate) fn skipped_replies(&self) -> usize {
        usize::from(self.is_asking)
    }

    /// Returns the command in wire format.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        let mut header = Vec::with_capacity(MAX_HEADER);
        header.push(b'*');
        put_decimal(&mut header, self.arguments);
        header.extend_from_slice(b"\r\n");
        let start = MAX_HEADER - header.len();
        if let Some(header_space) = self.bytes.get_mut(start..MAX_HEADER) {
            header_space.copy_from_slice(&header);
        }
        let command = Bytes::from(self.bytes).slice(start..);
        if !self.is_asking {
            return command;
        }
        Bytes::from([ASKING, &command].concat())
    }
}

fn put_decimal(buffer: &mut Vec<u8>, mut number: u64) {
    let start = buffer.len();
    loop {
        buffer.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if let Some(digits) = buffer.get_mut(start..) {
        digits.reverse();
    }
}
