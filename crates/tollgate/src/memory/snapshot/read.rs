//! Reading a saved state, as if a stranger had written it.

use std::collections::HashSet;

use super::{Checksum, END, KEY, LIMIT, MAGIC, SnapshotError, SnapshotErrorKind, UNKNOWN, VERSION};
use crate::algorithm::State;
use crate::fields::Fields;
use crate::limit::Limit;
use crate::limit::identity::Identity;

/// All that was saved.
#[derive(Debug)]
pub(super) struct Snapshot<'a> {
    pub(super) limits: Vec<SavedLimit<'a>>,
    pub(super) keys: Vec<SavedKey<'a>>,
}

#[derive(Debug)]
pub(super) struct SavedLimit<'a> {
    pub(super) scope: &'a str,
    /// None if its numbers were not remembered.
    pub(super) limit: Option<Limit>,
}

#[derive(Debug)]
pub(super) struct SavedKey<'a> {
    /// Which of the limits.
    pub(super) limit: usize,
    pub(super) subject: &'a str,
    pub(super) state: State,
}

impl<'a> Snapshot<'a> {
    pub(super) fn read(input: &'a [u8]) -> Result<Self, SnapshotError> {
        let records = checked(input)?;
        let snapshot = Self::parse(records).ok_or(SnapshotErrorKind::Content)?;
        if snapshot.has_twins() {
            return Err(SnapshotErrorKind::Content.into());
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
        let letter = self.limits.get(limit)?.scope.as_bytes().first()?;
        let subject = fields.text()?;
        Some(SavedKey { limit, subject, state: State::load(*letter, fields)? })
    }

    /// Whether a key comes twice. Limits of one scope with different numbers share their keys.
    fn has_twins(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.keys.len());
        let scope = |key: &SavedKey<'a>| self.limits.get(key.limit).map(|limit| limit.scope);
        !self.keys.iter().all(|key| seen.insert((scope(key), key.subject)))
    }
}

impl<'a> SavedLimit<'a> {
    fn parse(fields: &mut Fields<'a>) -> Option<Self> {
        let text = fields.text()?;
        let scope = Identity::parse(text)?;
        let limit = match fields.byte()? {
            UNKNOWN => None,
            tag => Some(Limit::read_spec(&scope, tag, fields)?),
        };
        Some(Self { scope: text, limit })
    }
}

/// The records of a whole file of ours.
fn checked(input: &[u8]) -> Result<Fields<'_>, SnapshotError> {
    let Some((magic, rest)) = input.split_at_checked(MAGIC.len()) else {
        let is_beginning = MAGIC.starts_with(input);
        let kind = if is_beginning { SnapshotErrorKind::Torn } else { SnapshotErrorKind::Foreign };
        return Err(kind.into());
    };
    if magic != MAGIC {
        return Err(SnapshotErrorKind::Foreign.into());
    }
    let version = Fields::new(rest).short().ok_or(SnapshotErrorKind::Torn)?;
    if version > VERSION {
        return Err(SnapshotErrorKind::Version.into());
    }
    let (whole, told) = input.split_last_chunk().ok_or(SnapshotErrorKind::Torn)?;
    let mut checksum = Checksum::new();
    checksum.update(whole);
    let records = whole.get(MAGIC.len() + size_of_val(&version)..);
    match records {
        Some(records) if checksum.0 == u64::from_be_bytes(*told) => Ok(Fields::new(records)),
        _ => Err(SnapshotErrorKind::Torn.into()),
    }
}
