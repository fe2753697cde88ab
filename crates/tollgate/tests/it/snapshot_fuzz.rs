//! Fuzz target of snapshots: a changed snapshot is refused as a whole, or the store that it restores saves itself as an
//! equal one. `scripts/fuzz snapshot` runs it for longer.

use tollgate::ManualClock;
use tollgate_testkit::fuzz::Target;

use crate::snapshot_validation::{exercise, with_checksum};
use crate::snapshots::{Store, filled, listed, saved, store};

#[test]
fn fuzz_snapshot() {
    let target =
        Target::new("snapshot", 800).dictionary(&["tollgate", "\0\0\0\x01k", "\x02", "\x01"]);
    let target = target.seeds([saved(&filled(&ManualClock::new()))]).max_length(8 * 1024);
    let mut counts = [0, 0];
    let summary = target.run(|input| {
        let as_is = restored(input).map(|_| ());
        let forged = with_checksum(input.to_vec());
        if forged != input {
            assert!(as_is.is_err(), "the checksum is wrong");
        }
        let restored = restored(&forged);
        counts[usize::from(restored.is_ok())] += 1;
        let (store, clock) = restored?;
        let again = saved(&store);
        let copy = self::restored(&again).expect("a saved snapshot is valid").0;
        assert_eq!(listed(&copy), listed(&store));
        assert_eq!(copy.occupancy().keys, store.occupancy().keys);
        assert_eq!(saved(&copy).len(), again.len());
        exercise(&store, &clock);
        Ok::<_, String>(copy.occupancy().keys)
    });
    assert!(summary.outcomes > 2, "{summary:?}");
    assert!(counts.iter().all(|count| *count > 20), "refused and accepted: {counts:?}");
}

/// Restores a snapshot into a store; a store that refuses it stays empty.
fn restored(file: &[u8]) -> Result<(Store, ManualClock), String> {
    let clock = ManualClock::new();
    let store = store(&clock);
    match store.restore(file) {
        Ok(count) => {
            assert_eq!(store.occupancy().keys as u64, count);
            Ok((store, clock))
        }
        Err(error) => {
            assert_eq!(store.occupancy().keys, 0);
            Err(error.to_string())
        }
    }
}
