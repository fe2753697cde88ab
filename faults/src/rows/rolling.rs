//! Nodes that are replaced one after the other under load.

use std::io;
use std::mem::take;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{process, thread};

use tollgate_testkit::server::Server;
use tollgate_testkit::wait::pause;

use crate::client::{Client, Reply, key};
use crate::front_end::{Connection, FrontEnd, Query};
use crate::load::StopOnDrop;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::stage::Stage;

const NODES: usize = 3;
const CALLERS: usize = 8;

/// The drain time: every caller gets a `Connection: close` on each connection, also on a slow machine. In the test
/// suite, which also runs on busy machines, it is longer.
fn drain_time(stage: &Stage) -> Duration {
    Duration::from_millis(stage.scale().pick(3000, 1000))
}

pub(super) fn replaced_nodes_lose_no_response(stage: &Stage) -> String {
    let (rounds, min_responses) = stage.scale().pick((1, 1_000), (10, 1_000_000));
    let server = redis::start();
    let mut ports = own_ports();
    let mut free = || {
        let port = ports.next().expect("a port is free");
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    };
    let listeners = [(); NODES].map(|()| Listeners { http: free(), resp: free(), grpc: free() });
    let start = |node: usize| start(stage, &server, &listeners[node]);
    let mut nodes: Vec<Node> = (0..NODES).map(start).collect();
    let addresses = listeners.each_ref().map(|listeners| listeners.http);
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let avoid_for = drain_time(stage) * 3 / 2;
    let (callers, others) = thread::scope(|scope| {
        let over = StopOnDrop(&is_over);
        let call = |front_end| OtherCaller::new(front_end, &listeners).call_until(&is_over);
        let others = OTHERS.map(|front_end| scope.spawn(move || call(front_end)));
        let call = || Caller::new(&addresses, avoid_for).call_until(&is_over, &answered);
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        for round in 1..=rounds {
            let replaced = take(&mut nodes).into_iter().enumerate();
            nodes = replaced.map(|(number, node)| replace(node, || start(number))).collect();
            while answered.load(Ordering::Relaxed) < min_responses * round / rounds {
                pause();
            }
        }
        drop(over);
        let joined =
            callers.into_iter().map(|caller| caller.join().expect("a caller does not panic"));
        let joined = joined.collect::<Vec<Caller<'_>>>();
        (joined, others.map(|caller| caller.join().expect("a caller does not panic")))
    });
    let lost: Vec<&String> = callers.iter().flat_map(|caller| &caller.lost).collect();
    let (answered, closed, refused) = callers.iter().fold((0, 0, 0), |sum, caller| {
        (sum.0 + caller.answered, sum.1 + caller.closed, sum.2 + caller.refused)
    });
    assert!(lost.is_empty(), "of {answered} responses {} were lost: {lost:?}", lost.len());
    assert!(closed > 0, "no connection was closed, so nothing is proven");
    assert_eq!(nodes[0].count(&key("k")), Some(answered), "each request counts once");
    let others = others.map(|caller| caller.assert_counted_once(&nodes[0])).join(", ");
    format!(
        "{} replaced, {answered} answers, 0 lost, each counted once; {closed} with Connection: close, {refused} \
         connects refused; {others}",
        rounds * NODES as u64
    )
}

/// The front ends besides HTTP. Forward auth is HTTP.
const OTHERS: [FrontEnd; 2] = [FrontEnd::Resp, FrontEnd::Grpc];

const LIMIT: u64 = 1_000_000_000;

/// The addresses of a node, also after it is replaced.
struct Listeners {
    http: SocketAddr,
    resp: SocketAddr,
    grpc: SocketAddr,
}

fn start(stage: &Stage, server: &Server, listeners: &Listeners) -> Node {
    let setup = stage.node().redis(&redis::url(server)).with("http", listeners.http.to_string());
    let setup = setup.with("resp", listeners.resp.to_string());
    let setup = setup
        .with("grpc", listeners.grpc.to_string())
        .policy(&per_client_everywhere(&format!("{LIMIT}/h"), Loss::Local))
        .with("drain-ms", drain_time(stage).as_millis().to_string());
    setup.patient().start()
}

/// Ports that only this row uses. The ports of a node that is being replaced are free for seconds, and another row, which runs in a
/// process of its own, could take one from `free_port` meanwhile. Those are below 20,000, their cluster buses below 30,000, and
/// the system assigns ports from 32,768 on. Two processes with this row begin at different ports.
fn own_ports() -> impl Iterator<Item = u16> {
    const FIRST: u16 = 30_000;
    const COUNT: u16 = 2700;
    let begin = u16::try_from(process::id() % 270 * 10).expect("at most 2690");
    let ports = (0..COUNT).map(move |step| FIRST + (begin + step) % COUNT);
    ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

/// Stops a node with SIGTERM, and starts another on its address.
fn replace(node: Node, start: impl Fn() -> Node) -> Node {
    let (code, log) = node.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("aborting") && !log.contains("panicked"), "{log}");
    start()
}

