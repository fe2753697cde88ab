//! The paths of the front ends: requests on one connection to a server under callgrind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use super::callgrind::Run;
use crate::Outcome;
use crate::http::codec::HttpCodec;
use crate::http::policy::Policy;
use crate::load::codec::Codec;
use crate::load::template::Numbers;
use crate::resp::codec::RespCodec;
use crate::resp::command::Command;
use crate::server::{Address, Server};

const KEYS: u32 = 1_000;

/// Commands in one write.
const PIPELINE: u32 = 16;

/// A server under callgrind is some fifty times slower.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends this many checks over HTTP, one at a time, and returns the instructions of the server.
pub(super) fn http_check(valgrind: &PathBuf, tollgate: &PathBuf, requests: u32) -> Outcome<u64> {
    let policy = Policy::Default;
    let file = policy.file()?;
    let run = Run::new()?;
    let mut command = run.command(valgrind, tollgate);
    command.args(["serve", "--http", "127.0.0.1:0", "--policy"]).arg(file.path());
    let codec = HttpCodec::post("/check", &policy.body());
    count(&run, command, "http", codec, [requests, 1])
}

/// Sends this many commands over RESP, in pipelines, and returns the instructions of the server.
pub(super) fn resp_throttle(valgrind: &PathBuf, tollgate: &PathBuf, requests: u32) -> Outcome<u64> {
    let run = Run::new()?;
    let mut command = run.command(valgrind, tollgate);
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    let codec = RespCodec::new(Command::ClThrottle);
    count(&run, command, "resp", codec, [requests / PIPELINE, PIPELINE])
}

fn count(
    run: &Run,
    mut command: std::process::Command,
    scheme: &'static str,
    codec: impl Codec,
    [writes, pipeline]: [u32; 2],
) -> Outcome<u64> {
    // With one worker, no instructions are spent on looking for work of others.
    command.env("TOKIO_WORKER_THREADS", "1");
    let server = Server::start(command, Address::Logged(scheme))?;
    send(server.address(), codec, writes, pipeline)?;
    server.stop()?;
    run.instructions()
}

/// Sends `writes` times `pipeline` requests and waits for the responses of each write.
fn send(address: SocketAddr, mut codec: impl Codec, writes: u32, pipeline: u32) -> Outcome<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let (mut out, mut received, mut buffer) = (Vec::new(), Vec::new(), [0; 16_384]);
    for write in 0..writes {
        out.clear();
        for nth in 0..pipeline {
            let numbers = Numbers { key: (write * pipeline + nth) % KEYS, rule: 0 };
            codec.encode(numbers, &mut out)?;
        }
        stream.write_all(&out)?;
        let mut waiting = pipeline;
        while waiting > 0 {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err("the server closed the connection".into());
            }
            received.extend_from_slice(buffer.get(..bytes).unwrap_or_default());
            while let Some(part) = codec.decode(&received, &mut out)? {
                received.drain(..part.bytes);
                waiting -= u32::from(part.payload.is_some());
            }
        }
    }
    Ok(())
}
