//! Commands, as arrays of strings in one piece of memory.

use bytes::Bytes;

use super::REPLY_CAP;

/// Room for the longest head: an asterisk, twenty digits, the end of the line.
const HEAD: usize = 23;

/// What an argument takes beside its own bytes, at most, if it is shorter than 10 MB.
const ARGUMENT: usize = 1 + 7 + 2 + 2;

const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A command being written.
///
/// The head tells how many arguments follow, which is known last: room is left for it.
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

    /// Without a name yet: that is the first argument. Memory is taken once if there are no more than
    /// so many arguments with so many bytes in all.
    pub(crate) fn with_capacity(arguments: usize, bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(HEAD + arguments * ARGUMENT + bytes);
        buffer.resize(HEAD, 0);
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

    /// Lets the reply be longer, or shorter, than [`REPLY_CAP`].
    pub(crate) fn reply_up_to(mut self, bytes: usize) -> Self {
        self.reply_cap = bytes;
        self
    }

    pub(crate) fn reply_cap(&self) -> usize {
        self.reply_cap
    }

    /// Lets a cluster's node answer for a slot that is on its way to it, if so.
    pub(crate) fn asking(mut self, is_asking: bool) -> Self {
        self.is_asking = is_asking;
        self
    }

    /// How many replies come before the one that matters.
    pub(crate) fn replies_before(&self) -> usize {
        usize::from(self.is_asking)
    }

    /// The whole command as it goes over the wire.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        let mut head = Vec::with_capacity(HEAD);
        head.push(b'*');
        put_decimal(&mut head, self.arguments);
        head.extend_from_slice(b"\r\n");
        let start = HEAD - head.len();
        if let Some(room) = self.bytes.get_mut(start..HEAD) {
            room.copy_from_slice(&head);
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
