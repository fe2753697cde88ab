//! Snapshot reader. Input is untrusted and fully validated.

use std::collections::HashSet;

use super::{Checksum, END, KEY, LIMIT, MAGIC, SnapshotError, SnapshotErrorKind, UNKNOWN, VERSION};
use crate::algorithm::State;
use crate::fields::Fields;
use crate::limit::Limit;
use crate::limit::identity::Identity;

/// Decoded content of a snapshot.
#[derive(Debug)]
pub(super) struct Snapshot<'a> {
    pub(super) limits: Vec<SavedLimit<'a>>,
    pub(super) keys: Vec<SavedKey<'a>>,
}

#[derive(Debug)]
pub(super) struct SavedLimit<'a> {
    pub(super) identity: &'a str,
    /// `None` if only the identity is known.
    pub(super) limit: Option<Limit>,
}

#[derive(Debug)]
pub(super) struct SavedKey<'a> {
    /// Index into `Snapshot::limits`.
    pub(super) limit: usize,
    pub(super) subject: &'a str,
    pub(super) state: State,
}

impl<'a> Snapshot<'a> {
    pub(super) fn read(input: &'a [u8]) -> Result<Self, SnapshotError> {
        let records = verify(input)?;
        let snapshot = Self::parse(records).ok_or(SnapshotErrorKind::Invalid)?;
        if snapshot.has_duplicates() {
            return Err(SnapshotErrorKind::Invalid.into());
        }
        Ok(snapshot)
    }

    fn parse(mut fields: Fields<'a>) -> Option<Self> {
        let _time_of_saving = fields.timestamp()?;
        let mut snapshot = Self { limits: Vec::new(), keys: Vec::new() };
        loop {
            match fields.byte()? {
                LIMIT => snapshot.limits.push(SavedLimit::parse(&mut fields)?),
                KEY => snapshot.keys.push(snapshot.parse_key(&mut fields)?),
                END => break,
                _ => return None,
            }
        }
        let count = usize::try_from(fields.long()?).ok()?;
        (count == snapshot.keys.len() && fields.is_empty()).then_some(snapshot)
    }

    fn parse_key(&self, fields: &mut Fields<'a>) -> Option<SavedKey<'a>> {
        let limit = usize::try_from(fields.word()?).ok()?;
        let letter = self.limits.get(limit)?.identity.as_bytes().first()?;
        let subject = fields.text()?;
        Some(SavedKey { limit, subject, state: State::load(*letter, fields)? })
    }

    /// Returns true if a key occurs twice. Limits with one identity and different parameters share their keys.
    fn has_duplicates(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.keys.len());
        let identity = |key: &SavedKey<'a>| self.limits.get(key.limit).map(|limit| limit.identity);
        !self.keys.iter().all(|key| seen.insert((identity(key), key.subject)))
    }
}

impl<'a> SavedLimit<'a> {
    fn parse(fields: &mut Fields<'a>) -> Option<Self> {
        let text = fields.text()?;
        let identity = Identity::parse(text)?;
        let limit = match fields.byte()? {
            UNKNOWN => None,
            tag => Some(Limit::read_spec(&identity, tag, fields)?),
        };
        Some(Self { identity: text, limit })
    }
}

/// Checks magic number, version and checksum, and returns the records.
fn verify(input: &[u8]) -> Result<Fields<'_>, SnapshotError> {
    let Some((magic, rest)) = input.split_at_checked(MAGIC.len()) else {
        let is_prefix = MAGIC.starts_with(input);
        let kind =
            if is_prefix { SnapshotErrorKind::Damaged } else { SnapshotErrorKind::NotASnapshot };
        return Err(kind.into());
    };
    if magic != MAGIC {
        return Err(SnapshotErrorKind::NotASnapshot.into());
    }
    let version = Fields::new(rest).short().ok_or(SnapshotErrorKind::Damaged)?;
    if version > VERSION {
        return Err(SnapshotErrorKind::Version.into());
    }
    let (content, expected) = input.split_last_chunk().ok_or(SnapshotErrorKind::Damaged)?;
    let mut checksum = Checksum::new();
    checksum.update(content);
    let records = content.get(MAGIC.len() + size_of_val(&version)..);
    match records {
        Some(records) if checksum.0 == u64::from_be_bytes(*expected) => Ok(Fields::new(records)),
        _ => Err(SnapshotErrorKind::Damaged.into()),
    }
}
