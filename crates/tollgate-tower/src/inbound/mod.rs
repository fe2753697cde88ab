//! A layer in front of a service: who may pass, what they are told, and what is settled afterwards.

mod admission;
mod body;
mod builder;
mod cost;
mod deferred_charge;
mod future;
mod grpc;
mod headers;
mod in_flight;
mod layer;
mod refused;
mod service;
mod settings;
mod slot_guard;

pub use body::ResponseBody;
pub use builder::RateLimitLayerBuilder;
pub use cost::Counting;
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use refused::Refused;
pub use service::RateLimit;
pub use settings::OnError;
