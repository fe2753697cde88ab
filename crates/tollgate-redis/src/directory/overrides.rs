//! Overrides: stored exceptions for one client. What they say is their reader's business.

use tollgate::{StoreError, StoreErrorKind, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::get_number;
use crate::resp::{Command, Reply};

/// The most that Redis looks at in one go.
const SCANNED: u64 = 100;

/// An exception as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    /// Whose.
    pub client: String,
    /// What it says.
    pub text: Vec<u8>,
    /// When it ends by itself; none if it does not.
    pub expires_at: Option<Timestamp>,
}

/// Some overrides, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OverridePage {
    /// The overrides. One may come again on a later page.
    pub overrides: Vec<Override>,
    /// Where the next page begins; none after the last.
    pub next: Option<u64>,
}

impl Directory {
    /// Stores an exception for the client in place of the one it has, which is given back, and tells every
    /// node.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn put_override(
        &self,
        client: &str,
        text: &[u8],
        expires_at: Option<Timestamp>,
    ) -> Result<Option<Override>, StoreError> {
        let ends = expires_at.map_or(0, Timestamp::as_micros);
        self.run_override("put", client, |command| command.number(ends).arg(text)).await
    }

    /// The client's exception, if it has one.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn get_override(&self, client: &str) -> Result<Option<Override>, StoreError> {
        self.run_override("get", client, |command| command.arg("").arg("")).await
    }

    /// Removes the client's exception, which is given back, and tells every node.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn remove_override(&self, client: &str) -> Result<Option<Override>, StoreError> {
        self.run_override("remove", client, |command| command.arg("").arg("")).await
    }

    /// A page of all exceptions, from the beginning or from where a page ended.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn overrides(&self, from: Option<u64>) -> Result<OverridePage, StoreError> {
        let command = Command::new("HSCAN").arg(self.shared.keys.overrides());
        let command = command.number(from.unwrap_or(0)).arg("COUNT").number(SCANNED);
        let reply = self.shared.coalescer.link().ask(command).await;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(parts) = reply.map_err(Failure::into_store_error)? else {
            return Err(unexpected());
        };
        let [Reply::Bulk(next), Reply::Array(pairs)] = parts.as_slice() else {
            return Err(unexpected());
        };
        let next = std::str::from_utf8(next).ok().and_then(|text| text.parse::<u64>().ok());
        let now = self.shared.coalescer.time().about_now();
        let all = pairs.chunks_exact(2).filter_map(|pair| match pair {
            [Reply::Bulk(client), Reply::Bulk(kept)] => {
                read(std::str::from_utf8(client).ok()?, kept)
            }
            _ => None,
        });
        let has_ended = |one: &Override| one.expires_at.is_some_and(|end| end <= now);
        let overrides = all.filter(|one| !has_ended(one)).collect();
        let next = next.ok_or_else(unexpected)?;
        Ok(OverridePage { overrides, next: (next != 0).then_some(next) })
    }

    async fn run_override(
        &self,
        verb: &str,
        client: &str,
        arguments: impl Fn(Command) -> Command,
    ) -> Result<Option<Override>, StoreError> {
        let (key, channel) = (self.shared.keys.overrides(), self.shared.keys.channel());
        let arguments = |command: Command| arguments(command.arg(verb).arg(client)).arg(&channel);
        let script = &self.shared.directory_scripts.overrides;
        match self.shared.run(script, &[key.as_bytes()], arguments).await? {
            Reply::Null => Ok(None),
            Reply::Bulk(kept) => read(client, &kept).map(Some).ok_or_else(|| {
                let message = format!("the override of {client:?} is not of this version");
                StoreError::new(StoreErrorKind::Incompatible, message)
            }),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

fn read(client: &str, kept: &[u8]) -> Option<Override> {
    let (ends, text) = get_number(kept)?;
    let expires_at = (ends > 0).then(|| Timestamp::from_micros(ends));
    Some(Override { client: client.to_owned(), text: text.to_vec(), expires_at })
}
