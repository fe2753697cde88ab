//! Search for packed token buckets, without the cases of other states.

use super::Table;
use crate::memory::hash::in_table;
use crate::memory::packed::{PackedBucket, PackedBucketMut};
use crate::memory::slot::{LongSlot, LookupKey, ShortSlot};

impl Table {
    /// Returns the bucket of a key; `None` if the key does not exist, or its state is not a packed bucket with the
    /// limit of the lookup.
    #[inline(always)]
    pub(in crate::memory) fn bucket_mut(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
    ) -> Option<PackedBucketMut<'_>> {
        let (hash, limit) = (in_table(hash), lookup.limit());
        match lookup.short() {
            Some(short) => {
                let slot = self.short.find_mut(hash, |slot| slot.is_bucket_of_short(limit, short));
                slot?.bucket_mut()
            }
            None => {
                let subject = lookup.subject();
                let slot = self.long.find_mut(hash, |slot| slot.is_bucket_of(limit, subject));
                slot?.bucket_mut()
            }
        }
    }

    /// Returns the bucket of a key like `bucket_mut`, by its index in the table of short or long slots.
    #[inline(always)]
    pub(in crate::memory) fn find_bucket(
        &self,
        hash: u64,
        lookup: &LookupKey<'_>,
    ) -> Option<(usize, PackedBucket)> {
        let (hash, limit) = (in_table(hash), lookup.limit());
        match lookup.short() {
            Some(short) => {
                let is_key = |slot: &ShortSlot| slot.is_bucket_of_short(limit, short);
                let index = self.short.find_bucket_index(hash, is_key)?;
                Some((index, self.short.get_bucket(index)?.bucket()?))
            }
            None => {
                let is_key = |slot: &LongSlot| slot.is_bucket_of(limit, lookup.subject());
                let index = self.long.find_bucket_index(hash, is_key)?;
                Some((index, self.long.get_bucket(index)?.bucket()?))
            }
        }
    }

    /// Returns the bucket that `find_bucket` has found, if the table has not changed since.
    #[inline(always)]
    pub(in crate::memory) fn bucket_at(
        &mut self,
        index: usize,
        lookup: &LookupKey<'_>,
    ) -> Option<PackedBucketMut<'_>> {
        match lookup.short() {
            Some(_) => self.short.get_bucket_mut(index)?.bucket_mut(),
            None => self.long.get_bucket_mut(index)?.bucket_mut(),
        }
    }
}
