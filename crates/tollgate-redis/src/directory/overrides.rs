//! Overrides: stored exceptions for one client, each change with its entry in the audit.

use tollgate::{Override, Overrides, StoreError, StoreErrorKind, Subject, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::get_number;
use crate::resp::{Command, Reply};
use crate::script::Entry;

/// About how many Redis tells in one go, and how long that may be: an override may have some ten thousand bytes.
const SCANNED: u64 = 50;
const PAGE_REPLY: usize = 16 << 20;

/// Every override of a deployment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoredOverrides {
    /// Those that can be in force.
    pub overrides: Overrides,
    /// Whose overrides cannot be read: they are of a later version, or were not stored by this library.
    pub unreadable: Vec<String>,
}

/// What a program is to do.
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
    /// Stores an exception for the client in place of the one it has, whose text is given back, and tells every
    /// node. The audit keeps both, and who did it: `entry` is what its reader makes of it.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn put_override(
        &self,
        client: &Subject,
        own: &Override,
        entry: &str,
    ) -> Result<Option<String>, StoreError> {
        let ends = own.expires_at.map_or(0, Timestamp::as_micros).to_string();
        let text = own.to_text();
        let before = self.run_override(Verb::Put, client.as_str(), [&ends, &text, entry]).await?;
        Ok(before.as_deref().map(text_of))
    }

    /// The client's exception, if it has one.
    ///
    /// # Errors
    /// Redis could not be asked, or the exception is of a later version.
    pub async fn get_override(&self, client: &Subject) -> Result<Option<Override>, StoreError> {
        let kept = self.run_override(Verb::Get, client.as_str(), ["0", "", ""]).await?;
        let later = || {
            let message = format!("the override of {client} is not of this version");
            StoreError::new(StoreErrorKind::Incompatible, message)
        };
        kept.map(|kept| read(&kept).ok_or_else(later)).transpose()
    }

    /// Removes the client's exception, whose text is given back, and tells every node. The audit keeps it.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn remove_override(
        &self,
        client: &Subject,
        entry: &str,
    ) -> Result<Option<String>, StoreError> {
        let kept = self.run_override(Verb::Remove, client.as_str(), ["0", "", entry]).await?;
        Ok(kept.as_deref().map(text_of))
    }

    /// Adds to the audit what changed no override.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn record(&self, entry: &str) -> Result<(), StoreError> {
        self.run_override(Verb::Record, "", ["0", "", entry]).await.map(|_| ())
    }

    /// All exceptions. Each page is asked for by itself, so changes of the meantime may be among them or not.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn overrides(&self) -> Result<StoredOverrides, StoreError> {
        let (mut found, mut unreadable, mut from) = (Vec::new(), Vec::new(), 0);
        loop {
            let (pairs, next) = self.page(from).await?;
            for (client, kept) in pairs {
                match (Subject::from_escaped(&client), read(&kept)) {
                    (Some(subject), Some(own)) => found.push((subject, own)),
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

    /// About what the clock of Redis says.
    pub(super) fn now(&self) -> Timestamp {
        self.shared.coalescer.time().about_now()
    }

    async fn page(&self, from: u64) -> Result<(Vec<(String, Vec<u8>)>, u64), StoreError> {
        let key = self.shared.keys.overrides();
        let command = Command::new("HSCAN").arg(&key);
        let command = command.number(from).arg("COUNT").number(SCANNED);
        let command = command.reply_up_to(PAGE_REPLY);
        let reply = self.shared.coalescer.router().ask(key.as_bytes(), command).await;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(parts) = reply.map_err(Failure::into_store_error)? else {
            return Err(unexpected());
        };
        let [Reply::Bulk(next), Reply::Array(pairs)] = parts.as_slice() else {
            return Err(unexpected());
        };
        let next = std::str::from_utf8(next).ok().and_then(|text| text.parse().ok());
        let pairs = pairs.chunks_exact(2).filter_map(|pair| match pair {
            [Reply::Bulk(client), Reply::Bulk(kept)] => {
                Some((String::from_utf8_lossy(client).into_owned(), kept.clone()))
            }
            _ => None,
        });
        Ok((pairs.collect(), next.ok_or_else(unexpected)?))
    }

    async fn run_override(
        &self,
        verb: Verb,
        client: &str,
        [ends, text, entry]: [&str; 3],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let channel = self.shared.keys.channel();
        let arguments = [verb.as_str(), client, ends, text, &channel, entry];
        let arguments = arguments.map(|argument| argument.as_bytes().to_vec()).to_vec();
        let keys = [self.shared.keys.overrides(), self.shared.keys.audit()];
        let keys = keys.map(String::into_bytes).to_vec();
        match self.shared.run(Entry::Override, keys, arguments).await? {
            Reply::Null => Ok(None),
            Reply::Bulk(kept) => Ok(Some(kept)),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

/// An override as it is kept; none if it is not of this version.
fn read(kept: &[u8]) -> Option<Override> {
    Override::from_text(&text_of(kept)).ok()
}

/// Its text, which stands behind its end.
fn text_of(kept: &[u8]) -> String {
    let text = get_number(kept).map_or(kept, |(_, text)| text);
    String::from_utf8_lossy(text).into_owned()
}
