//! A single request to a server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::codec::Codec;
use super::template::Numbers;
use crate::Outcome;

/// Maximum time to wait for bytes of the response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends one request for key 0 and returns the part of the received bytes that completes the response.
///
/// # Errors
/// The response does not allow the request, or the connection is lost.
pub fn exchange(address: SocketAddr, codec: &mut impl Codec) -> Outcome<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let (mut out, mut received, mut buffer) = (Vec::new(), Vec::new(), [0; 4096]);
    codec.open(&mut out);
    codec.encode(Numbers { key: 0, rule: 0 }, &mut out)?;
    loop {
        stream.write_all(&out)?;
        out.clear();
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err("the server closed the connection".into());
        }
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        while let Some(part) = codec.decode(&received, &mut out)? {
            let rest = received.split_off(part.bytes);
            let bytes = std::mem::replace(&mut received, rest);
            if part.payload.is_some() {
                return Ok(bytes);
            }
        }
    }
}
