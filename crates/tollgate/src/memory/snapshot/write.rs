//! Snapshot writer, one shard at a time.

use std::collections::HashMap;
use std::io;

use super::{Checksum, END, KEY, LIMIT, MAGIC, UNKNOWN, VERSION};
use crate::fields::{put_longs, put_text};
use crate::limit::Limit;
use crate::memory::registry::{Entries, Registered, UNREGISTERED};
use crate::memory::stored_key::StoredKey;
use crate::time::Timestamp;

/// Maximum length of a written key name (identity and subject) in bytes.
const MAX_NAME_LENGTH: usize = 1 << 31;

pub(super) struct Writer<'w, W> {
    out: &'w mut W,
    /// Records that are not written yet.
    buffer: Vec<u8>,
    checksum: Checksum,
    keys: u64,
    /// Numbers of the limits written so far.
    limits: HashMap<Label, u32>,
}

/// Identifies a written limit: its registration, or its identity if it is not registered.
#[derive(PartialEq, Eq, Hash)]
enum Label {
    Registered(Registered),
    Unregistered(Box<str>),
}

impl<'w, W: io::Write> Writer<'w, W> {
    pub(super) fn begin(out: &'w mut W, now: Timestamp) -> io::Result<Self> {
        let (checksum, limits) = (Checksum::new(), HashMap::new());
        let mut writer = Self { out, buffer: MAGIC.to_vec(), checksum, keys: 0, limits };
        writer.buffer.extend_from_slice(&VERSION.to_be_bytes());
        put_longs(&mut writer.buffer, [now.as_micros()]);
        writer.flush()?;
        Ok(writer)
    }

    /// Appends a key to the buffer.
    pub(super) fn push(&mut self, key: &StoredKey<'_>, entries: &Entries) {
        // Longer names do not fit a 32-bit length and do not occur in practice.
        if key.subject().len() < MAX_NAME_LENGTH && self.try_push(key, entries).is_some() {
            self.keys += 1;
        }
    }

    fn try_push(&mut self, key: &StoredKey<'_>, entries: &Entries) -> Option<()> {
        let (registered, (identity, subject)) = (key.registered(entries), key.key(entries)?);
        let limit = self.limit_number(registered, identity, entries)?;
        self.buffer.push(KEY);
        self.buffer.extend_from_slice(&limit.to_be_bytes());
        put_text(&mut self.buffer, subject)?;
        key.save(entries, &mut self.buffer);
        Some(())
    }

    /// Returns the number of a limit in order of appearance, and writes the limit the first time.
    fn limit_number(
        &mut self,
        registered: Registered,
        identity: &str,
        entries: &Entries,
    ) -> Option<u32> {
        let label = match registered.identity {
            UNREGISTERED => Label::Unregistered(identity.into()),
            _ => Label::Registered(registered),
        };
        if let Some(&number) = self.limits.get(&label) {
            return Some(number);
        }
        let number = u32::try_from(self.limits.len()).ok()?;
        write_limit(&mut self.buffer, identity, entries.limit(registered.limit))?;
        self.limits.insert(label, number);
        Some(number)
    }

    /// Writes the buffer to the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.checksum.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<u64> {
        self.buffer.push(END);
        put_longs(&mut self.buffer, [self.keys]);
        self.flush()?;
        self.out.write_all(&self.checksum.0.to_be_bytes())?;
        self.out.flush()?;
        Ok(self.keys)
    }
}

fn write_limit(out: &mut Vec<u8>, identity: &str, limit: Option<&Limit>) -> Option<()> {
    out.push(LIMIT);
    put_text(out, identity)?;
    let Some(limit) = limit else {
        out.push(UNKNOWN);
        return Some(());
    };
    limit.write_spec(out)
}
