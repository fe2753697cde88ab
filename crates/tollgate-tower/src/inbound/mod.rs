//! A layer in front of a service: who may pass, what they are told, and what is settled afterwards.

mod admission;
mod bill;
mod body;
mod builder;
mod charge;
mod future;
mod grpc;
mod held;
mod layer;
mod pass;
mod refused;
mod service;
mod settings;
mod told;

pub use body::ResponseBody;
pub use builder::RateLimitLayerBuilder;
pub use charge::Counting;
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use refused::Refused;
pub use service::RateLimit;
pub use settings::OnError;
