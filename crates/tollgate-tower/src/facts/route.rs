//! The route that axum matched.

use std::borrow::Cow;

use super::{FactSource, RequestHead};

/// The route template that axum matched, such as `/users/{id}`. Available to layers of a router and of its routes.
///
/// As the fact `route` it lets a rule count per route (`per: [client, route]`) instead of per path.
///
/// ```
/// use tollgate_tower::{RequestHead, MatchedRoute, FactSource};
///
/// assert_eq!(MatchedRoute.value(&RequestHead::from(&http::Request::new(()))), None);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MatchedRoute;

impl FactSource for MatchedRoute {
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        let route = request.extensions.get::<axum::extract::MatchedPath>()?;
        Some(Cow::Borrowed(route.as_str().as_bytes()))
    }
}
