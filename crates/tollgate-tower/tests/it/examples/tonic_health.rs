//! A gRPC service behind the layer, called by a plain tonic client.

use std::time::Duration;

use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::examples::process::Serving;

#[tokio::test]
async fn sixth_call_is_refused_with_retry_info() {
    let serving = Serving::start("tonic_health", &[]);
    let channel = Endpoint::from_shared(serving.url().to_owned()).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    for remaining in (0..5).rev() {
        let response = client.check(HealthCheckRequest::default()).await.unwrap();
        assert_eq!(
            response.metadata().get("x-ratelimit-remaining").unwrap(),
            &remaining.to_string()
        );
    }
    let refused = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, "too many requests"));
    let wait = refused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(60), "{wait:?}");
    assert_eq!(refused.metadata().get("x-ratelimit-remaining").unwrap(), "0");
}
