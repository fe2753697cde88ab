//! One counter for all front ends: HTTP, RESP and gRPC clients together get exactly the limit.

use std::net::SocketAddr;
use std::thread;

use tollgate_testkit::server::{Flavor, Server};

use crate::grpc_client::{GRPC, GrpcClient, OK, grpc_address};
use crate::redis::LONG_TIMEOUT;
use crate::resp_client::{RespClient, encode, readable, resp_address};
use crate::service::{Scratch, Service};

/// A limit for each client of a route, with a window that outlasts any test.
const POLICY: &str = "
version: 1
rules:
  - name: clients
    match: { facts: { domain: edge, descriptor: 'route=%2Fa%2Fb/client=*', 'entry:route': /a/b } }
    per: [domain, 'entry:client']
    limits: [{ rate: 200/d, algorithm: ALGORITHM }]
";
const LIMIT: usize = 200;
/// Requests of each connection; together they exceed the limit, and no front end alone does on two nodes.
const REQUESTS: usize = 40;

/// A node with all three front ends.
struct Node {
    service: Service,
    resp: SocketAddr,
    grpc: SocketAddr,
}

impl Node {
    fn start(args: &[&str]) -> Self {
        let service = Service::start(&[&["--resp", "127.0.0.1:0"], &GRPC[..], args].concat());
        let (resp, grpc) = (resp_address(&service, "resp"), grpc_address(&service));
        Self { service, resp, grpc }
    }

    /// Sends the requests of one HTTP connection, and returns how many were admitted.
    fn over_http(&self, client: &str) -> usize {
        let facts = format!(
            r#"{{"domain":"edge","descriptor":"route=%2Fa%2Fb/client={client}","entry:route":"/a/b","entry:client":"{client}"}}"#
        );
        let body = format!(r#"{{"facts":{facts}}}"#);
        let mut connection = self.service.client();
        let admitted = |_: &usize| connection.post("/check", &body).json()["allowed"] == true;
        (0..REQUESTS).filter(admitted).count()
    }

    /// Sends the requests of one RESP connection, all at once.
    fn over_resp(&self, client: &str) -> usize {
        let command = [
            "TOLLGATE.CHECK",
            "domain=edge",
            &format!("descriptor=route=%2Fa%2Fb/client={client}"),
            "entry:route=/a/b",
            &format!("entry:client={client}"),
        ];
        let mut connection = RespClient::connect(self.resp);
        connection.send(&encode(&command).repeat(REQUESTS)).unwrap();
        let admitted = |_: &usize| {
            let reply = readable(&connection.reply().unwrap());
            assert!(reply.starts_with('[') && reply.contains(" clients "), "{reply}");
            reply.starts_with("[1 ")
        };
        (0..REQUESTS).filter(admitted).count()
    }

    /// Sends the requests of one gRPC connection.
    fn over_grpc(&self, client: &str) -> usize {
        let connection = GrpcClient::connect(self.grpc);
        let entries = [("route", "/a/b"), ("client", client)];
        let admitted = |_: &usize| connection.status("edge", &entries).code == OK;
        (0..REQUESTS).filter(admitted).count()
    }
}

/// Sends the requests of two connections per front end and node, all concurrently. Returns the admissions of HTTP, RESP
/// and gRPC.
fn admitted(nodes: &[Node], client: &str) -> [usize; 3] {
    thread::scope(|scope| {
        let front_ends = [Node::over_http, Node::over_resp, Node::over_grpc];
        let running = front_ends.map(|send| {
            let connections = nodes.iter().flat_map(|node| [node, node]);
            let spawn = |node| scope.spawn(move || send(node, client));
            connections.map(spawn).collect::<Vec<_>>()
        });
        running
            .map(|threads| threads.into_iter().map(|thread| thread.join().expect("no panic")).sum())
    })
}

fn assert_exact(args: &[&str], nodes: usize) {
    for algorithm in ["fixed_window", "sliding_window", "token_bucket"] {
        let scratch = Scratch::new();
        let policy = scratch.write("policy.yaml", &POLICY.replace("ALGORITHM", algorithm));
        let args = [&["--policy", &policy], args].concat();
        let nodes: Vec<Node> = (0..nodes).map(|_| Node::start(&args)).collect();
        let client = format!("c-{algorithm}");
        let first = admitted(&nodes, &client);
        println!("{algorithm}, {} nodes: HTTP, RESP, gRPC admitted {first:?}", nodes.len());
        assert_eq!(first.iter().sum::<usize>(), LIMIT, "{algorithm}: {first:?}");
        assert_eq!(admitted(&nodes, &client), [0; 3], "{algorithm}: the limit is used up");
        assert!(nodes[0].over_grpc("another") > 0, "other clients have their own limit");
    }
}

#[test]
fn two_nodes_on_redis_admit_exactly_the_limit() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    assert_exact(&[&["--redis", &*url][..], &LONG_TIMEOUT].concat(), 2);
}

#[test]
fn one_node_admits_exactly_the_limit() {
    assert_exact(&[], 1);
}
