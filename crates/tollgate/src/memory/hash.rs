//! Hashes of keys.
//!
//! A hash has three parts: bits 40 to 63 select the shard, bits 33 to 39 are the tag of a table's control byte, and the low bits are
//! the position in the table. Identities are numbered in the order of their first use; 64 consecutive ones are a block.
//!
//! The keys of one subject whose identities are in one block are in one shard, so that a plan of them needs one lock, and
//! eight consecutive ones start at one position with different tags, so that they are in neighbouring slots. Other keys of a
//! subject are independent of each other: thousands of limits of one subject do not fill one shard.

use std::hash::{BuildHasher, Hasher};

/// Odd number with well-distributed bits, which spreads the blocks of one subject over all shards.
const BLOCK_STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Lowest bit of the part that selects the shard.
const SHARD_SHIFT: u32 = 40;
/// Lowest bit of the tag.
const TAG_SHIFT: u32 = 33;
/// The tags of control bytes are the highest 7 bits of a hash for `hashbrown`.
const TABLE_TAG_SHIFT: u32 = 57;
/// Neighbouring positions of a subject are one group of `hashbrown` apart.
const POSITION_SHIFT: u32 = 4;

/// Identities that share a position, and positions of a block.
const PER_POSITION: u32 = 8;
const PER_BLOCK: u32 = 64;

/// Returns the hash of a key.
#[inline]
pub(super) fn hash(identity: u32, subject: &[u8], hasher: &impl BuildHasher) -> u64 {
    of_identity(of_subject(subject, hasher), identity)
}

#[inline]
pub(super) fn of_subject(subject: &[u8], hasher: &impl BuildHasher) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(subject);
    hasher.finish()
}

/// Returns the hash of a key from that of its subject.
#[inline]
pub(super) const fn of_identity(subject_hash: u64, identity: u32) -> u64 {
    let in_block = identity % PER_BLOCK;
    let tag = (in_block % PER_POSITION) as u64;
    let position = (in_block / PER_POSITION) as u64;
    let block = (block(identity) as u64).wrapping_mul(BLOCK_STRIDE);
    subject_hash.wrapping_add(block) ^ (tag << TAG_SHIFT | position << POSITION_SHIFT)
}

/// Returns the block of an identity.
#[inline]
pub(super) const fn block(identity: u32) -> u32 {
    identity / PER_BLOCK
}

/// Selects one of `shards` shards, at most 65 536, in the order of hashes.
#[inline]
pub(super) const fn shard(hash: u64, shards: usize) -> usize {
    // 24 bits by at most 17: the product fits.
    ((hash >> SHARD_SHIFT).wrapping_mul(shards as u64) >> (u64::BITS - SHARD_SHIFT)) as usize
}

/// Returns the hash for `hashbrown`, which reads the position from the low bits and the tag from the highest ones. Those are
/// equal for all keys of a shard.
#[inline]
pub(super) const fn in_table(hash: u64) -> u64 {
    hash ^ hash << (TABLE_TAG_SHIFT - TAG_SHIFT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const SHARDS: usize = 1219;

    proptest! {
        #[test]
        fn keys_of_a_subject_and_block_share_a_shard(subject_hash: u64, block in 0u32..1 << 11) {
            let first = of_identity(subject_hash, block * PER_BLOCK);
            let hashes: HashSet<u64> =
                (0..PER_BLOCK).map(|nth| of_identity(subject_hash, block * PER_BLOCK + nth)).collect();
            prop_assert_eq!(hashes.len(), PER_BLOCK as usize);
            prop_assert!(hashes.iter().all(|hash| shard(*hash, SHARDS) == shard(first, SHARDS)));
        }

        #[test]
        fn neighbours_have_one_position_and_different_tags(subject_hash: u64, identity in 0u32..1 << 17) {
            let first = identity / PER_POSITION * PER_POSITION;
            let hashes: Vec<u64> =
                (first..first + PER_POSITION).map(|nth| in_table(of_identity(subject_hash, nth))).collect();
            let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> TABLE_TAG_SHIFT).collect();
            let positions: HashSet<u64> = hashes.iter().map(|hash| hash % (1 << 24)).collect();
            prop_assert_eq!((tags.len(), positions.len()), (PER_POSITION as usize, 1));
        }

        #[test]
        fn shards_are_in_the_order_of_hashes(one: u64, other: u64, shards in 1usize..=65_536) {
            prop_assert!(shard(one, shards) < shards);
            prop_assert!(one > other || shard(one, shards) <= shard(other, shards));
        }
    }

    #[test]
    fn limits_of_one_subject_do_not_fill_one_shard() {
        let subject_hash = 0x0123_4567_89AB_CDEF;
        let mut keys = vec![0u32; SHARDS];
        for identity in 0..65_536 {
            keys[shard(of_identity(subject_hash, identity), SHARDS)] += 1;
        }
        assert!(keys.iter().all(|keys| *keys <= 4 * PER_BLOCK), "{:?}", keys.iter().max());
    }
}
