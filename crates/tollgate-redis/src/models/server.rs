//! A server that runs the calls of the coalescer, and counts how often each plan runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tollgate::models::shuttle::rand::{Rng, thread_rng};
use tollgate::{Limit, Quota, Timestamp};

use crate::connection::model::Listener;
use crate::limit_code::{encode, read_number};
use crate::resp::{Decoder, Reply};
use crate::sync::Handle;

/// The faults that the modelled server may inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Faults {
    None,
    /// The server may lose its scripts.
    LostScripts,
    /// The server may close a connection before it runs a call, or before it replies.
    LostConnections,
}

/// How often each plan has run, by its cost.
pub(super) type Runs = Arc<Mutex<HashMap<u64, u64>>>;

/// The limit of all plans.
pub(super) fn limit() -> Limit {
    Limit::fixed_window(Quota::per_day(1_000_000)).unwrap()
}

/// Begins a server, which runs until its listener is closed and all connections are.
pub(super) fn start(faults: Faults) -> (Runs, Listener) {
    let (runs, listener) = (Runs::default(), Listener::new());
    let has_script = faults == Faults::None;
    let server = Server { runs: Arc::clone(&runs), listener: listener.clone(), faults, has_script };
    let _ = Handle.spawn(server.serve());
    (runs, listener)
}

struct Server {
    runs: Runs,
    listener: Listener,
    faults: Faults,
    has_script: bool,
}

impl Server {
    async fn serve(mut self) {
        while let Some(mut stream) = self.listener.accept().await {
            let mut decoder = Decoder::default();
            while let Some(words) = command(&mut stream, &mut decoder).await {
                let Some(reply) = self.reply(&words) else { break };
                if stream.write_all(reply.as_bytes()).await.is_err() {
                    break;
                }
            }
        }
    }

    /// Runs a command. `None`: the connection is lost.
    fn reply(&mut self, words: &[Vec<u8>]) -> Option<String> {
        let has_fault = |fault| self.faults == fault && thread_rng().gen_bool(0.25);
        if words[0] == b"EVALSHA" && (!self.has_script || has_fault(Faults::LostScripts)) {
            self.has_script = true;
            return Some("-NOSCRIPT No matching script\r\n".to_owned());
        }
        if has_fault(Faults::LostConnections) {
            return None;
        }
        let reply = self.run(words);
        (!has_fault(Faults::LostConnections)).then_some(reply)
    }

    /// Runs each plan of a call. The reply to a plan has its cost, and how often it has run.
    fn run(&self, words: &[Vec<u8>]) -> String {
        let keys: usize = std::str::from_utf8(&words[2]).unwrap().parse().unwrap();
        // A number of limits, the limits, the plans.
        let packed = &words[3 + keys];
        let mut plans = &packed[2 + encode(&limit(), Timestamp::EPOCH).1.len()..];
        let mut numbers = vec![1];
        while let [verb, takes, rest @ ..] = plans {
            assert_eq!(*takes, 1);
            // A debit has an age.
            let rest = if *verb == 4 { read_number(rest).unwrap().1 } else { rest };
            // The group, the key and the limit of the take.
            let (cost, rest) = read_number(&rest[5..]).unwrap();
            let mut runs = self.runs.lock().unwrap();
            let count = runs.entry(cost).or_default();
            *count += 1;
            numbers.extend([0, 1000 * cost + *count, 0]);
            plans = rest;
        }
        let numbers: Vec<String> = numbers.iter().map(|number| format!(":{number}\r\n")).collect();
        format!("*{}\r\n{}", numbers.len(), numbers.concat())
    }
}

/// Reads a command, which has the format of a reply. `None`: the client has closed the connection.
async fn command(stream: &mut DuplexStream, decoder: &mut Decoder) -> Option<Vec<Vec<u8>>> {
    loop {
        if let Some(Reply::Array(words)) = decoder.next(usize::MAX / 2).unwrap() {
            let bytes = |word| match word {
                Reply::Bulk(bytes) => bytes,
                other => panic!("{other:?} in a command"),
            };
            return Some(words.into_iter().map(bytes).collect());
        }
        if stream.read_buf(decoder.buffer()).await.ok()? == 0 {
            return None;
        }
    }
}
