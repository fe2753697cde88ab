//! A flood of distinct keys: pipelined `CL.THROTTLE` commands over several RESP connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::{AddAssign, Range};
use std::thread;
use std::time::Duration;

use crate::canary::CHECK_TOKEN;

/// The begin of every key.
pub const PREFIX: &str = "flood-";

/// The length of the shortest key, in bytes.
pub const KEY_BYTES: u64 = 15;

/// The maximum number of commands per write.
const PIPELINE: u64 = 500;

/// Time-out of a reply: longer than any node may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The number of replies of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replies {
    /// Allowed.
    pub allowed: u64,
    /// Refused by the limit.
    pub refused: u64,
    /// Errors, such as `OVERLOADED`.
    pub errors: u64,
}

impl Replies {
    /// The number of all replies.
    pub fn all(&self) -> u64 {
        self.allowed + self.refused + self.errors
    }
}

impl AddAssign for Replies {
    fn add_assign(&mut self, other: Self) {
        self.allowed += other.allowed;
        self.refused += other.refused;
        self.errors += other.errors;
    }
}

/// A flood: each number has its own key and a bucket of three requests.
#[derive(Debug, Clone, Copy)]
pub struct Flood {
    /// The RESP listener.
    pub address: SocketAddr,
    /// The number of connections.
    pub connections: u64,
    /// The time in which three requests are refilled, in seconds.
    pub period: u32,
    /// The length of every key, in bytes; at least [`KEY_BYTES`].
    pub key_bytes: u64,
}

impl Flood {
    /// Sends one command for each number.
    pub fn send(self, numbers: Range<u64>) -> Replies {
        let each = (numbers.end - numbers.start).div_ceil(self.connections);
        thread::scope(|scope| {
            let part = |nth: u64| {
                let begin = numbers.start + nth * each;
                let part = begin.min(numbers.end)..(begin + each).min(numbers.end);
                scope.spawn(move || self.send_part(part))
            };
            let senders: Vec<_> = (0..self.connections).map(part).collect();
            let mut all = Replies::default();
            for sender in senders {
                all += sender.join().expect("a sender does not panic");
            }
            all
        })
    }

    fn send_part(self, numbers: Range<u64>) -> Replies {
        let Self { address, period, key_bytes, .. } = self;
        let padding = "x".repeat(usize::try_from(key_bytes - KEY_BYTES).expect("a length"));
        let mut stream = TcpStream::connect(address).expect("the node accepts connections");
        stream.set_read_timeout(Some(TIMEOUT)).expect("the time-out is not zero");
        stream.set_nodelay(true).expect("TCP has the option");
        let login = format!("AUTH {CHECK_TOKEN}\r\n");
        stream.write_all(login.as_bytes()).expect("the node reads");
        let mut ok = [0; 5];
        stream.read_exact(&mut ok).expect("the node replies");
        assert_eq!(&ok, b"+OK\r\n");
        let (mut all, mut next) = (Replies::default(), numbers.start);
        while next < numbers.end {
            let end = (next + PIPELINE).min(numbers.end);
            let mut commands = Vec::new();
            for number in next..end {
                // Writing to a vector does not fail.
                let _ =
                    write!(commands, "CL.THROTTLE {PREFIX}{number:09}{padding} 2 3 {period}\r\n");
            }
            stream.write_all(&commands).expect("the node reads");
            all += read_replies(&mut stream, end - next);
            next = end;
        }
        all
    }
}

/// Reads `count` replies. An array has five numbers; an error is one line.
fn read_replies(stream: &mut TcpStream, count: u64) -> Replies {
    let (mut replies, mut unread) = (Replies::default(), Vec::new());
    let mut bytes = vec![0; 64 << 10];
    // The number of lines that belong to the current array.
    let mut lines_left = 0;
    while replies.all() < count || lines_left > 0 {
        let read = stream.read(&mut bytes).expect("the node replies");
        assert_ne!(read, 0, "the node closed the connection after {replies:?}");
        unread.extend_from_slice(&bytes[..read]);
        let complete = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in unread[..complete].split_inclusive(|byte| *byte == b'\n') {
            match line[0] {
                b'*' => lines_left = 5,
                b'-' => replies.errors += 1,
                _ if lines_left == 5 => {
                    let kind =
                        if line[1] == b'0' { &mut replies.allowed } else { &mut replies.refused };
                    *kind += 1;
                    lines_left -= 1;
                }
                _ => lines_left -= 1,
            }
        }
        unread.drain(..complete);
    }
    replies
}
