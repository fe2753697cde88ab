//! Fuzz target of the replies of script calls. `scripts/fuzz call_reply` runs it for longer.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Key, Limit, Quota, Subject, Timestamp};
use tollgate_testkit::conformance::permit_id;
use tollgate_testkit::fuzz::Target;

use super::ticket::Ticket;
use super::{
    Batch, EncodedTake, KeyForm, PlanReply, QueuedPlan, ReservationVerb, Verb, Withdrawal, take_of,
};
use crate::keys::Keys;
use crate::resp::{Decoder, REPLY_CAP};

/// Maximum number of plans of one input.
const MAX_PLANS: usize = 8;

const WORDS: [&str; 26] = [
    "t",
    "p",
    "T",
    "d",
    "l",
    "w",
    "x",
    "h",
    "n",
    "r",
    "s",
    "e",
    "a",
    "*4\r\n",
    ":0\r\n:9\r\n:1\r\n",
    ":-1\r\n:0\r\n:0\r\n",
    ":1750000000000000\r\n",
    ":-9223372036854775808\r\n",
    "$5\r\nSTALE\r\n",
    "$9\r\nWRONGNODE\r\n",
    "$9\r\nCROSSSLOT\r\n",
    "$3\r\n=ab\r\n",
    "$1\r\n-\r\n",
    "$-1\r\n",
    "*0\r\n",
    "$9\r\nWRONGTYPE\r\n",
];

/// What the caller of a plan receives.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Received {
    /// The figures of this many takes.
    Figures(usize),
    Other(u8),
    Failed,
    Misdirected,
}

#[test]
fn fuzz_call_reply() {
    let summary = Target::new("call_reply", 3000).dictionary(&WORDS).run(|input| {
        let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let (verbs, reply) = input.split_at(end);
        let plans: Vec<_> = verbs.iter().take(MAX_PLANS).filter_map(|byte| plan(*byte)).collect();
        let mut decoder = Decoder::default();
        decoder.buffer().extend_from_slice(reply.get(1..).unwrap_or_default());
        let Ok(Some(reply)) = decoder.next(REPLY_CAP) else { return (false, Vec::new()) };
        let counters: Vec<usize> = plans.iter().map(|(_, takes)| counters(takes)).collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        let new =
            |(verb, takes): (Verb, Vec<EncodedTake>)| QueuedPlan::new(verb, takes.into(), deadline);
        let (plans, tickets): (Vec<_>, Vec<_>) = plans.into_iter().map(new).unzip();
        let outcome = Batch::new(plans, "channel", None, KeyForm::Named).0.complete(reply);
        let received: Vec<_> = tickets.into_iter().map(received).collect();
        let misdirected = received.iter().filter(|one| **one == Received::Misdirected).count();
        assert_eq!(outcome.misdirected.len(), misdirected, "every other caller has a reply");
        for (received, takes) in received.iter().zip(counters) {
            assert!(!matches!(received, Received::Figures(count) if *count != takes));
        }
        (outcome.at.is_some(), received)
    });
    assert!(summary.outcomes > 20, "{summary:?}");
}

/// Returns the plan for a letter of the first line.
fn plan(letter: u8) -> Option<(Verb, Vec<EncodedTake>)> {
    let second = Duration::from_secs(1);
    let (verb, takes) = match letter {
        b't' => (Verb::Take, 1),
        b'T' => (Verb::Take, 2),
        b'p' => (Verb::Peek, 1),
        b'd' => (Verb::Debit { age: second }, 1),
        b'l' => (Verb::Lease { hold: second }, 1),
        b'w' => (Verb::Pause { length: second }, 1),
        b'x' => (Verb::Reset, 1),
        b'h' => (Verb::Hold(permit_id(7)), 1),
        b'n' => (Verb::Renew(permit_id(7)), 0),
        b'r' => (Verb::OnReservation(ReservationVerb::Reserve), 1),
        b's' => (Verb::OnReservation(ReservationVerb::Settle), 1),
        b'e' => (Verb::OnReservation(ReservationVerb::Extend), 1),
        b'a' => (Verb::OnReservation(ReservationVerb::Adopt), 0),
        _ => return None,
    };
    let record = matches!(verb, Verb::OnReservation(_));
    let record = record.then(|| EncodedTake::of_record(b"record".to_vec(), Vec::new()));
    Some((verb, record.into_iter().chain((0..takes).map(take)).collect()))
}

fn take(number: u8) -> EncodedTake {
    let limit = Limit::sliding_window(Quota::per_hour(u64::from(number) + 1)).unwrap();
    let subject = Subject::of(["k"]);
    let keys = Keys::new("p:".to_owned());
    take_of(&Key::new(&subject, &limit), 1, &keys, Timestamp::from_micros(1))
}

fn counters(takes: &[EncodedTake]) -> usize {
    takes.iter().filter(|take| take.is_counter()).count()
}

fn received(ticket: Ticket) -> Received {
    match ticket.withdraw() {
        Withdrawal::Replied(Ok(PlanReply::Figures(figures))) => {
            assert!(figures.leased.is_empty() || figures.leased.len() == figures.replies.len());
            assert!(figures.outcomes.is_empty() || figures.outcomes.len() == figures.replies.len());
            Received::Figures(figures.replies.len())
        }
        Withdrawal::Replied(Ok(PlanReply::Number(_))) => Received::Other(0),
        Withdrawal::Replied(Ok(PlanReply::Record(_))) => Received::Other(1),
        Withdrawal::Replied(Ok(_)) => Received::Other(2),
        Withdrawal::Replied(Err(_)) => Received::Failed,
        Withdrawal::Unsent(_) | Withdrawal::Sent => Received::Misdirected,
    }
}
