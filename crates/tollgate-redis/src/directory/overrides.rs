//! Stored overrides. Every change appends an audit entry.

use tollgate::{Override, Overrides, StoreError, StoreErrorKind, Subject, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::read_number;
use crate::resp::{Command, Reply};
use crate::script::Entry;

/// Approximate number of overrides per HSCAN, and the maximum reply in bytes. One override may have about 10 kB.
const PAGE_SIZE: u64 = 50;
const MAX_PAGE_BYTES: usize = 16 << 20;

/// All overrides of a deployment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoredOverrides {
    /// The readable overrides.
    pub overrides: Overrides,
    /// The clients whose overrides are unreadable: of a newer version, or not stored by this library.
    pub unreadable: Vec<String>,
}

/// The operation of the override program.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Put,
    Get,
    Remove,
    Record,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Remove => "remove",
            Self::Record => "record",
        }
    }
}

impl Directory {
    /// Stores the override of a client and publishes the change. Returns the text of the previous override. The
    /// audit entry contains both overrides and `entry`, a description of the change.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn put_override(
        &self,
        client: &Subject,
        new_override: &Override,
        entry: &str,
    ) -> Result<Option<String>, StoreError> {
        let expiry = new_override.expires_at.map_or(0, Timestamp::as_micros).to_string();
        let text = new_override.to_text();
        let before = self.run_override(Verb::Put, client.as_str(), [&expiry, &text, entry]).await?;
        Ok(before.as_deref().map(override_text))
    }

    /// Returns the override of a client, if it has one.
    ///
    /// # Errors
    /// The call to Redis failed, or the override is of a newer version.
    pub async fn get_override(&self, client: &Subject) -> Result<Option<Override>, StoreError> {
        let stored = self.run_override(Verb::Get, client.as_str(), ["0", "", ""]).await?;
        let unreadable_version = || {
            let message = format!("the override of {client} has an unknown version");
            StoreError::new(StoreErrorKind::Incompatible, message)
        };
        stored.map(|stored| parse(&stored).ok_or_else(unreadable_version)).transpose()
    }

    /// Removes the override of a client, publishes the change and returns its text. The audit entry contains it.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn remove_override(
        &self,
        client: &Subject,
        entry: &str,
    ) -> Result<Option<String>, StoreError> {
        let stored = self.run_override(Verb::Remove, client.as_str(), ["0", "", entry]).await?;
        Ok(stored.as_deref().map(override_text))
    }

    /// Appends an audit entry without an override.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn record(&self, entry: &str) -> Result<(), StoreError> {
        self.run_override(Verb::Record, "", ["0", "", entry]).await.map(|_| ())
    }

    /// Returns all overrides. Each page is a separate call, so concurrent changes may or may not be included.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn overrides(&self) -> Result<StoredOverrides, StoreError> {
        let (mut found, mut unreadable, mut from) = (Vec::new(), Vec::new(), 0);
        loop {
            let (pairs, next) = self.page(from).await?;
            for (client, stored) in pairs {
                match (Subject::from_escaped(&client), parse(&stored)) {
                    (Some(subject), Some(new_override)) => found.push((subject, new_override)),
                    _ => unreadable.push(client),
                }
            }
            if next == 0 {
                break;
            }
            from = next;
        }
        unreadable.sort();
        unreadable.dedup();
        let overrides = found.into_iter().collect::<Overrides>();
        Ok(StoredOverrides { overrides: overrides.without_expired(self.now()), unreadable })
    }

    /// Returns the estimated time of Redis.
    pub(super) fn now(&self) -> Timestamp {
        self.time.estimate()
    }

    async fn page(&self, from: u64) -> Result<(Vec<(String, Vec<u8>)>, u64), StoreError> {
        let key = self.keys.overrides();
        let command = Command::new("HSCAN").arg(&key);
        let command = command.number(from).arg("COUNT").number(PAGE_SIZE);
        let command = command.reply_up_to(MAX_PAGE_BYTES);
        let reply = self.request(&key, command).await?;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(parts) = reply else { return Err(unexpected()) };
        let [Reply::Bulk(next), Reply::Array(pairs)] = parts.as_slice() else {
            return Err(unexpected());
        };
        let next = std::str::from_utf8(next).ok().and_then(|text| text.parse().ok());
        let pairs = pairs.chunks_exact(2).filter_map(|pair| match pair {
            [Reply::Bulk(client), Reply::Bulk(stored)] => {
                Some((String::from_utf8_lossy(client).into_owned(), stored.clone()))
            }
            _ => None,
        });
        Ok((pairs.collect(), next.ok_or_else(unexpected)?))
    }

    async fn run_override(
        &self,
        verb: Verb,
        client: &str,
        [expiry, text, entry]: [&str; 3],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let channel = self.keys.channel();
        let arguments = [verb.as_str(), client, expiry, text, &channel, entry];
        let arguments = arguments.map(|argument| argument.as_bytes().to_vec()).to_vec();
        let keys = [self.keys.overrides(), self.keys.audit()];
        let keys = keys.map(String::into_bytes).to_vec();
        match self.run(Entry::Override, keys, arguments).await? {
            Reply::Null => Ok(None),
            Reply::Bulk(stored) => Ok(Some(stored)),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

/// Parses a stored override, or returns `None` if its version is unknown.
fn parse(stored: &[u8]) -> Option<Override> {
    Override::from_text(&override_text(stored)).ok()
}

/// Returns the text, which follows the expiry.
fn override_text(stored: &[u8]) -> String {
    let text = read_number(stored).map_or(stored, |(_, text)| text);
    String::from_utf8_lossy(text).into_owned()
}
