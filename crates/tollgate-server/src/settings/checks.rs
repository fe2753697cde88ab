//! What a setting must be to be used.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use super::SettingsError;

/// Where to listen.
pub(super) fn address(setting: &str, text: &str) -> Result<SocketAddr, SettingsError> {
    let wrong = |reason: &dyn fmt::Display| {
        SettingsError::new(setting, format!("{text:?} is not HOST:PORT: {reason}"))
    };
    let mut found = text.to_socket_addrs().map_err(|error| wrong(&error))?;
    found.next().ok_or_else(|| wrong(&"the host has no address"))
}

/// A number within bounds, if one is given.
pub(super) fn within(
    setting: &str,
    given: Option<u64>,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, SettingsError> {
    match given {
        Some(number) if !range.contains(&number) => {
            let (least, most) = (range.start(), range.end());
            Err(SettingsError::new(setting, format!("must be from {least} to {most}")))
        }
        given => Ok(given),
    }
}

/// At least one and not too many, if a number is given.
pub(super) fn counted(
    setting: &str,
    given: Option<usize>,
    most: usize,
) -> Result<Option<usize>, SettingsError> {
    let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    within(setting, given.map(wide), 1..=wide(most))?;
    Ok(given)
}
