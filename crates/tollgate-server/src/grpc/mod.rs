//! The gRPC front end: Envoy's Rate Limit Service v3, health checks and reflection. Decodes requests, calls the service,
//! encodes replies. No decision logic.

mod call_body;
mod calls;
mod deadline;
mod descriptors;
mod early_resets;
mod error;
mod health;
mod proto;
mod protocol;
mod rate_limit;
mod reflection;
mod replies;
mod units;

pub(crate) use protocol::Grpc;
