//! Damaged, modified and forged snapshots are rejected or harmless.

use tollgate::{Key, Limit, ManualClock, Quota, SnapshotErrorKind, Subject, Timestamp};
use tollgate_testkit::answer::Operation;
use tollgate_testkit::random::Random;

use crate::operations::apply;
use crate::snapshots::{Store, filled, limits, saved, store};

/// Length of magic number, version and time of the snapshot.
const HEADER: usize = 8 + 2 + 8;

fn restore_error(file: &[u8]) -> Option<SnapshotErrorKind> {
    store(&ManualClock::new()).restore(file).err().map(|error| error.kind())
}

#[test]
fn rejects_every_truncation_and_every_changed_byte() {
    let file = saved(&filled(&ManualClock::new()));
    assert_eq!(restore_error(&file), None);
    for length in 0..file.len() {
        let kind = restore_error(&file[..length]);
        assert_eq!(kind, Some(SnapshotErrorKind::Damaged), "the first {length} bytes");
    }
    for at in 0..file.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut changed = file.clone();
            changed[at] ^= flip;
            let kind = match at {
                0..8 => SnapshotErrorKind::NotASnapshot,
                8..10 if changed[8..10] > file[8..10] => SnapshotErrorKind::Version,
                _ => SnapshotErrorKind::Damaged,
            };
            assert_eq!(restore_error(&changed), Some(kind), "byte {at}");
        }
    }
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(restore_error(&longer), Some(SnapshotErrorKind::Damaged));
    assert_eq!(restore_error(b"PK\x03\x04"), Some(SnapshotErrorKind::NotASnapshot));
}

/// Returns the file with a correct checksum.
pub(crate) fn with_checksum(mut file: Vec<u8>) -> Vec<u8> {
    file.truncate(file.len().saturating_sub(8));
    let checksum = file.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    file.extend_from_slice(&checksum.to_be_bytes());
    file
}

/// An attacker can compute the checksum: accepted content must still be valid.
#[test]
fn forged_snapshot_is_rejected_or_harmless() {
    let file = saved(&filled(&ManualClock::new()));
    assert_eq!(with_checksum(file.clone()), file);
    let (mut random, mut rejected, mut accepted) = (Random::new(11), 0, 0);
    let values = [0, 1, 0x1F, 0x20, 0x7F, 0x80, 0xFF];
    for _ in 0..6000 {
        let mut forged = file.clone();
        for _ in 0..random.within(1, 3) {
            let at = random.within(HEADER as u64, file.len() as u64 - 9);
            forged[usize::try_from(at).unwrap()] = *random.pick(&values).unwrap();
        }
        let clock = ManualClock::new();
        let store = store(&clock);
        match store.restore(&with_checksum(forged)) {
            Err(error) => {
                assert_eq!(error.kind(), SnapshotErrorKind::Invalid);
                assert_eq!(store.occupancy().keys, 0);
                rejected += 1;
            }
            Ok(_) => {
                exercise(&store, &clock);
                accepted += 1;
            }
        }
    }
    assert!(rejected > 1000 && accepted > 1000, "{rejected} rejected, {accepted} accepted");
}

/// A lookup would find only one of two equal keys, and the other would stay forever.
#[test]
fn rejects_duplicate_keys() {
    let store = store(&ManualClock::new());
    let limit = Limit::fixed_window(Quota::per_minute(3)).unwrap();
    let _ = apply(&store, Key::new(&Subject::of(["k"]), &limit), Operation::Take { cost: 1 });
    let file = saved(&store);
    let end = file.len() - 1 - 8 - 8;
    // Tag, limit, subject and state of the single key.
    let key = &file[end - (1 + 4 + 4 + 2 + 1 + 32)..end];
    assert_eq!(&key[9..11], b":k");
    let with = |keys: u8, between: &[u8]| {
        let mut forged = [&file[..end], between, &file[end..]].concat();
        let count = forged.len() - 9;
        forged[count] = keys;
        restore_error(&with_checksum(forged))
    };
    assert_eq!(with(1, &[]), None);
    assert_eq!(with(2, &[]), Some(SnapshotErrorKind::Invalid));
    assert_eq!(with(2, key), Some(SnapshotErrorKind::Invalid));
    let mut second_key = key.to_vec();
    second_key[10] = b'l';
    assert_eq!(with(2, &second_key), None);
}

/// Applies every operation at several times; overflow panics in tests.
pub(crate) fn exercise(store: &Store, clock: &ManualClock) {
    for now in [0, 1_000_000, Timestamp::MAX.as_micros(), 30_000_000] {
        clock.set(Timestamp::from_micros(now));
        for limit in limits() {
            for name in ["k", "paused"] {
                let subject = Subject::of([name]);
                let key = Key::new(&subject, &limit);
                for operation in [
                    Operation::Peek { cost: 9 },
                    Operation::Take { cost: 1 },
                    Operation::Debit { cost: 3, age_us: 7 },
                    Operation::Refund { cost: 1 },
                ] {
                    let answer = apply(store, key, operation);
                    assert_eq!(answer.count + answer.remaining, limit.capacity());
                }
                if limit.ttl().is_some() {
                    let _ = apply(store, key, Operation::Renew { permit: 7 });
                    let _ = apply(store, key, Operation::Release { permit: 7 });
                }
            }
        }
        store.sweep(usize::MAX);
    }
}

/// Lengths and counts that exceed the file.
#[test]
fn oversized_lengths_do_not_allocate() {
    let file = saved(&filled(&ManualClock::new()));
    for at in HEADER..file.len() - 12 {
        let mut forged = file.clone();
        forged[at..at + 4].copy_from_slice(&[0xFF; 4]);
        let forged = with_checksum(forged);
        let measured = allocation_counter::measure(|| {
            let _ = restore_error(&forged);
        });
        assert!(measured.bytes_max < 1 << 20, "{measured:?} at byte {at}");
    }
}
