//! The measured part of a run: its length, and the CPU time of servers and load generator in it.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cpu::Meter;

/// A window that opens after the warm-up and closes after its length, or when [`Window::close`] is
/// called.
#[derive(Debug)]
pub struct Window {
    started: Instant,
    warm_up: Duration,
    /// `None`: the window stays open until [`Window::close`].
    length: Option<Duration>,
    servers: Vec<Meter>,
    load: Meter,
    opened: Option<(Instant, [f64; 2])>,
    span: Option<Span>,
}

/// Duration and CPU times of a closed window, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Wall-clock time.
    pub seconds: f64,
    /// CPU time of all servers.
    pub server: f64,
    /// CPU time of this process, the load generator.
    pub load: f64,
}

impl Window {
    /// Starts a run against the servers with these process ids.
    ///
    /// # Errors
    /// `getconf CLK_TCK` fails.
    pub fn begin(servers: &[u32], warm_up: Duration, length: Option<Duration>) -> Outcome<Self> {
        let servers = servers.iter().map(|server| Meter::of(&server.to_string()));
        let (servers, load) = (servers.collect::<Outcome<_>>()?, Meter::of("self")?);
        let started = Instant::now();
        Ok(Self { started, warm_up, length, servers, load, opened: None, span: None })
    }

    /// Opens or closes the window if the time has come.
    ///
    /// # Errors
    /// A server has exited.
    pub fn update(&mut self, now: Instant) -> Outcome<()> {
        match self.opened {
            None if now.saturating_duration_since(self.started) >= self.warm_up => {
                self.opened = Some((now, self.cpu()?));
            }
            Some((opened, _)) if self.is_open() => {
                let elapsed = now.saturating_duration_since(opened);
                if self.length.is_some_and(|length| elapsed >= length) {
                    self.close(now)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes the window if it is open.
    ///
    /// # Errors
    /// A server has exited.
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

    /// Returns whether the window is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.opened.is_some() && self.span.is_none()
    }

    /// Returns duration and CPU times once the window is closed.
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
        window.started + Duration::from_secs(seconds)
    }

    #[test]
    fn window_is_open_after_warm_up_until_its_end() {
        let mut window = window(Some(Duration::from_secs(5)));
        for (second, is_open) in [(0, false), (1, true), (5, true), (7, false), (8, false)] {
            let now = at(&window, second);
            window.update(now).unwrap();
            assert_eq!(window.is_open(), is_open, "after {second} s");
        }
        assert_eq!(window.span().map(|span| span.seconds), Some(6.0));
    }

    #[test]
    fn window_without_length_stays_open_until_closed() {
        let mut window = window(None);
        for second in [1, 1000] {
            let now = at(&window, second);
            window.update(now).unwrap();
        }
        assert!(window.is_open() && window.span().is_none());
        window.close(at(&window, 1001)).unwrap();
        window.close(at(&window, 2000)).unwrap();
        assert_eq!(window.span().map(|span| span.seconds), Some(1000.0));
    }
}
