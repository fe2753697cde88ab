//! Those who watch: all that a page does to a node.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Outcome;

/// How often it is looked whether there is an end.
const LOOK: Duration = Duration::from_millis(100);

/// Some who watch, as long as this lives.
#[derive(Debug)]
pub(super) struct Watching {
    threads: Vec<JoinHandle<Outcome<u32>>>,
    is_over: Arc<AtomicBool>,
}

impl Watching {
    /// So many watch from now on, and each has seen the last minutes.
    pub(super) fn begin(node: SocketAddr, watchers: u8) -> Outcome<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for _ in 0..watchers {
            let mut stream = TcpStream::connect(node)?;
            stream.write_all(b"GET /api/live HTTP/1.1\r\nhost: node\r\n\r\n")?;
            let mut seen: Vec<u8> = Vec::new();
            while !seen.windows(12).any(|part| part == b"event: frame") {
                let mut bytes = [0; 65_536];
                let read = stream.read(&mut bytes)?;
                if read == 0 {
                    return Err("there is nothing to watch".into());
                }
                seen.extend(bytes.iter().take(read));
            }
            stream.set_read_timeout(Some(LOOK))?;
            let is_over = Arc::clone(&is_over);
            threads.push(thread::spawn(move || read_on(&mut stream, &is_over)));
        }
        Ok(Self { threads, is_over })
    }

    /// Ends it, and tells how many bytes one of them has read.
    pub(super) fn end(self) -> Outcome<u32> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut last = 0;
        for thread in self.threads {
            last = thread.join().map_err(|_| "one who watched panicked")??;
        }
        Ok(last)
    }
}

fn read_on(stream: &mut TcpStream, is_over: &AtomicBool) -> Outcome<u32> {
    let (mut all, mut bytes) = (0, [0; 65_536]);
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut bytes) {
            Ok(0) => return Err("there is nothing more to watch".into()),
            Ok(read) => all += u32::try_from(read)?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}
