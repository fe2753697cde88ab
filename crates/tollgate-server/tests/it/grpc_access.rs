//! Access over gRPC: tokens, TLS, client certificates, health, reflection, settings and drain.

use std::net::TcpStream;
use std::path::Path;

use tokio_rustls::rustls::ALL_VERSIONS;
use tollgate_testkit::server::{Certificates, Identity};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::grpc_client::{
    ClientTls, GRPC, GrpcClient, OK, RateLimitRequest, SERVICE, descriptor, grpc_address, request,
    start,
};
use crate::service::{Service, eventually, run};
use crate::tls_client::TlsClient;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

fn any() -> RateLimitRequest {
    request("edge", [descriptor(&[("user", "u")])])
}

fn with_metadata(values: &[&'static str]) -> Request<RateLimitRequest> {
    let mut request = Request::new(any());
    for value in values {
        request.metadata_mut().append("authorization", MetadataValue::from_static(value));
    }
    request
}

fn health(client: &GrpcClient, service: &str) -> Result<i32, Status> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let response = client.block_on(HealthClient::new(client.channel()).check(request));
    response.map(|response| response.into_inner().status)
}

#[test]
fn token_is_required_except_for_health() {
    let service = Service::start_with(&GRPC, &[("TOLLGATE_CHECK_TOKEN", TOKEN)]);
    let client = GrpcClient::connect(grpc_address(&service));
    let error = client.call(any()).unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated);
    assert_eq!(
        error.message(),
        "missing token; send the check token as metadata `authorization: Bearer TOKEN`"
    );
    for wrong in [
        &["Bearer 00000000000000000000000000000000"][..],
        &["Basic 0123456789abcdef0123456789abcdef"],
        &["Bearer 0123456789abcdef0123456789abcdef", "Bearer 0123456789abcdef0123456789abcdef"],
    ] {
        let error = client.call_with(with_metadata(wrong)).unwrap_err();
        assert_eq!(error.code(), Code::Unauthenticated, "{wrong:?}");
        assert!(!error.message().contains(TOKEN), "{}", error.message());
    }
    let valid = || with_metadata(&["Bearer 0123456789abcdef0123456789abcdef"]);
    assert_eq!(client.call_with(valid()).unwrap().into_inner().overall_code, OK);
    assert_eq!(health(&client, "").unwrap(), SERVING);
    assert_eq!(list_services(&client).unwrap_err().code(), Code::Unauthenticated);
    // After too many failures the peer is limited, but a valid token is still accepted.
    let codes: Vec<Code> = (0..20).map(|_| client.call(any()).unwrap_err().code()).collect();
    assert_eq!(codes.last(), Some(&Code::ResourceExhausted), "{codes:?}");
    assert_eq!(client.call_with(valid()).unwrap().into_inner().overall_code, OK);
    let metrics = service.get("/metrics").body;
    let failures = "tollgate_auth_failures_total{token=\"check\"} 25";
    assert!(metrics.lines().any(|line| line == failures), "{metrics}");
}

