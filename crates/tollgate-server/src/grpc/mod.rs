//! The gRPC front end: Envoy's Rate Limit Service v3, health checks and reflection. Decodes requests, calls the service,
//! encodes replies. No decision logic.

mod calls;
mod deadline;
mod descriptors;
mod early_resets;
mod error;
mod health;
mod keep_alive;
mod message;
mod proto;
mod protobuf;
mod protocol;
mod rate_limit;
mod reflection;
mod replies;
mod request_body;
mod response;
mod short_head;
mod streams;
mod units;
mod wake_gate;

pub(crate) use protocol::Grpc;
