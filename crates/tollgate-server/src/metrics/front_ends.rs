//! Requests and open connections by front end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::text::Exposition;
use super::{CountGuard, read};

/// Front ends whose series exist from the start, whether they listen or not.
const BUILT_IN: [&str; 3] = ["http", "resp", "grpc"];

/// The counters of all front ends. Their number is that of the protocols, whatever clients send.
#[derive(Debug, Clone)]
pub(crate) struct FrontEnds(Arc<Mutex<Vec<Arc<FrontEndCounters>>>>);

/// The counters of one front end.
#[derive(Debug)]
pub(crate) struct FrontEndCounters {
    name: &'static str,
    is_listening: AtomicBool,
    requests: AtomicU64,
    connections: Arc<AtomicU64>,
}

impl Default for FrontEnds {
    fn default() -> Self {
        let counters = BUILT_IN.map(|name| Arc::new(FrontEndCounters::new(name)));
        Self(Arc::new(Mutex::new(counters.into())))
    }
}

impl FrontEnds {
    /// Returns the counters of a front end that listens. Listeners of the same protocol share them.
    pub(crate) fn listen(&self, name: &'static str) -> Arc<FrontEndCounters> {
        let mut all = self.0.lock();
        let known = all.iter().find(|counters| counters.name == name).cloned();
        let counters = known.unwrap_or_else(|| {
            let counters = Arc::new(FrontEndCounters::new(name));
            all.push(Arc::clone(&counters));
            counters
        });
        counters.is_listening.store(true, Ordering::Relaxed);
        counters
    }

    /// Returns the names of the front ends that listen.
    pub(crate) fn listening(&self) -> Vec<&'static str> {
        let all = self.0.lock();
        let listening = all.iter().filter(|counters| counters.is_listening.load(Ordering::Relaxed));
        listening.map(|counters| counters.name).collect()
    }

    /// Returns the requests of each front end since the start.
    pub(crate) fn requests(&self) -> BTreeMap<&'static str, u64> {
        let all = self.0.lock();
        all.iter().map(|counters| (counters.name, read(&counters.requests))).collect()
    }

    /// Appends the metric of requests.
    pub(super) fn render_requests(&self, out: &mut Exposition) {
        let help = "Decision requests by front end: HTTP requests, RESP commands, gRPC calls.";
        let mut metric = out.counter("tollgate_requests_total", help);
        for counters in self.0.lock().iter() {
            metric.sample(&[("frontend", counters.name)], read(&counters.requests));
        }
    }

    /// Appends the metric of open connections.
    pub(super) fn render_connections(&self, out: &mut Exposition) {
        let mut metric = out.gauge("tollgate_connections", "Open connections by front end.");
        for counters in self.0.lock().iter() {
            metric.sample(&[("frontend", counters.name)], read(&counters.connections));
        }
    }
}

impl FrontEndCounters {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            is_listening: AtomicBool::default(),
            requests: AtomicU64::default(),
            connections: Arc::default(),
        }
    }

    /// Counts requests.
    pub(crate) fn add_requests(&self, count: u64) {
        self.requests.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn open_connection(&self) -> CountGuard {
        CountGuard::new(&self.connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_of_one_protocol_share_counters() {
        let front_ends = FrontEnds::default();
        assert_eq!(front_ends.listening(), Vec::<&str>::new());
        front_ends.listen("http").add_requests(2);
        front_ends.listen("http").add_requests(3);
        front_ends.listen("line").add_requests(1);
        assert_eq!(front_ends.listening(), ["http", "line"]);
        let expected = BTreeMap::from([("grpc", 0), ("http", 5), ("line", 1), ("resp", 0)]);
        assert_eq!(front_ends.requests(), expected);
    }

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let front_ends = FrontEnds::default();
        let counters = front_ends.listen("resp");
        let open = (counters.open_connection(), counters.open_connection());
        drop(open.0);
        let mut out = Exposition::default();
        front_ends.render_connections(&mut out);
        let text = out.into_text();
        assert!(text.contains("tollgate_connections{frontend=\"resp\"} 1\n"), "{text}");
        assert!(text.contains("tollgate_connections{frontend=\"http\"} 0\n"), "{text}");
    }
}
