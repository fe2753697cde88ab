//! A store that was saved and restored answers as one that was not interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Lease, Limit, Listing, ManualClock, MemoryStore, Plan, Quota, SnapshotErrorKind, Subject,
    Take, Timestamp,
};
use tollgate_testkit::answer::Ask;
use tollgate_testkit::conformance::lease_id;
use tollgate_testkit::history::{History, Wildness};
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::Kind;

use crate::asking::ask;

type Store = MemoryStore<ManualClock>;

const HEADER: usize = 8 + 2 + 8;

fn store(clock: &ManualClock) -> Store {
    MemoryStore::builder().clock(clock.clone()).build()
}

fn saved(store: &Store) -> Vec<u8> {
    let mut file = Vec::new();
    store.save(&mut file).unwrap();
    file
}

fn refusal(file: &[u8]) -> Option<SnapshotErrorKind> {
    store(&ManualClock::new()).restore(file).err().map(|error| error.kind())
}

/// One limit of each kind, some of them named.
fn limits() -> Vec<Limit> {
    let quota = Quota::new(9, Duration::from_secs(60));
    let limits = [
        Limit::token_bucket(quota.burst(20)),
        Limit::token_bucket(quota).and_then(|limit| limit.named("named")),
        Limit::sliding_window(quota).and_then(|limit| limit.in_rule("rule")),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(9, CalendarUnit::Week, "America/New_York"),
        Limit::concurrency(9, Duration::from_secs(60)),
    ];
    limits.into_iter().map(Result::unwrap).chain([Limit::block()]).collect()
}

/// Keys of every kind, used, paused and both.
fn filled(clock: &ManualClock) -> Store {
    let store = store(clock);
    for limit in limits() {
        for (nth, name) in
            ["k", "paused", "a subject that is too long for a slot"].iter().enumerate()
        {
            let subject = Subject::of([name]);
            let key = Key::new(&subject, &limit);
            ask(&store, key, Ask::Hold { cost: 2, lease: 7 });
            ask(&store, key, Ask::Debit { cost: 1, age_us: 5_000_000 });
            if nth == 1 {
                ask(&store, key, Ask::Pause { length_us: 3_000_000 });
            }
        }
    }
    store
}

#[test]
fn a_restored_store_answers_as_one_that_was_not_interrupted() {
    let (mut compared, mut keys) = (0, 0);
    for wildness in [Wildness::Calm, Wildness::Operated, Wildness::Upset] {
        for kind in Kind::ALL {
            for seed in 0..150 {
                let kept = compare(seed, kind, wildness);
                (compared, keys) = (compared + 1, keys + kept);
            }
        }
    }
    assert!(
        keys * 2 > compared,
        "only {keys} of {compared} keys were in use: the test shows little"
    );
}

/// Interrupts a history at some moment; how many keys were in use then.
fn compare(seed: u64, kind: Kind, wildness: Wildness) -> u64 {
    let clock = ManualClock::new();
    let lasting = store(&clock);
    let mut restored = None;
    let mut history = History::new(seed, kind, wildness);
    let limits: Vec<Limit> = history.limits().iter().map(|spec| spec.build().unwrap()).collect();
    let name = if seed.is_multiple_of(2) { "k" } else { "a subject that is too long for a slot" };
    let subject = Subject::of([name]);
    let split = Random::new(seed).within(1, 40);
    let (mut last, mut kept) = (None, 0);
    for moment_number in 0..60 {
        let moment = history.next(last.as_ref());
        clock.set(Timestamp::from_micros(moment.at_us));
        if moment_number == split {
            let store = store(&clock);
            kept = store.restore(&saved(&lasting)).unwrap();
            restored = Some(store);
        }
        let key = Key::new(&subject, &limits[moment.limit]);
        let answer = ask(&lasting, key, moment.ask);
        // What had ended is not saved, and does not come back with a clock that steps back over it.
        if let Some(restored) = &restored
            && (kept > 0 || wildness != Wildness::Upset)
        {
            let told = ask(restored, key, moment.ask);
            assert_eq!(told, answer, "{kind:?} {wildness:?} seed {seed} {moment:?}");
        }
        last = Some(answer);
    }
    kept
}

#[test]
fn every_key_and_its_limit_come_back() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let limit = Limit::token_bucket(Quota::per_day(3)).unwrap();
    for n in 0..5000 {
        let subject = Subject::of([format!("user-{n}")]);
        let _ = before.take(&Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap());
    }
    let after = store(&clock);
    assert_eq!(after.restore(&saved(&before)).unwrap(), before.occupancy().keys as u64);
    assert_eq!(after.occupancy().keys, before.occupancy().keys);
    let listed = |store: &Store| {
        let mut keys = store.list(&Listing::all().with_page_size(usize::MAX)).unwrap().keys;
        keys.sort_by_key(|key| (key.subject.clone(), key.algorithm.as_str(), key.limit.clone()));
        keys
    };
    assert_eq!(listed(&after), listed(&before));
    assert!(listed(&after).iter().all(|key| key.known.is_some()));
}

