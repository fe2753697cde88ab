//! The route that axum chose.

use std::borrow::Cow;

use super::{Head, Source};

/// The route that matched, as it was written: `/users/{id}`. Known to layers of a router and of its routes.
///
/// As the fact `route` rules count by it (`per: [client, route]`) however many paths it stands for.
///
/// ```
/// use tollgate_tower::{Head, MatchedRoute, Source};
///
/// assert_eq!(MatchedRoute.value(&Head::from(&http::Request::new(()))), None);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MatchedRoute;

impl Source for MatchedRoute {
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        let route = request.extensions.get::<axum::extract::MatchedPath>()?;
        Some(Cow::Borrowed(route.as_str().as_bytes()))
    }
}
