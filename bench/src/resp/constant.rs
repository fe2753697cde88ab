//! The baseline server: tokio with a constant reply.

use std::io::{self, Write};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use crate::Outcome;

/// Size of the first input buffer of a connection in bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// Sends the reply for every command that it receives, for those that arrive together in one write. Has one worker, since
/// the process has one core. Logs the listening address to standard error, as tollgate does.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(listen: SocketAddr, reply: &str) -> Outcome<()> {
    let reply: &'static [u8] = reply.as_bytes().to_vec().leak();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        writeln!(io::stderr(), "listening on resp://{}", listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(answer(stream, reply));
        }
    })
}

/// Answers commands until the client disconnects.
async fn answer(mut stream: TcpStream, reply: &'static [u8]) -> io::Result<()> {
    let (mut received, mut out) = (Vec::with_capacity(BUFFER_BYTES), Vec::new());
    while stream.read_buf(&mut received).await? > 0 {
        let mut start = 0;
        while let Some(bytes) = command_bytes(received.get(start..).unwrap_or_default()) {
            start += bytes;
            out.extend_from_slice(reply);
        }
        received.drain(..start);
        stream.write_all(&out).await?;
        out.clear();
    }
    Ok(())
}

/// Returns the length of the first command in bytes: an array of strings. `None` if it is incomplete.
fn command_bytes(received: &[u8]) -> Option<usize> {
    let (strings, mut length) = number_line(received)?;
    for _ in 0..strings {
        let (bytes, line) = number_line(received.get(length..)?)?;
        length += line + bytes + 2;
    }
    (length <= received.len()).then_some(length)
}

/// Returns the number in a line such as `$13`, and the length of the line in bytes.
fn number_line(received: &[u8]) -> Option<(usize, usize)> {
    let end = received.iter().position(|byte| *byte == b'\r')?;
    let digits = received.get(1..end)?;
    let number = digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit & 15));
    Some((number, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::command::Command;

    #[test]
    fn command_is_complete_only_with_its_last_byte() {
        let request = Command::ClThrottle.request();
        for end in 0..request.len() {
            assert_eq!(command_bytes(&request[..end]), None, "{end}");
        }
        assert_eq!(command_bytes(&request), Some(request.len()));
        assert_eq!(command_bytes(&request.repeat(2)), Some(request.len()));
    }
}
