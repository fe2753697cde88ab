//! Reservations over RESP.

use std::io::Write;
use std::net::Shutdown;

use crate::reservations::POLICY;
use crate::resp_client::{RespClient, encode, readable, resp_address, start};
use crate::service::{Scratch, Service, eventually};

struct Setup {
    client: RespClient,
    service: Service,
    _scratch: Scratch,
}

fn start_setup() -> Setup {
    let scratch = Scratch::new();
    let (service, address) = start(&["--policy", &scratch.write("policy.yaml", POLICY)]);
    Setup { client: RespClient::connect(address), service, _scratch: scratch }
}

impl Setup {
    /// Reserves and returns the fields before the reservation, and the reservation.
    fn reserve(&mut self, arguments: &str) -> (String, String) {
        let reply = self.client.call(&format!("TOLLGATE.RESERVE {arguments}"));
        let fields: Vec<&str> = reply
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or("")
            .split(' ')
            .collect();
        assert_eq!(fields.len(), 9, "{arguments}: {reply}");
        assert!(fields[8].parse::<i64>().is_ok_and(|millis| millis > 0), "{reply}");
        // Without the times.
        ([&fields[..3], &fields[5..7]].concat().join(" "), fields[7].to_owned())
    }

    /// Returns the remaining tokens of a client of /chat.
    fn tokens_left(&mut self) -> i64 {
        let reply = self.client.call("TOLLGATE.PEEK client=c1 path=/chat COST tokens=1000");
        reply.split(' ').nth(2).and_then(|number| number.parse().ok()).expect("a number")
    }
}

const CHAT: &str = "client=c1 path=/chat COST requests=1";

#[test]
fn reserve_and_settle() {
    let mut setup = start_setup();
    let (decision, token) = setup.reserve(&format!("{CHAT} COST tokens=990"));
    assert_eq!(decision, "1 1000 10 chat tokens");
    assert!(token.starts_with("r0-") && token.len() == 67, "{token}");
    let settle = format!("TOLLGATE.SETTLE {token} COST tokens=100");
    assert_eq!(setup.client.call(&settle), "[1 0]");
    assert_eq!(setup.client.call(&settle), "[1 1]");
    assert_eq!(setup.tokens_left(), 900);
    let refused = setup.client.call(&format!("TOLLGATE.RESERVE {CHAT} COST tokens=1001"));
    assert!(
        refused.starts_with("[0 1000 900 -1 ") && refused.ends_with(" chat tokens]"),
        "{refused}"
    );
}

#[test]
fn settle_accepts_several_units_and_zero() {
    let mut setup = start_setup();
    for (costs, left) in [
        ("COST tokens=100 requests=2", 900),
        ("COST tokens=100 COST requests=2", 800),
        ("cost tokens=100", 700),
        ("COST 0", 700),
        ("COST 3", 500),
        ("COST requests=0", 300),
    ] {
        let (_, token) = setup.reserve(&format!("{CHAT} COST tokens=200"));
        assert_eq!(setup.client.call(&format!("TOLLGATE.SETTLE {token} {costs}")), "[1 0]");
        assert_eq!(setup.tokens_left(), left, "{costs}");
    }
}

#[test]
fn unknown_reservations_are_not_settled() {
    let mut setup = start_setup();
    let unknown = format!("r0-{}", "a".repeat(64));
    for (command, reply) in [
        (format!("TOLLGATE.SETTLE {unknown} COST 0"), "[0 0]"),
        (format!("TOLLGATE.RELEASE {unknown}"), "0"),
        (format!("TOLLGATE.RENEW {unknown}"), "-1"),
    ] {
        assert_eq!(setup.client.call(&command), reply, "{command}");
    }
}

#[test]
fn id_returns_the_first_reservation() {
    let mut setup = start_setup();
    let (_, first) = setup.reserve(&format!("{CHAT} COST tokens=400 ID order=1 TTL 5000"));
    let (_, again) = setup.reserve(&format!("{CHAT} COST tokens=400 ttl 9000 id order=1"));
    assert_eq!(first, again);
    assert_eq!(setup.tokens_left(), 600);
    let conflict =
        setup.client.call(&format!("TOLLGATE.RESERVE {CHAT} COST tokens=401 ID order=1"));
    assert_eq!(
        conflict,
        "-ERR id: the id belongs to a reservation with other costs; use another id"
    );
}

#[test]
fn release_and_renew_accept_reservations_and_permits() {
    let mut setup = start_setup();
    let jobs = "client=c1 path=/jobs";
    let (_, token) = setup.reserve(&format!("{jobs} COST tokens=10 TTL 3600000"));
    let held = setup.client.call(&format!("TOLLGATE.CHECK {jobs}"));
    assert!(held.starts_with("[0 "), "{held}");
    let renewed: i64 =
        setup.client.call(&format!("TOLLGATE.RENEW {token}")).parse().expect("a time");
    assert!(renewed > 0);
    assert_eq!(setup.client.call(&format!("TOLLGATE.RELEASE {token}")), "1");
    assert_eq!(setup.client.call(&format!("TOLLGATE.RELEASE {token}")), "0");
    assert_eq!(setup.client.call(&format!("TOLLGATE.RENEW {token}")), "-1");
    let checked = setup.client.call(&format!("TOLLGATE.CHECK {jobs}"));
    let permit =
        checked.trim_matches(['[', ']']).split(' ').nth(7).expect("it holds a slot").to_owned();
    assert_eq!(setup.client.call(&format!("TOLLGATE.RELEASE {permit}")), "1");
}

