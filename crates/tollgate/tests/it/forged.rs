//! What was not saved so is not restored: files cut short, changed, or made up.

use tollgate::{Key, Limit, ManualClock, Quota, SnapshotErrorKind, Subject, Timestamp};
use tollgate_testkit::answer::Operation;
use tollgate_testkit::random::Random;

use crate::asking::ask;
use crate::saving::{Store, filled, limits, saved, store};

/// Magic, version and time of saving.
const HEADER: usize = 8 + 2 + 8;

fn refusal(file: &[u8]) -> Option<SnapshotErrorKind> {
    store(&ManualClock::new()).restore(file).err().map(|error| error.kind())
}

#[test]
fn every_truncation_and_every_flipped_byte_is_refused() {
    let file = saved(&filled(&ManualClock::new()));
    assert_eq!(refusal(&file), None);
    for length in 0..file.len() {
        let kind = refusal(&file[..length]);
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
            assert_eq!(refusal(&changed), Some(kind), "byte {at}");
        }
    }
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(refusal(&longer), Some(SnapshotErrorKind::Damaged));
    assert_eq!(refusal(b"PK\x03\x04"), Some(SnapshotErrorKind::NotASnapshot));
}

/// The file with a checksum that fits.
fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    file.truncate(file.len() - 8);
    let checksum = file.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    file.extend_from_slice(&checksum.to_be_bytes());
    file
}

/// Whoever can write the file can compute its checksum: what is accepted must still be sound.
#[test]
fn a_forged_file_is_refused_or_harmless() {
    let file = saved(&filled(&ManualClock::new()));
    assert_eq!(sealed(file.clone()), file);
    let (mut random, mut refused, mut accepted) = (Random::new(11), 0, 0);
    let values = [0, 1, 0x1F, 0x20, 0x7F, 0x80, 0xFF];
    for _ in 0..6000 {
        let mut forged = file.clone();
        for _ in 0..random.within(1, 3) {
            let at = random.within(HEADER as u64, file.len() as u64 - 9);
            forged[usize::try_from(at).unwrap()] = *random.pick(&values).unwrap();
        }
        let clock = ManualClock::new();
        let store = store(&clock);
        match store.restore(&sealed(forged)) {
            Err(error) => {
                assert_eq!(error.kind(), SnapshotErrorKind::Invalid);
                assert_eq!(store.occupancy().keys, 0);
                refused += 1;
            }
            Ok(_) => {
                exercise(&store, &clock);
                accepted += 1;
            }
        }
    }
    assert!(refused > 1000 && accepted > 1000, "{refused} refused, {accepted} accepted");
}

/// The same key twice would be found once and counted for ever.
#[test]
fn a_key_that_comes_twice_is_refused() {
    let store = store(&ManualClock::new());
    let limit = Limit::fixed_window(Quota::per_minute(3)).unwrap();
    let _ = ask(&store, Key::new(&Subject::of(["k"]), &limit), Operation::Take { cost: 1 });
    let file = saved(&store);
    let end = file.len() - 1 - 8 - 8;
    // Tag, limit, subject and state of the only key.
    let key = &file[end - (1 + 4 + 4 + 2 + 1 + 32)..end];
    assert_eq!(&key[9..11], b":k");
    let with = |keys: u8, between: &[u8]| {
        let mut forged = [&file[..end], between, &file[end..]].concat();
        let count = forged.len() - 9;
        forged[count] = keys;
        refusal(&sealed(forged))
    };
    assert_eq!(with(1, &[]), None);
    assert_eq!(with(2, &[]), Some(SnapshotErrorKind::Invalid));
    assert_eq!(with(2, key), Some(SnapshotErrorKind::Invalid));
    let mut other = key.to_vec();
    other[10] = b'l';
    assert_eq!(with(2, &other), None);
}

/// Every operation at every time: overflow and underflow panic in tests.
fn exercise(store: &Store, clock: &ManualClock) {
    for now in [0, 1_000_000, Timestamp::MAX.as_micros(), 30_000_000] {
        clock.set(Timestamp::from_micros(now));
        for limit in limits() {
            for name in ["k", "paused"] {
                let subject = Subject::of([name]);
                let key = Key::new(&subject, &limit);
                for asked in [
                    Operation::Peek { cost: 9 },
                    Operation::Take { cost: 1 },
                    Operation::Debit { cost: 3, age_us: 7 },
                    Operation::Refund { cost: 1 },
                ] {
                    let answer = ask(store, key, asked);
                    assert_eq!(answer.count + answer.remaining, limit.capacity());
                }
                if limit.ttl().is_some() {
                    let _ = ask(store, key, Operation::Renew { permit: 7 });
                    let _ = ask(store, key, Operation::Release { permit: 7 });
                }
            }
        }
        store.sweep(usize::MAX);
    }
}

/// Lengths and counts beyond the file itself.
#[test]
fn absurd_lengths_allocate_nothing() {
    let file = saved(&filled(&ManualClock::new()));
    for at in HEADER..file.len() - 12 {
        let mut forged = file.clone();
        forged[at..at + 4].copy_from_slice(&[0xFF; 4]);
        let forged = sealed(forged);
        let measured = allocation_counter::measure(|| {
            let _ = refusal(&forged);
        });
        assert!(measured.bytes_max < 1 << 20, "{measured:?} at byte {at}");
    }
}
