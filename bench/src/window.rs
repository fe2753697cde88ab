//! The part of a run that counts: its length, and the processor time of both sides within it.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cpu::Meter;

/// A window that opens some time after the run began and closes by itself, or when it is told to.
#[derive(Debug)]
pub struct Window {
    begun: Instant,
    warm_up: Duration,
    /// Without one it is open until it is told to close.
    length: Option<Duration>,
    servers: Vec<Meter>,
    load: Meter,
    opened: Option<(Instant, [f64; 2])>,
    span: Option<Span>,
}

/// How long a window was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// By the clock.
    pub seconds: f64,
    /// The processor time of all servers.
    pub server: f64,
    /// That of this process, which is the load.
    pub load: f64,
}

impl Window {
    /// Begins a run against the processes of these numbers.
    ///
    /// # Errors
    /// A system that does not tell how it counts time.
    pub fn begin(servers: &[u32], warm_up: Duration, length: Option<Duration>) -> Outcome<Self> {
        let servers = servers.iter().map(|server| Meter::of(&server.to_string()));
        let (servers, load) = (servers.collect::<Outcome<_>>()?, Meter::of("self")?);
        let begun = Instant::now();
        Ok(Self { begun, warm_up, length, servers, load, opened: None, span: None })
    }

    /// Opens or closes it, if it is time.
    ///
    /// # Errors
    /// A server that is no more.
    pub fn keep(&mut self, now: Instant) -> Outcome<()> {
        match self.opened {
            None if now.saturating_duration_since(self.begun) >= self.warm_up => {
                self.opened = Some((now, self.cpu()?));
            }
            Some((opened, _)) if self.is_open() => {
                let passed = now.saturating_duration_since(opened);
                if self.length.is_some_and(|length| passed >= length) {
                    self.close(now)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes it, unless it is closed already.
    ///
    /// # Errors
    /// A server that is no more.
    pub fn close(&mut self, now: Instant) -> Outcome<()> {
        if let (Some((opened, before)), None) = (self.opened, self.span) {
            let [server, load] = self.cpu()?;
            let [server_before, load_before] = before;
            self.span = Some(Span {
                seconds: now.saturating_duration_since(opened).as_secs_f64(),
                server: server - server_before,
                load: load - load_before,
            });
        }
        Ok(())
    }

    /// Whether what happens now counts.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.opened.is_some() && self.span.is_none()
    }

    /// How long it was, once it is closed.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    fn cpu(&self) -> Outcome<[f64; 2]> {
        let servers = self.servers.iter().map(Meter::seconds).sum::<Outcome<f64>>()?;
        Ok([servers, self.load.seconds()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(length: Option<Duration>) -> Window {
        Window::begin(&[std::process::id()], Duration::from_secs(1), length).unwrap()
    }

    fn at(window: &Window, seconds: u64) -> Instant {
        window.begun + Duration::from_secs(seconds)
    }

    #[test]
    fn a_window_is_open_between_its_warm_up_and_its_end() {
        let mut window = window(Some(Duration::from_secs(5)));
        for (second, is_open) in [(0, false), (1, true), (5, true), (7, false), (8, false)] {
            let now = at(&window, second);
            window.keep(now).unwrap();
            assert_eq!(window.is_open(), is_open, "after {second} s");
        }
        assert_eq!(window.span().map(|span| span.seconds), Some(6.0));
    }

    #[test]
    fn a_window_without_a_length_is_open_until_it_is_closed() {
        let mut window = window(None);
        for second in [1, 1000] {
            let now = at(&window, second);
            window.keep(now).unwrap();
        }
        assert!(window.is_open() && window.span().is_none());
        window.close(at(&window, 1001)).unwrap();
        window.close(at(&window, 2000)).unwrap();
        assert_eq!(window.span().map(|span| span.seconds), Some(1000.0));
    }
}
