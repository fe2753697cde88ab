//! Requests and connections by front end, in the metrics and in the live view.

use serde_json::json;
use tonic::{Code, Request};

use crate::grpc_client::{GRPC, GrpcClient, RateLimitRequest, descriptor, grpc_address, request};
use crate::live_client::LiveStream;
use crate::metrics_text::Scrape;
use crate::resp_client::{RespClient, encode, resp_address, start_with};
use crate::service::{Service, eventually};

const TOKEN: &str = "a-token-for-checks-0123456789abcdef";

fn series(metric: &str, front_end: &str) -> String {
    format!("{metric}{{frontend=\"{front_end}\"}}")
}

/// Returns the requests over HTTP, RESP and gRPC.
fn requests(service: &Service) -> [f64; 3] {
    let scrape = Scrape::of(service);
    ["http", "resp", "grpc"].map(|name| scrape.value(&series("tollgate_requests_total", name)))
}

fn with_token(request: RateLimitRequest) -> Request<RateLimitRequest> {
    let mut request = Request::new(request);
    let value = format!("Bearer {TOKEN}").parse().expect("metadata");
    request.metadata_mut().insert("authorization", value);
    request
}

#[test]
fn decision_requests_are_counted_by_front_end() {
    let (service, address) = start_with(&GRPC, &[("TOLLGATE_CHECK_TOKEN", TOKEN)]);
    let mut resp = RespClient::connect(address);
    let grpc = GrpcClient::connect(grpc_address(&service));
    let user = || request("edge", [descriptor(&[("user", "u")])]);

    // Requests without authentication, and those that decide nothing.
    for path in ["/check", "/check/batch", "/release"] {
        assert_eq!(service.post(path, r#"{"key":"k"}"#).status, 401);
    }
    assert_eq!(service.get("/healthz").status, 200);
    assert!(resp.call("TOLLGATE.CHECK k").starts_with("-NOAUTH "));
    assert_eq!(resp.call(&format!("AUTH {TOKEN}")), "OK");
    resp.send(&encode(&["PING"]).repeat(5)).unwrap();
    (0..5).for_each(|_| assert_eq!(resp.reply().unwrap(), b"+PONG\r\n"));
    assert_eq!(grpc.error(user()).0, Code::Unauthenticated);
    assert_eq!(requests(&service), [0.0; 3]);

    // Requests with any result, valid or not; a batch or several descriptors are one request.
    let authorization = format!("Bearer {TOKEN}");
    let mut http = service.client();
    let batch = json!({"requests": vec![json!({"key": "b"}); 5]}).to_string();
    for (path, body, status) in [
        ("/check", r#"{"key":"k"}"#, 200),
        ("/check", r#"{"key":"k","cost":101}"#, 200),
        ("/peek", r#"{"key":"k"}"#, 200),
        ("/refund", "{", 400),
        ("/explain", r#"{"key":"k"}"#, 200),
        ("/check/batch", &batch, 200),
    ] {
        let headers = [("authorization", &*authorization)];
        assert_eq!(http.request("POST", path, &headers, body).status, status, "{path}");
    }
    assert_eq!(requests(&service), [6.0, 0.0, 0.0]);

    let throttle = encode(&["CL.THROTTLE", "k", "9", "1", "60"]);
    resp.send(&[throttle.repeat(40), encode(&["PING"]), throttle.repeat(60)].concat()).unwrap();
    (0..101).for_each(|_| drop(resp.reply().unwrap()));
    assert!(resp.call("CL.THROTTLE k").starts_with("-Cell error: "), "an invalid request");
    assert_eq!(requests(&service), [6.0, 101.0, 0.0]);

    let three = request("edge", ["a", "b", "c"].map(|user| descriptor(&[("user", user)])));
    assert_eq!(grpc.call_with(with_token(three)).unwrap().into_inner().statuses.len(), 3);
    let empty = grpc.call_with(with_token(request("", []))).unwrap_err();
    assert_eq!(empty.code(), Code::InvalidArgument);
    assert_eq!(requests(&service), [6.0, 101.0, 2.0]);
}

#[test]
fn open_connections_are_counted_by_front_end() {
    let service = Service::start(&[&GRPC[..], &["--resp", "127.0.0.1:0"]].concat());
    let address = resp_address(&service, "resp");
    let mut clients = [0, 1].map(|_| RespClient::connect(address));
    clients.iter_mut().for_each(|client| assert_eq!(client.call("PING"), "PONG"));
    let connections = || {
        let scrape = Scrape::of(&service);
        ["resp", "grpc"].map(|name| scrape.value(&series("tollgate_connections", name)))
    };
    assert_eq!(connections(), [2.0, 0.0]);
    drop(clients);
    eventually("the connections are closed", || connections() == [0.0; 2]);
    assert!(Scrape::of(&service).value(&series("tollgate_connections", "http")) >= 1.0);
}

#[test]
fn live_view_shows_the_requests_by_front_end() {
    let (service, address) = start_with(&[], &[]);
    let mut stream = LiveStream::open(&service, "");
    let frame = stream.next_of("frame");
    assert_eq!(frame["requests"], json!({"http": 0, "resp": 0}), "the front ends that listen");
    let mut client = RespClient::connect(address);
    client.send(&encode(&["TOLLGATE.CHECK", "k"]).repeat(50)).unwrap();
    (0..50).for_each(|_| drop(client.reply().unwrap()));
    let frame = stream.until("requests over RESP", |frame| frame["requests"]["resp"] != 0);
    assert_eq!(frame["requests"]["http"], 0, "{frame}");
}