#[test]
fn reservations_of_both_front_ends_are_the_same() {
    let mut setup = start_setup();
    let (_, token) = setup.reserve(&format!("{CHAT} COST tokens=400"));
    let body = format!(r#"{{"reservation":"{token}","costs":{{"tokens":1}}}}"#);
    let settled = setup.service.post("/settle", body).json();
    assert_eq!(settled["charged"]["tokens"], 1, "{settled}");
    assert_eq!(setup.client.call(&format!("TOLLGATE.SETTLE {token} COST 0")), "[1 1]");
}

#[test]
fn invalid_arguments_are_errors_that_name_them() {
    let mut setup = start_setup();
    let token = format!("r0-{}", "a".repeat(64));
    let ttl = "-ERR ttl: the time to live must be between 1 millisecond and 1 day";
    let no_token = "-ERR reservation: invalid reservation token; use the value of `reservation` in the response to the reserve call";
    let syntax = "-ERR syntax error: expected COST unit=n… or COST 0";
    for (command, error) in [
        (
            "TOLLGATE.RESERVE".to_owned(),
            "-ERR wrong number of arguments for 'tollgate.reserve' command",
        ),
        ("TOLLGATE.RESERVE k TTL 0".to_owned(), ttl),
        ("TOLLGATE.RESERVE k TTL 86400001".to_owned(), ttl),
        ("TOLLGATE.RESERVE k TTL -1".to_owned(), "-ERR ttl: must be a number of milliseconds"),
        ("TOLLGATE.RESERVE k TTL 60s".to_owned(), "-ERR ttl: must be a number of milliseconds"),
        ("TOLLGATE.RESERVE k TTL".to_owned(), "-ERR ttl: must be a number of milliseconds"),
        ("TOLLGATE.RESERVE k TTL 1 TTL 1".to_owned(), "-ERR TTL is given twice"),
        ("TOLLGATE.RESERVE k ID".to_owned(), "-ERR id: the id must have 1 to 64 bytes"),
        (
            format!("TOLLGATE.RESERVE k ID {}", "x".repeat(65)),
            "-ERR id: the id must have 1 to 64 bytes",
        ),
        ("TOLLGATE.RESERVE k ID a ID b".to_owned(), "-ERR ID is given twice"),
        (
            "TOLLGATE.RESERVE k FOR 5".to_owned(),
            "-ERR syntax error: expected name=value, COST n, COST unit=n, TTL ms or ID id",
        ),
        (
            "TOLLGATE.CHECK k TTL 5".to_owned(),
            "-ERR syntax error: expected name=value, COST n or COST unit=n",
        ),
        (
            format!("TOLLGATE.SETTLE {token}"),
            "-ERR wrong number of arguments for 'tollgate.settle' command",
        ),
        (
            format!("TOLLGATE.SETTLE {token} COST"),
            "-ERR wrong number of arguments for 'tollgate.settle' command",
        ),
        (format!("TOLLGATE.SETTLE {token} tokens=1 tokens=2"), syntax),
        (format!("TOLLGATE.SETTLE {token} COST a=1 b"), syntax),
        (
            format!("TOLLGATE.SETTLE {token} COST x"),
            "-ERR cost: must be an integer from 0 to 9007199254740991",
        ),
        (
            format!("TOLLGATE.SETTLE {token} COST a=1 a=2"),
            "-ERR cost: the costs name the unit \"a\" twice",
        ),
        (format!("TOLLGATE.SETTLE {token} COST 1 COST 1"), "-ERR COST is given twice"),
        ("TOLLGATE.SETTLE r0 COST 0".to_owned(), no_token),
        (format!("TOLLGATE.SETTLE {} COST 0", token.to_uppercase()), no_token),
        ("TOLLGATE.RELEASE r0".to_owned(), no_token),
        ("TOLLGATE.RENEW rabbit".to_owned(), no_token),
    ] {
        assert_eq!(setup.client.call(&command), error, "{command}");
    }
    let reply = setup.client.call_with(&[&b"TOLLGATE.RESERVE"[..], b"k", b"ID", b"\xff"]);
    assert_eq!(reply, "-ERR id: is not UTF-8");
}

/// Sends a command, ends the input, and returns the reply.
fn reply_after_end(setup: &Setup, command: &str) -> String {
    let mut stream = RespClient::tcp(resp_address(&setup.service, "resp"));
    stream.write_all(&encode(&command.split(' ').collect::<Vec<_>>())).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    readable(&RespClient::over(stream).reply().expect("a reply"))
}

#[test]
fn slots_of_an_undelivered_reservation_are_released() {
    let mut setup = start_setup();
    let reserve = |client: &str| {
        format!("TOLLGATE.RESERVE client={client} path=/jobs COST tokens=300 TTL 3600000")
    };
    let mut withheld = 0;
    for round in 0..30 {
        let command = reserve(&format!("c{round}"));
        // The end of the input may arrive after the reservation is sent.
        if reply_after_end(&setup, &command).starts_with("-ERR the client has closed its side") {
            withheld += 1;
            eventually("the slot is free", || setup.client.call(&command).starts_with("[1 1 0 "));
            let body = format!(r#"{{"facts":{{"client":"c{round}","path":"/jobs"}},"cost":0}}"#);
            let peeked = setup.service.post("/peek", body).json();
            assert_eq!(peeked["limits"][0]["remaining"], 400, "both estimates are charged");
        } else {
            assert!(setup.client.call(&command).starts_with("[0 1 0 "));
        }
        // A client with an id repeats the call and receives its reservation.
        let with_id = format!("{} ID a", reserve(&format!("d{round}")));
        assert!(reply_after_end(&setup, &with_id).starts_with("[1 "), "{with_id}");
        assert!(setup.client.call(&with_id).starts_with("[1 "), "{with_id}");
        assert!(setup.client.call(&reserve(&format!("d{round}"))).starts_with("[0 "), "{with_id}");
    }
    assert!(withheld > 0, "no end of an input was noticed");
}