/// Sends over RESP or gRPC to the nodes in turn, over persistent connections. A node that stops closes them between two requests,
/// so a request without a response had no effect, and is sent again.
struct OtherCaller {
    front_end: FrontEnd,
    nodes: Vec<SocketAddr>,
    open: Vec<Option<Connection>>,
    answered: u64,
    closed: u64,
}

impl OtherCaller {
    fn new(front_end: FrontEnd, listeners: &[Listeners]) -> Self {
        let address = |listeners: &Listeners| match front_end {
            FrontEnd::Resp => listeners.resp,
            _ => listeners.grpc,
        };
        let nodes: Vec<SocketAddr> = listeners.iter().map(address).collect();
        let open = nodes.iter().map(|_| None).collect();
        Self { front_end, nodes, open, answered: 0, closed: 0 }
    }

    fn query(&self) -> Query {
        Query::of(format!("over {}", self.front_end.name()))
    }

    fn call_until(mut self, is_over: &AtomicBool) -> Self {
        let query = self.query();
        for node in (0..self.nodes.len()).cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let open = self.open[node]
                .take()
                .map_or_else(|| Connection::open(self.front_end, self.nodes[node]), Ok);
            let Ok(mut connection) = open else {
                pause();
                continue;
            };
            match connection.check(&query) {
                Ok(answer) => {
                    assert!(answer.is_allowed(), "{answer:?}");
                    self.answered += 1;
                    self.open[node] = Some(connection);
                }
                Err(_) => self.closed += 1,
            }
        }
        self
    }

    /// Asserts that each response was counted, and no request without one. Describes the calls.
    fn assert_counted_once(self, node: &Node) -> String {
        let (name, answered, closed) = (self.front_end.name(), self.answered, self.closed);
        assert!(closed > 0, "no connection was closed over {name}, so nothing is proven");
        let last = node.check_over(self.front_end, &self.query());
        assert_eq!(last.remaining, Some(LIMIT - answered - 1), "{name}: {answered} answers");
        format!("{name}: {answered} answers, {closed} requests sent again, each counted once")
    }
}

/// Sends to the nodes in turn over persistent connections. After `Connection: close` it avoids the node while it
/// drains, because the system resets a connection made just when the listener closes. It retries only on a refused
/// connection: a node that accepted one must respond.
struct Caller<'a> {
    nodes: &'a [SocketAddr],
    open: Vec<Option<Client>>,
    /// How long a node is avoided that sends `Connection: close`.
    avoid_for: Duration,
    /// The time until which each node is avoided.
    avoid_until: Vec<Instant>,
    next: usize,
    answered: u64,
    /// The number of responses with `Connection: close`.
    closed: u64,
    refused: u64,
    lost: Vec<String>,
}

impl<'a> Caller<'a> {
    fn new(nodes: &'a [SocketAddr], avoid_for: Duration) -> Self {
        let open = nodes.iter().map(|_| None).collect();
        let avoid_until = vec![Instant::now(); nodes.len()];
        Self {
            nodes,
            open,
            avoid_for,
            avoid_until,
            next: 0,
            answered: 0,
            closed: 0,
            refused: 0,
            lost: Vec::new(),
        }
    }

    fn call_until(mut self, is_over: &AtomicBool, answered: &AtomicU64) -> Self {
        while !is_over.load(Ordering::Relaxed) {
            let node = self.next % self.nodes.len();
            self.next += 1;
            let now = Instant::now();
            if now < self.avoid_until[node] {
                if self.avoid_until.iter().all(|until| now < *until) {
                    pause();
                }
                continue;
            }
            match self.send(node) {
                Ok(()) => answered.fetch_add(1, Ordering::Relaxed),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.refused += 1;
                    continue;
                }
                Err(error) => {
                    self.lost.push(format!("node {node}: {error}"));
                    continue;
                }
            };
        }
        self
    }

    fn send(&mut self, node: usize) -> io::Result<()> {
        let open = self.open[node].take();
        let mut client = open.map_or_else(|| Client::connect(self.nodes[node]), Ok)?;
        let reply = client.post("/check", key("k"))?;
        assert!(reply.is_exact() && reply.is_allowed(), "{} {}", reply.status, reply.body);
        self.answered += 1;
        if closes(&reply) {
            self.closed += 1;
            self.avoid_until[node] = Instant::now() + self.avoid_for;
        } else {
            self.open[node] = Some(client);
        }
        Ok(())
    }
}

fn closes(reply: &Reply) -> bool {
    reply.header("connection") == Some("close")
}
