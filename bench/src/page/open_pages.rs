//! Simulated dashboard pages: connections to `/api/live`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Outcome;

/// Interval at which readers check whether to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Open dashboard pages. Closed with [`OpenPages::end`].
#[derive(Debug)]
pub(super) struct OpenPages {
    threads: Vec<JoinHandle<Outcome<u32>>>,
    is_stopped: Arc<AtomicBool>,
}

impl OpenPages {
    /// Opens `pages` pages. Returns once each has received the initial history.
    pub(super) fn begin(node: SocketAddr, pages: u8) -> Outcome<Self> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for _ in 0..pages {
            let mut stream = TcpStream::connect(node)?;
            stream.write_all(b"GET /api/live HTTP/1.1\r\nhost: node\r\n\r\n")?;
            let mut seen: Vec<u8> = Vec::new();
            while !seen.windows(12).any(|part| part == b"event: frame") {
                let mut bytes = [0; 65_536];
                let read = stream.read(&mut bytes)?;
                if read == 0 {
                    return Err("/api/live closed before the first frame".into());
                }
                seen.extend(bytes.iter().take(read));
            }
            stream.set_read_timeout(Some(STOP_CHECK_INTERVAL))?;
            let is_stopped = Arc::clone(&is_stopped);
            threads.push(thread::spawn(move || read_until_stopped(&mut stream, &is_stopped)));
        }
        Ok(Self { threads, is_stopped })
    }

    /// Closes all pages. Returns the number of bytes that the last one has read.
    pub(super) fn end(self) -> Outcome<u32> {
        self.is_stopped.store(true, Ordering::Relaxed);
        let mut last = 0;
        for thread in self.threads {
            last = thread.join().map_err(|_| "a page thread panicked")??;
        }
        Ok(last)
    }
}

fn read_until_stopped(stream: &mut TcpStream, is_stopped: &AtomicBool) -> Outcome<u32> {
    let (mut total, mut bytes) = (0, [0; 65_536]);
    while !is_stopped.load(Ordering::Relaxed) {
        match stream.read(&mut bytes) {
            Ok(0) => return Err("/api/live closed during the measurement".into()),
            Ok(read) => total += u32::try_from(read)?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(total)
}