/// Past 65 536 names a scope is written out, and its numbers are not remembered.
#[test]
fn keys_of_unnumbered_limits_come_back() {
    let clock = ManualClock::new();
    let (before, after) = (store(&clock), store(&clock));
    let limit = |n: u64| {
        let limit = Limit::token_bucket(Quota::per_day(2)).unwrap();
        limit.named(&n.to_string()).unwrap()
    };
    let subject = Subject::of(["k"]);
    for n in 0..66_000 {
        let _ = ask(&before, Key::new(&subject, &limit(n)), Ask::Take { cost: 1 });
    }
    assert_eq!(after.restore(&saved(&before)).unwrap(), 66_000);
    for n in [0, 8191, 8192, 65_535, 65_536, 65_999] {
        let answer = ask(&after, Key::new(&subject, &limit(n)), Ask::Take { cost: 1 });
        assert_eq!((answer.is_allowed(), answer.remaining), (true, 0), "limit {n}");
    }
}

#[test]
fn what_has_ended_is_not_saved_and_not_restored() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let file = saved(&before);
    clock.advance(Duration::from_secs(14 * 86_400));
    let mut later = Vec::new();
    assert_eq!(before.save(&mut later).unwrap(), 0);
    assert_eq!(store(&clock).restore(&file).unwrap(), 0);
    assert_eq!(store(&clock).restore(&later).unwrap(), 0);
}

#[test]
fn only_an_empty_store_with_room_is_restored_into() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let file = saved(&before);
    assert_eq!(before.restore(&file).unwrap_err().kind(), SnapshotErrorKind::Occupied);
    let small = MemoryStore::builder().max_keys(3).clock(clock).build();
    assert_eq!(small.restore(&file).unwrap_err().kind(), SnapshotErrorKind::TooMany);
    assert_eq!(small.occupancy().keys, 0);
}

#[test]
fn every_truncation_and_every_flipped_byte_is_refused() {
    let file = saved(&filled(&ManualClock::new()));
    assert_eq!(refusal(&file), None);
    for length in 0..file.len() {
        let kind = refusal(&file[..length]);
        assert_eq!(kind, Some(SnapshotErrorKind::Torn), "the first {length} bytes");
    }
    for at in 0..file.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut changed = file.clone();
            changed[at] ^= flip;
            let kind = match at {
                0..8 => SnapshotErrorKind::Foreign,
                8..10 if changed[8..10] > file[8..10] => SnapshotErrorKind::Version,
                _ => SnapshotErrorKind::Torn,
            };
            assert_eq!(refusal(&changed), Some(kind), "byte {at}");
        }
    }
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(refusal(&longer), Some(SnapshotErrorKind::Torn));
    assert_eq!(refusal(b"PK\x03\x04"), Some(SnapshotErrorKind::Foreign));
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
                assert_eq!(error.kind(), SnapshotErrorKind::Content);
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
    let _ = ask(&store, Key::new(&Subject::of(["k"]), &limit), Ask::Take { cost: 1 });
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
    assert_eq!(with(2, &[]), Some(SnapshotErrorKind::Content));
    assert_eq!(with(2, key), Some(SnapshotErrorKind::Content));
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
                    Ask::Peek { cost: 9 },
                    Ask::Take { cost: 1 },
                    Ask::Debit { cost: 3, age_us: 7 },
                    Ask::Refund { cost: 1 },
                ] {
                    let answer = ask(store, key, asked);
                    assert_eq!(answer.count + answer.remaining, limit.capacity());
                }
                if limit.ttl().is_some() {
                    let _ = ask(store, key, Ask::Renew { lease: 7 });
                    let _ = ask(store, key, Ask::Release { lease: 7 });
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

/// Whatever is taken, held and given back meanwhile, each file is whole.
#[test]
fn saving_beside_takes_gives_whole_files() {
    let store = MemoryStore::new();
    let limits = limits();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let takers: Vec<_> = (0..4u64)
            .map(|nth| {
                let (store, limits) = (&store, &limits);
                scope.spawn(move || {
                    for n in 0..4000 {
                        let subject = Subject::of([format!("{nth}-{}", n % 500)]);
                        for limit in limits {
                            let plan =
                                Plan::new([Take::new(Key::new(&subject, limit), 1)]).unwrap();
                            let plan = plan.with_lease(lease_id(n + 1));
                            if let Some(lease) = Lease::of(&plan, &store.take(&plan)) {
                                assert!(store.release(&lease));
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut file = Vec::new();
                let keys = store.save(&mut file).unwrap();
                let restored = MemoryStore::new().restore(&file).unwrap();
                assert!(restored <= keys);
            }
        });
        for taker in takers {
            taker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
