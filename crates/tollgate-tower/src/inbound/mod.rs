//! The inbound layer: admission, response headers, refusals, and charges settled after the response.

mod admission;
mod body;
mod body_mode;
mod builder;
mod cost;
mod decision;
mod deferred_charge;
mod exposed;
mod future;
mod grpc;
mod headers;
mod held_slots;
mod in_flight;
mod layer;
mod limit_value;
mod number_value;
mod refusal;
mod reservation;
mod service;
mod settings;
mod slot_guard;

pub use body::ResponseBody;
pub use body_mode::{BodyMode, KeepBody, WrapBody};
pub use builder::RateLimitLayerBuilder;
pub use cost::CountedResponses;
#[cfg(feature = "axum")]
pub use decision::MissingDecision;
pub use decision::RateLimitDecision;
pub use future::ResponseFuture;
pub use held_slots::{HeldSlots, RequestSlots};
pub use layer::RateLimitLayer;
pub use refusal::RefusedRequest;
pub use reservation::Estimate;
pub use service::RateLimit;
pub use settings::ErrorAction;
