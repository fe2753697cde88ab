//! The type of the response body: that of the layer, or that of the service.

use super::body::ResponseBody;

/// Mode of a layer whose response body is a [`ResponseBody`], for services with any body. The default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrapBody;

/// Mode of a layer that does not change the type of the response body. See
/// [`RateLimitLayer::keep_body`](crate::RateLimitLayer::keep_body).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepBody;

/// The response body of a layer in a mode, for a service with the response body `B`.
///
/// ```
/// use tollgate_tower::{BodyMode, KeepBody, ResponseBody, WrapBody};
///
/// # fn is_same<T>(_: fn(T), _: fn(T)) {}
/// type Wrapped = <WrapBody as BodyMode<axum::body::Body>>::Body;
/// type Kept = <KeepBody as BodyMode<axum::body::Body>>::Body;
/// is_same(|_: Wrapped| (), |_: ResponseBody<axum::body::Body>| ());
/// is_same(|_: Kept| (), |_: axum::body::Body| ());
/// ```
pub trait BodyMode<B>: sealed::Sealed {
    /// The response body of the layer.
    type Body;

    /// Returns the body of a response that needs nothing when its body ends.
    fn from_service(body: B) -> Self::Body;

    /// Returns the body of a refusal, or of a response that needs an action when its body ends.
    fn from_layer(body: ResponseBody<B>) -> Self::Body;
}

impl<B> BodyMode<B> for WrapBody {
    type Body = ResponseBody<B>;

    fn from_service(body: B) -> ResponseBody<B> {
        ResponseBody::from_service(body)
    }

    fn from_layer(body: ResponseBody<B>) -> ResponseBody<B> {
        body
    }
}

impl<B: From<ResponseBody<B>>> BodyMode<B> for KeepBody {
    type Body = B;

    fn from_service(body: B) -> B {
        body
    }

    fn from_layer(body: ResponseBody<B>) -> B {
        body.into()
    }
}

/// For layers in the mode [`KeepBody`]. Boxes the body.
#[cfg(feature = "axum")]
impl From<ResponseBody<axum::body::Body>> for axum::body::Body {
    fn from(body: ResponseBody<Self>) -> Self {
        Self::new(body)
    }
}

mod sealed {
    /// Prevents implementations outside this crate.
    pub trait Sealed {}

    impl Sealed for super::WrapBody {}
    impl Sealed for super::KeepBody {}
}
