//! Stored overrides. Every change appends an audit entry.

use tollgate::{Override, Overrides, StoreError, StoreErrorKind, Subject, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::read_number;
use crate::resp::{Command, Reply};
use crate::script::Entry;

/// Approximate number of clients per HSCAN, and the maximum reply in bytes. One override may have about 10 kB, and a
/// client up to 100 of them.
const PAGE_SIZE: u64 = 50;
const MAX_PAGE_BYTES: usize = 64 << 20;

/// The first byte of the stored value if a client has several overrides.
const SEVERAL: u8 = 255;

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
    /// Stores an override of a client; see [`put_overrides`](Self::put_overrides). Returns the text of the override that
    /// it replaces.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn put_override(
        &self,
        client: &Subject,
        new_override: &Override,
        entry: &str,
    ) -> Result<Option<String>, StoreError> {
        let before = self.put_overrides(client, std::slice::from_ref(new_override), entry).await?;
        Ok(before.into_iter().next().flatten())
    }

    /// Stores overrides of a client in one call and publishes the change. Each replaces the client's override of the same
    /// rule. Returns the texts of the replaced overrides, in the same order. There is one audit entry per override; it
    /// contains the overrides before and after, and `entry`, a description of the change.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn put_overrides(
        &self,
        client: &Subject,
        overrides: &[Override],
        entry: &str,
    ) -> Result<Vec<Option<String>>, StoreError> {
        let arguments = overrides.iter().flat_map(|new| {
            let expiry = new.expires_at.map_or(0, Timestamp::as_micros).to_string();
            [expiry, new.rule.clone().unwrap_or_default(), new.to_text()]
        });
        let before = self.run_override(Verb::Put, client.as_str(), entry, arguments).await?;
        Ok(before.into_iter().map(|text| Some(text).filter(|text| !text.is_empty())).collect())
    }

    /// Returns the overrides of a client, at most one per rule.
    ///
    /// # Errors
    /// The call to Redis failed, or an override is of a newer version.
    pub async fn get_overrides(&self, client: &Subject) -> Result<Vec<Override>, StoreError> {
        let (overrides, unreadable) = self.read_overrides(client).await?;
        if unreadable > 0 {
            let message = format!("an override of {client} has an unknown version");
            return Err(StoreError::new(StoreErrorKind::Incompatible, message));
        }
        Ok(overrides)
    }

    /// Returns the readable overrides of a client, and the number of others.
    pub(super) async fn read_overrides(
        &self,
        client: &Subject,
    ) -> Result<(Vec<Override>, usize), StoreError> {
        let texts = self.run_override(Verb::Get, client.as_str(), "", []).await?;
        let readable: Vec<Override> =
            texts.iter().filter_map(|text| Override::from_text(text).ok()).collect();
        let unreadable = texts.len() - readable.len();
        Ok((readable, unreadable))
    }

    /// Removes the override of a client for `rule`, or all overrides of the client if `rule` is `None`. Publishes the
    /// change and returns the texts of the removed overrides. There is one audit entry for each of them.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn remove_overrides(
        &self,
        client: &Subject,
        rule: Option<&str>,
        entry: &str,
    ) -> Result<Vec<String>, StoreError> {
        // The script removes all overrides for an empty rule, which is not the name of any rule.
        if rule == Some("") {
            return Ok(Vec::new());
        }
        let rule = rule.unwrap_or_default().to_owned();
        self.run_override(Verb::Remove, client.as_str(), entry, [rule]).await
    }

    /// Appends an audit entry without an override.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn record(&self, entry: &str) -> Result<(), StoreError> {
        self.run_override(Verb::Record, "", entry, []).await.map(|_| ())
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
                let subject = Subject::from_escaped(&client);
                for text in texts(&stored) {
                    let text = text.and_then(|text| Override::from_text(&text).ok());
                    match (subject.clone(), text) {
                        (Some(subject), Some(stored)) => found.push((subject, stored)),
                        _ => unreadable.push(client.clone()),
                    }
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
        entry: &str,
        more: impl IntoIterator<Item = String> + Send,
    ) -> Result<Vec<String>, StoreError> {
        let channel = self.keys.channel();
        let arguments = [verb.as_str(), client, &channel, entry].map(str::to_owned);
        let arguments = arguments.into_iter().chain(more).map(String::into_bytes).collect();
        let keys = [self.keys.overrides(), self.keys.audit()];
        let keys = keys.map(String::into_bytes).to_vec();
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(replies) = self.run(Entry::Override, keys, arguments).await? else {
            return Err(unexpected());
        };
        let text = |reply: Reply| match reply {
            Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(unexpected()),
        };
        replies.into_iter().map(text).collect()
    }
}

/// Returns the texts in the stored value of a client; `None` for one that is truncated.
fn texts(stored: &[u8]) -> Vec<Option<String>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let [SEVERAL, rest @ ..] = stored else {
        return vec![read_number(stored).map(|(_, bytes)| text(bytes))];
    };
    let (mut rest, mut found) = (rest, Vec::new());
    while !rest.is_empty() {
        let one = read_number(rest).and_then(|(_, rest)| {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
        });
        found.push(one.map(|(bytes, _)| text(bytes)));
        rest = one.map_or(&[], |(_, after)| after);
    }
    found
}
