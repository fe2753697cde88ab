//! The facts of one line as bytes, so that lines move between threads without an allocation each.

use tollgate::{MAX_FACT_LENGTH, MAX_FACTS, PathError, normalize_path};

use super::super::error::ReplayError;
use super::LineError;

/// Facts that a replay reads from each line, in a fixed order: `ip`, `method`, `path`, then those that the policy uses.
#[derive(Debug, Clone)]
pub(crate) struct FactNames(Vec<String>);

/// Maximum number of facts: as many as a request can have.
pub(super) const MAX_NAMES: usize = MAX_FACTS;

impl FactNames {
    pub(crate) const IP: u8 = 0;
    pub(crate) const METHOD: u8 = 1;
    pub(crate) const PATH: u8 = 2;

    /// Returns the names with `more`, or an error if a request cannot have so many facts. `client` always counts, because
    /// it is derived from `ip` if a line does not have it.
    pub(crate) fn new<'n>(more: impl IntoIterator<Item = &'n str>) -> Result<Self, ReplayError> {
        let mut names: Vec<String> = ["ip", "method", "path"].map(str::to_owned).into();
        for name in more {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        let has_client = names.iter().any(|name| name == "client");
        let count = names.len() + usize::from(!has_client);
        if count > MAX_NAMES {
            return Err(ReplayError::new(format!(
                "the policies and --field use {count} facts and headers, with ip, method, path and client; a replay supports at most {MAX_NAMES}"
            )));
        }
        Ok(Self(names))
    }

    pub(crate) fn get(&self, index: u8) -> Option<&str> {
        self.0.get(usize::from(index)).map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &str)> {
        (0..).zip(self.0.iter().map(String::as_str))
    }

    pub(super) fn index(&self, name: &str) -> Option<u8> {
        self.iter().find(|(_, known)| *known == name).map(|(index, _)| index)
    }
}

/// Encoded facts: for each its index in [`FactNames`], its length and its bytes.
#[derive(Debug, Default)]
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a fact. An empty value is left out.
    pub(super) fn put(&mut self, index: u8, value: &[u8]) -> Result<(), LineError> {
        if value.is_empty() {
            return Ok(());
        }
        let length = u16::try_from(value.len()).map_err(|_| TOO_LONG)?;
        if value.len() > MAX_FACT_LENGTH {
            return Err(TOO_LONG);
        }
        self.0.push(index);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(value);
        Ok(())
    }

    /// Adds the method and the path, normalized as in forward auth and without its query.
    pub(super) fn put_request(&mut self, method: &[u8], target: &[u8]) -> Result<(), LineError> {
        self.put(FactNames::METHOD, method)?;
        let path = normalize_path(target).map_err(|error| match error {
            PathError::TooLong => PATH_TOO_LONG,
            _ => INVALID_PATH,
        })?;
        self.put(FactNames::PATH, &path)
    }

    /// Decodes facts: pairs of index and value.
    pub(crate) fn decode(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
        std::iter::from_fn(move || {
            let (index, rest) = bytes.split_first()?;
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            bytes = rest;
            Some((*index, value))
        })
    }
}

const TOO_LONG: LineError = "a value is longer than 1024 bytes";
pub(super) const PATH_TOO_LONG: LineError = "the path is longer than 1024 bytes";
pub(super) const INVALID_PATH: LineError =
    "the path is invalid: it must start with / and have valid percent-escapes";