fn list_services(client: &GrpcClient) -> Result<Vec<String>, Status> {
    let request = MessageRequest::ListServices(String::new());
    match reflect(client, request)? {
        MessageResponse::ListServicesResponse(list) => {
            Ok(list.service.into_iter().map(|service| service.name).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn reflect(client: &GrpcClient, request: MessageRequest) -> Result<MessageResponse, Status> {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    client.block_on(async {
        let requests = tonic::codegen::tokio_stream::iter([request]);
        let mut reflection = ServerReflectionClient::new(client.channel());
        let mut responses = reflection.server_reflection_info(requests).await?.into_inner();
        let response = responses.message().await?.expect("a response");
        Ok(response.message_response.expect("a message"))
    })
}

#[test]
fn reflection_describes_all_services() {
    let (_service, client) = start(&[]);
    let mut services = list_services(&client).unwrap();
    services.sort();
    assert_eq!(services, [SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]);
    for symbol in [
        format!("{SERVICE}.ShouldRateLimit"),
        "envoy.service.ratelimit.v3.RateLimitResponse".to_owned(),
        "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor".to_owned(),
        "envoy.type.v3.RateLimitUnit".to_owned(),
        "grpc.health.v1.HealthCheckRequest".to_owned(),
    ] {
        let request = MessageRequest::FileContainingSymbol(symbol.clone());
        match reflect(&client, request).unwrap() {
            MessageResponse::FileDescriptorResponse(files) => {
                assert!(!files.file_descriptor_proto.is_empty(), "{symbol}");
            }
            other => panic!("{symbol}: {other:?}"),
        }
    }
}

#[test]
fn health_follows_readiness() {
    let mut service = Service::start(&[&GRPC[..], &["--drain-ms", "600000"]].concat());
    let client = GrpcClient::connect(grpc_address(&service));
    for name in ["", SERVICE] {
        assert_eq!(health(&client, name).unwrap(), SERVING, "{name:?}");
    }
    assert_eq!(health(&client, "other").unwrap_err().code(), Code::NotFound);
    let watch = |name: &str| {
        let request = HealthCheckRequest { service: name.to_owned() };
        let stream = client.block_on(HealthClient::new(client.channel()).watch(request));
        stream.expect("a stream").into_inner()
    };
    let next = |stream: &mut tonic::Streaming<HealthCheckResponse>| {
        client.block_on(stream.message()).expect("a message or the end").map(|next| next.status)
    };
    let (mut known, mut unknown) = (watch(SERVICE), watch("other"));
    assert_eq!(next(&mut known), Some(SERVING));
    assert_eq!(next(&mut unknown), Some(SERVICE_UNKNOWN));
    service.signal("TERM");
    assert_eq!(next(&mut known), Some(NOT_SERVING));
    assert_eq!(health(&client, "").unwrap(), NOT_SERVING);
    assert_eq!(client.call(any()).unwrap().overall_code, OK, "requests are still decided");
    // A second signal skips the drain time.
    service.signal("TERM");
    assert_eq!(next(&mut known), None, "the stream ends with the drain");
    assert_eq!(next(&mut unknown), None);
    let (status, log) = service.wait();
    assert!(status.success() && !log.contains("aborting"), "{log}");
}

#[test]
fn shutdown_under_load_loses_no_request() {
    let mut service = Service::start(&[&GRPC[..], &["--drain-ms", "2000"]].concat());
    let address = grpc_address(&service);
    let client = GrpcClient::connect(address);
    for _ in 0..100 {
        client.call(any()).expect("a response");
    }
    service.signal("TERM");
    let mut served = 0;
    loop {
        match client.call(any()) {
            Ok(_) => served += 1,
            // A client that reconnects after the last response finds the listener closed.
            Err(error) if TcpStream::connect(address).is_err() => {
                assert_eq!(error.code(), Code::Unavailable, "{error:?}");
                break;
            }
            Err(error) => panic!("{error:?} after {served} responses"),
        }
    }
    assert!(served > 0, "requests are served during the drain");
    let (status, log) = service.wait();
    assert!(status.success() && !log.contains("aborting"), "{log}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn pair(identity: &Identity) -> [&str; 4] {
    ["--tls-cert", text(&identity.certificate), "--tls-key", text(&identity.key)]
}

#[test]
fn tls_negotiates_http_2() {
    let certificates = Certificates::new();
    let service = Service::start(&[&GRPC[..], &pair(&certificates.server)].concat());
    service.wait_for_log("listening on grpcs://127.0.0.1:");
    let address = grpc_address(&service);
    let tls = ClientTls { ca: &certificates.ca, identity: None };
    let client = GrpcClient::connect_tls(address, &tls).expect("a trusted certificate");
    assert_eq!(client.call(any()).unwrap().overall_code, OK);
    let offering = |protocols: &[&str], address| {
        let client = TlsClient::trusting(&certificates.ca, ALL_VERSIONS).offering(protocols);
        client.connect(address).map(|(_, protocol)| protocol)
    };
    assert_eq!(offering(&["http/1.1", "h2"], address).unwrap().as_deref(), Some("h2"));
    assert!(offering(&["http/1.1"], address).is_err());
    let http = offering(&["h2", "http/1.1"], service.address()).unwrap();
    assert_eq!(http.as_deref(), Some("http/1.1"), "the HTTP listener is unchanged");
    let stranger = ClientTls { ca: &certificates.other_ca, identity: None };
    assert!(GrpcClient::connect_tls(address, &stranger).is_err());
}

#[test]
fn client_certificates_are_required_if_configured() {
    let certificates = Certificates::new();
    let ca = text(&certificates.ca);
    let args = [&GRPC[..], &pair(&certificates.server), &["--tls-client-ca", ca]].concat();
    let service = Service::start(&args);
    let address = grpc_address(&service);
    let call = |identity| {
        let tls = ClientTls { ca: &certificates.ca, identity };
        GrpcClient::connect_tls(address, &tls)?.call(any()).map_err(|error| format!("{error:?}"))
    };
    assert_eq!(call(Some(&certificates.client)).unwrap().overall_code, OK);
    assert!(call(None).is_err());
    assert!(call(Some(&certificates.stranger)).is_err());
}

#[test]
fn settings_are_checked() {
    for (args, words) in [
        (&["--grpc", "nowhere"][..], "--grpc: \"nowhere\" is not HOST:PORT"),
        (&["--grpc", "0.0.0.0:0"], "--grpc: 0.0.0.0:0 is reachable from other machines"),
        (&["--grpc", "127.0.0.1:0", "--grpc-headers", "fancy"], "invalid value 'fancy'"),
    ] {
        let ended = run(&[&["serve", "--http", "127.0.0.1:0"], args].concat());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let environment = [("TOLLGATE_GRPC", "127.0.0.1:0"), ("TOLLGATE_GRPC_HEADERS", "none")];
    let service = Service::start_with(&[], &environment);
    let client = GrpcClient::connect(grpc_address(&service));
    assert_eq!(client.call(any()).unwrap().overall_code, OK);
    let connections = || {
        let metrics = service.get("/metrics").body;
        metrics.lines().any(|line| line == "tollgate_connections{frontend=\"grpc\"} 1")
    };
    eventually("gRPC connections are counted", connections);
}

#[test]
fn methods_that_do_not_exist_are_unimplemented() {
    let (_service, client) = start(&[]);
    let call = |path: &'static str| {
        client.block_on(async {
            let mut grpc = tonic::client::Grpc::new(client.channel());
            grpc.ready().await.expect("a connection");
            let codec = tonic_prost::ProstCodec::<RateLimitRequest, RateLimitRequest>::default();
            let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
            grpc.unary(Request::new(any()), path, codec).await.expect_err("an error").code()
        })
    };
    for path in [
        "/envoy.service.ratelimit.v3.RateLimitService/Other",
        "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit",
        "/grpc.health.v1.Health/Other",
        "/grpc.reflection.v1.ServerReflection/Other",
        "/",
    ] {
        assert_eq!(call(path), Code::Unimplemented, "{path}");
    }
}
