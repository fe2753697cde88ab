//! The HTTP front end: decodes requests, calls the service, encodes replies. No decision logic.

mod admin;
mod assets;
mod auth;
mod body;
mod body_guard;
mod credentials;
mod dashboard;
mod decide;
mod delivery;
mod docs;
mod forward_auth;
mod health;
mod held;
mod host;
mod listings;
mod live;
mod origin;
mod plain_check;
mod protocol;
mod reply;
mod request_metrics;
mod reservations;
mod rewound_stream;
mod routes;
mod session;
mod traces;

#[cfg(test)]
pub(crate) use admin::ChangeQuery;
#[cfg(test)]
pub(crate) use decide::Batch;
#[cfg(test)]
pub(crate) use held::HeldBody;
#[cfg(test)]
pub(crate) use listings::{ClientQuery, HistoryQuery, ListQuery};
pub(crate) use protocol::{Http, Surface};
#[cfg(test)]
pub(crate) use session::{Login, SessionResponse};
