//! Validation of single settings.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use crate::error::SettingsError;

/// The host of a listener whose address is only `:PORT`. Other hosts must be named, because they expose the service.
const DEFAULT_HOST: &str = "127.0.0.1";

/// Resolves the address of a listener: `HOST:PORT`, or `:PORT` on the loopback address.
pub(super) fn address(setting: &str, text: &str) -> Result<SocketAddr, SettingsError> {
    let invalid = |reason: &dyn fmt::Display| {
        SettingsError::new(setting, format!("{text:?} is not HOST:PORT: {reason}"))
    };
    let with_host = match text.starts_with(':') {
        true => format!("{DEFAULT_HOST}{text}"),
        false => text.to_owned(),
    };
    let mut addresses = with_host.to_socket_addrs().map_err(|error| invalid(&error))?;
    addresses.next().ok_or_else(|| invalid(&"the host name has no address"))
}

/// Returns a number, or an error if it is out of range.
pub(super) fn within(
    setting: &str,
    number: Option<u64>,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, SettingsError> {
    match number {
        Some(number) if !range.contains(&number) => {
            let (min, max) = (range.start(), range.end());
            let reason = format!("{number} is out of range; use {min} to {max}");
            Err(SettingsError::new(setting, reason))
        }
        number => Ok(number),
    }
}

/// Returns a count, or an error if it is 0 or above the maximum.
pub(super) fn count_up_to(
    setting: &str,
    count: Option<usize>,
    max: usize,
) -> Result<Option<usize>, SettingsError> {
    let to_u64 = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    within(setting, count.map(to_u64), 1..=to_u64(max))?;
    Ok(count)
}
