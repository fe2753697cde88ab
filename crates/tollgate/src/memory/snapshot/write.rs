//! Writing a saved state, a shard at a time.

use std::collections::HashMap;
use std::io;

use super::{Checksum, END, KEY, LIMIT, MAGIC, UNKNOWN, VERSION};
use crate::fields::{put_longs, put_text};
use crate::limit::Limit;
use crate::memory::register::{Entries, Registered, WRITTEN_OUT};
use crate::memory::slot::Slot;
use crate::time::Timestamp;

/// Longer names, scope and subject together, are not written.
const MAX_NAME: usize = 1 << 31;

pub(super) struct Writer<'w, W> {
    out: &'w mut W,
    /// What is on its way out.
    buffer: Vec<u8>,
    checksum: Checksum,
    keys: u64,
    /// The limits written so far, in their order.
    limits: HashMap<Label, u32>,
}

/// A limit, or a scope whose numbers nobody remembers.
#[derive(PartialEq, Eq, Hash)]
enum Label {
    Numbered(Registered),
    WrittenOut(Box<str>),
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

    /// Adds a key to what is on its way out.
    pub(super) fn push(&mut self, slot: &Slot, entries: &Entries) {
        // A name that is longer than a length can tell is nobody's.
        if slot.subject().len() < MAX_NAME && self.try_push(slot, entries).is_some() {
            self.keys += 1;
        }
    }

    fn try_push(&mut self, slot: &Slot, entries: &Entries) -> Option<()> {
        let (registered, (scope, subject)) = (slot.registered(entries)?, slot.key(entries)?);
        let limit = self.number(registered, scope, entries)?;
        self.buffer.push(KEY);
        self.buffer.extend_from_slice(&limit.to_be_bytes());
        put_text(&mut self.buffer, subject)?;
        slot.save(entries, &mut self.buffer);
        Some(())
    }

    /// The limit's number in order of appearance; this may be its first.
    fn number(&mut self, registered: Registered, scope: &str, entries: &Entries) -> Option<u32> {
        let label = match registered.scope {
            WRITTEN_OUT => Label::WrittenOut(scope.into()),
            _ => Label::Numbered(registered),
        };
        if let Some(&number) = self.limits.get(&label) {
            return Some(number);
        }
        let number = u32::try_from(self.limits.len()).ok()?;
        write_limit(&mut self.buffer, scope, entries.limit(registered.limit))?;
        self.limits.insert(label, number);
        Some(number)
    }

    /// Sends what is on its way out.
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

fn write_limit(out: &mut Vec<u8>, scope: &str, limit: Option<&Limit>) -> Option<()> {
    out.push(LIMIT);
    put_text(out, scope)?;
    let Some(limit) = limit else {
        out.push(UNKNOWN);
        return Some(());
    };
    limit.write_spec(out)
}
