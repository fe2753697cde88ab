//! The compared calls.

use prost::Message;

use super::messages::{Entry, RateLimitDescriptor, RateLimitRequest, ThrottleRequest};
use crate::Outcome;
use crate::http::policy::{BURST, PERIOD_SECONDS};
use crate::load::template::KEY;

/// The domain of the requests.
pub const DOMAIN: &str = "edge";
/// The key of the only descriptor entry.
pub const ENTRY: &str = "client";

/// Start of every response that allows the request: field 1 is 1, `OK` in Envoy's service and `true` in throttlecrab's.
pub const ALLOWED: [u8; 2] = [0x08, 0x01];

/// A call for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `ShouldRateLimit` of Envoy's Rate Limit Service.
    ShouldRateLimit,
    /// `Throttle` of throttlecrab.
    Throttle,
}

impl Call {
    const ALL: [Self; 2] = [Self::ShouldRateLimit, Self::Throttle];

    /// Returns the path of the method.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::ShouldRateLimit => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            Self::Throttle => "/throttlecrab.RateLimiter/Throttle",
        }
    }

    /// Returns the call with this path.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(path: &str) -> Outcome<Self> {
        let call = Self::ALL.into_iter().find(|call| call.path() == path);
        call.ok_or_else(|| format!("unknown method {path}").into())
    }

    /// Returns the encoded request with the placeholder of the key.
    ///
    /// # Errors
    /// A number does not fit into its field.
    pub fn request(self) -> Outcome<Vec<u8>> {
        let key = format!("user:{KEY}");
        Ok(match self {
            Self::ShouldRateLimit => {
                let entries = vec![Entry { key: ENTRY.to_owned(), value: key }];
                let descriptors = vec![RateLimitDescriptor { entries, ..Default::default() }];
                RateLimitRequest { domain: DOMAIN.to_owned(), descriptors, hits_addend: 0 }
                    .encode_to_vec()
            }
            Self::Throttle => ThrottleRequest {
                key,
                max_burst: BURST.try_into()?,
                count_per_period: 1,
                period: PERIOD_SECONDS.try_into()?,
                quantity: 1,
            }
            .encode_to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for call in Call::ALL {
            assert_eq!(Call::parse(call.path()).unwrap(), call);
        }
        assert_eq!(Call::parse("/a/B").unwrap_err().to_string(), "unknown method /a/B");
    }

    #[test]
    fn requests_contain_the_placeholder_once() {
        for call in Call::ALL {
            let request = call.request().unwrap();
            let places = request.windows(KEY.len()).filter(|place| *place == KEY.as_bytes());
            assert_eq!(places.count(), 1, "{call:?}");
        }
    }
}
