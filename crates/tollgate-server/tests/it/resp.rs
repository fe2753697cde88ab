//! RESP: the commands and their replies in both protocol versions.

use serde_json::json;

use crate::resp_client::{RespClient, readable, start};
use crate::service::{Scratch, eventually};

/// Windows that outlast any test.
const POLICY: &str = "
version: 1
defaults: { limit: 5/d }
rules:
  - { name: search, match: { path: /search }, limits: [{ rate: 3/d, name: daily }] }
  - { name: open, match: { path: /open }, unlimited: true }
  - { name: jobs, match: { path: /jobs }, limits: [{ concurrency: 1, ttl: 1h }] }
";

/// Asserts the reply of a throttle command. Times of an hour or more may be up to a minute shorter, because time passes
/// during a test.
#[track_caller]
fn assert_reply(client: &mut RespClient, command: &str, expected: [i64; 5]) {
    let reply = client.integers(command);
    let is_close = |(reply, expected): (&i64, i64)| match expected {
        3600.. => (expected - 60..=expected).contains(reply),
        _ => *reply == expected,
    };
    let is_equal = reply.len() == 5 && reply.iter().zip(expected).all(is_close);
    assert!(is_equal, "{command}: {reply:?} instead of {expected:?}");
}

#[test]
fn cl_throttle_replies_as_redis_cell() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    assert_eq!(client.call("CL.THROTTLE user123 15 30 60"), "[0 16 15 -1 2]");
    for (command, expected) in [
        ("CL.THROTTLE k 15 1 7200", [0, 16, 15, -1, 7200]),
        ("cl.throttle k 15 1 7200 5", [0, 16, 10, -1, 43_200]),
        // A quantity of 0 peeks.
        ("CL.THROTTLE k 15 1 7200 0", [0, 16, 10, -1, 43_200]),
        ("CL.THROTTLE k 15 1 7200 11", [1, 16, 10, 7200, 43_200]),
        // A quantity above the burst never fits.
        ("CL.THROTTLE k 15 1 7200 17", [1, 16, 10, -1, 43_200]),
        ("CL.THROTTLE k 15 1 7200 10", [0, 16, 0, -1, 115_200]),
        ("CL.THROTTLE k 15 1 7200", [1, 16, 0, 7200, 115_200]),
        ("CL.THROTTLE k 15 1 7200 0", [0, 16, 0, -1, 115_200]),
        ("CL.THROTTLE other 0 1 3600", [0, 1, 0, -1, 3600]),
        ("CL.THROTTLE other 0 1 3600", [1, 1, 0, 3600, 3600]),
    ] {
        assert_reply(&mut client, command, expected);
    }
}

#[test]
fn throttle_replies_as_throttlecrab() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    for (command, expected) in [
        ("THROTTLE k 10 1 3600", [1, 10, 9, 3600, 0]),
        ("THROTTLE k 10 1 3600 9", [1, 10, 0, 36_000, 0]),
        ("THROTTLE k 10 1 3600", [0, 10, 0, 36_000, 3600]),
        ("THROTTLE k 10 1 3600 11", [0, 10, 0, 36_000, -1]),
        // The other command has a state of its own.
        ("CL.THROTTLE k 9 1 3600", [0, 10, 9, -1, 3600]),
    ] {
        assert_reply(&mut client, command, expected);
    }
}

#[test]
fn changed_numbers_keep_the_used_share() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    for (command, expected) in [
        ("CL.THROTTLE k 9 1 7200 5", [0, 10, 5, -1, 36_000]),
        ("CL.THROTTLE k 19 1 7200 0", [0, 20, 10, -1, 72_000]),
        ("CL.THROTTLE k 3 1 7200 0", [0, 4, 2, -1, 14_400]),
    ] {
        assert_reply(&mut client, command, expected);
    }
}

#[test]
fn http_shares_the_counters() {
    let (service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    assert_reply(&mut client, "CL.THROTTLE k 9 1 3600", [0, 10, 9, -1, 3600]);
    let limit = json!({"name": "cl", "limit": 1, "window_ms": 3_600_000, "burst": 10});
    let reply = service.post("/check", json!({"key": "k", "limits": [limit]}).to_string());
    assert_eq!(reply.json()["remaining"], 8, "{}", reply.body);
    assert_eq!(client.call("TOLLGATE.CHECK k"), "[1 100 99 -1 60000 default 60s]");
    assert_eq!(service.check("k")["remaining"], 98);
}

#[test]
fn invalid_numbers_are_cell_errors() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    for command in ["CL.THROTTLE", "THROTTLE"] {
        for (arguments, expected) in [
            ("", "Usage: "),
            ("k", "Usage: "),
            ("k 1 1", "Usage: "),
            ("k 1 1 1 1 1", "Usage: "),
            ("k x 1 1", "max_burst is not an integer"),
            ("k 1 1.5 1", "count is not an integer"),
            ("k 1 1 1e3", "period is not an integer"),
            ("k 1 1 1 ''", "quantity is not an integer"),
            ("k 1 9223372036854775808 1", "count is not an integer or out of range"),
            ("k -1 1 1", "zero"),
            ("k 1 0 1", "count must be greater than zero"),
            ("k 1 -5 1", "count must be greater than zero"),
            ("k 1 1 0", "period must be greater than zero"),
            ("k 1 1 1 -1", "quantity must be zero or more"),
            ("k 9007199254740993 1 1", "max_burst must be at most"),
            ("k 1 9007199254740992 1", "count must be at most 9007199254740991"),
            ("k 1 1 3155760001", "period must be at most 3155760000"),
            ("k 9007199254740000 999983 86400", "2^53"),
        ] {
            let reply = client.call(format!("{command} {arguments}").trim_end());
            assert!(
                reply.starts_with("-Cell error: ") && reply.contains(expected),
                "{arguments}: {reply}"
            );
        }
        let long = "x".repeat(1025);
        for (key, expected) in [("", "the key is empty"), (&*long, "maximum of 1024 bytes")] {
            let reply = client.call_with(&[command, key, "1", "1", "1"]);
            assert!(reply.starts_with("-Cell error: ") && reply.contains(expected), "{reply}");
        }
    }
    assert_eq!(client.call("THROTTLE k 0 1 1"), "-Cell error: max_burst must be greater than zero");
    assert_eq!(client.call("CL.THROTTLE k 0 1 1 0"), "[0 1 1 -1 0]", "a burst of 0 holds 1");
}

#[test]
fn keys_are_binary_safe() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    let keys: [&[u8]; 8] =
        [b"a\0b", b"a", b"a\r\n", b"\xff\xfe", b"\xef\xbf\xbd", b"{a}", b"a:b", b"a%3Ab"];
    for key in keys {
        let arguments = [b"CL.THROTTLE", key, b"1", b"1", b"3600"];
        assert_eq!(client.call_with(&arguments), "[0 2 1 -1 3600]", "{key:?} has a key of its own");
    }
}

#[test]
fn policy_commands_decide_as_http() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let (service, address) = start(&["--policy", &policy]);
    let mut client = RespClient::connect(address);
    let day = "86400000";
    assert_eq!(client.call("TOLLGATE.CHECK c1 COST 2"), format!("[1 5 3 -1 {day} default 86400s]"));
    assert_eq!(service.check("c1")["remaining"], 2);
    let call = "TOLLGATE.CHECK client=c1 path=/search";
    for remaining in [2, 1, 0] {
        assert!(client.call(call).starts_with(&format!("[1 3 {remaining} -1 ")), "{remaining}");
    }
    let refused = client.call(call);
    assert!(refused.starts_with("[0 3 0 ") && refused.ends_with(" search daily]"), "{refused}");
    let wait: i64 = refused.split(' ').nth(3).unwrap().parse().unwrap();
    assert!((1..=86_400_000).contains(&wait), "{refused}");
    let peeked = client.call("tollgate.peek client=c1 path=/search");
    assert!(peeked.starts_with("[0 3 0 "), "{peeked}");
    let refunded = client.call("TOLLGATE.REFUND client=c1 path=/search COST 2");
    assert!(refunded.starts_with("[1 3 2 -1 "), "{refunded}");
    let never = client.call("TOLLGATE.CHECK client=c1 path=/search cost 4");
    assert!(never.starts_with("[0 3 2 -1 "), "{never}");
    assert_eq!(client.call("TOLLGATE.CHECK c1 path=/open"), "[1 -1 -1 -1 0 open ]");
    // An argument with = is a fact, so a key with = is sent as a fact.
    assert!(client.call("TOLLGATE.CHECK a=b").ends_with(" default 86400s]"));
    assert!(client.call("TOLLGATE.CHECK client=a=b").starts_with("[1 5 4 "));
    assert_eq!(service.check("a=b")["remaining"], 3);
}

#[test]
fn invalid_policy_commands_name_what_is_wrong() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    let long = "x".repeat(1025);
    for (command, expected) in [
        ("TOLLGATE.CHECK", "ERR wrong number of arguments for 'tollgate.check' command"),
        ("TOLLGATE.CHECK k x", "ERR syntax error: expected name=value, COST n or COST unit=n"),
        ("TOLLGATE.CHECK k COST", "ERR cost: must be an integer from 0 to 9007199254740991"),
        ("TOLLGATE.CHECK k COST -1", "ERR cost: must be"),
        ("TOLLGATE.CHECK k COST 1.5", "ERR cost: must be"),
        ("TOLLGATE.CHECK k COST 9007199254740992", "ERR cost: must be"),
        ("TOLLGATE.CHECK k COST 1 COST 1", "ERR COST is given twice"),
        ("TOLLGATE.CHECK client=a client=b", "ERR facts.client: the fact is given twice"),
        ("TOLLGATE.CHECK k client=b", "ERR facts.client: the fact is given twice"),
        ("TOLLGATE.CHECK path=", "ERR facts.path: the value is empty"),
        ("TOLLGATE.CHECK =x", "ERR facts.: a name must be"),
        (&format!("TOLLGATE.PEEK {long}"), "ERR key: the value is longer than the maximum of 1024"),
        ("TOLLGATE.RELEASE", "ERR wrong number of arguments for 'tollgate.release' command"),
        ("TOLLGATE.RELEASE x", "ERR permit: "),
        ("TOLLGATE.RENEW x", "ERR permit: "),
        ("TOLLGATE.RESERVED k", "ERR unknown command 'TOLLGATE.RESERVED'"),
    ] {
        let reply = client.call(command);
        assert!(reply.starts_with(&format!("-{expected}")), "{command}: {reply}");
    }
    assert_eq!(
        client.call_with(&["TOLLGATE.CHECK", ""]),
        "-ERR key: the value is empty; leave the fact out if it is not known"
    );
}

#[test]
fn slots_are_held_released_and_renewed() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let (_service, address) = start(&["--policy", &policy]);
    let mut client = RespClient::connect(address);
    let taken = client.call("TOLLGATE.CHECK c path=/jobs");
    let fields: Vec<&str> = taken.trim_matches(['[', ']']).split(' ').collect();
    assert_eq!((fields.len(), fields[0], fields[5]), (9, "1", "jobs"), "{taken}");
    let (permit, expires_at) = (fields[7], fields[8].parse::<i64>().unwrap());
    assert!(client.call("TOLLGATE.CHECK c path=/jobs").starts_with("[0 1 0 "));
    let renewed: i64 = client.call(&format!("TOLLGATE.RENEW {permit}")).parse().unwrap();
    assert!(renewed >= expires_at, "{renewed} {expires_at}");
    assert_eq!(client.call(&format!("TOLLGATE.RELEASE {permit}")), "1");
    assert_eq!(client.call(&format!("TOLLGATE.RELEASE {permit}")), "0");
    assert_eq!(client.call(&format!("TOLLGATE.RENEW {permit}")), "-1");
    assert!(client.call("TOLLGATE.CHECK c path=/jobs").starts_with("[1 1 0 "));
    drop(client);
    // A delivered permit survives its connection.
    let mut other = RespClient::connect(address);
    for _ in 0..20 {
        assert!(other.call("TOLLGATE.CHECK c path=/jobs").starts_with("[0 1 0 "));
    }
}

#[test]
fn builtin_commands_reply_as_redis() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    for (command, expected) in [
        ("PING", "PONG"),
        ("ping hello", "hello"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command"),
        ("ECHO x", "x"),
        ("ECHO", "-ERR wrong number of arguments for 'echo' command"),
        ("SELECT 0", "OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("CLIENT GETNAME", "(nil)"),
        ("CLIENT SETNAME me", "OK"),
        ("CLIENT GETNAME", "me"),
        ("CLIENT SETINFO LIB-NAME test", "OK"),
        ("CLIENT SETINFO lib-ver 1.0", "OK"),
        ("CLIENT SETINFO x y", "-ERR Unrecognized option 'x'"),
        ("CLIENT NO-EVICT ON", "OK"),
        ("CLIENT NO-TOUCH off", "OK"),
        ("CLIENT NO-TOUCH x", "-ERR syntax error"),
        ("CLIENT REPLY OFF", "-ERR CLIENT REPLY is not supported: every command has a reply"),
        ("CLIENT KILL x", "-ERR unknown subcommand 'KILL'. Try CLIENT HELP."),
        ("CONFIG GET save", "[save ]"),
        ("CONFIG GET appendonly", "[appendonly no]"),
        ("CONFIG GET nothing", "[]"),
        ("CONFIG SET a b", "-ERR unknown subcommand 'SET'. Try CONFIG HELP."),
        (
            "CONFIG HELP",
            "[CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are: GET <name> [<name> ...]     \
             Return settings; * returns all of them. They cannot be changed.]",
        ),
        ("COMMAND COUNT", "21"),
        ("COMMAND INFO nothing", "[(nil)]"),
        ("GET k", "-ERR unknown command 'GET', with args beginning with: 'k' "),
        ("RESET", "RESET"),
        ("CLIENT GETNAME", "(nil)"),
    ] {
        assert_eq!(client.call(command), expected, "{command}");
    }
    // An error repeats only the start of an argument.
    let long = "x".repeat(60_000);
    for command in [&["HELLO", "3", &long][..], &["CLIENT", "SETINFO", &long, "x"]] {
        let reply = client.call_with(command);
        assert!(reply.ends_with(&format!(" '{}'", "x".repeat(128))), "{reply:.300}");
    }
    let id: u64 = client.call("CLIENT ID").parse().unwrap();
    let info = client.call("CLIENT INFO");
    assert!(info.starts_with(&format!("id={id} addr=127.0.0.1:")), "{info}");
    assert!(info.contains(" resp=2 lib-name=test lib-ver=1.0"), "{info}");
    assert!(client.call("CLIENT LIST").starts_with(&format!("id={id} ")));
    let info = client.call("INFO");
    for field in ["# Server", "redis_version:7.", "tollgate_version:", "loading:0", "role:master"] {
        assert!(info.contains(field), "{field}: {info}");
    }
    let server = client.call("INFO server");
    assert!(server.contains("redis_mode:standalone") && !server.contains("loading"), "{server}");
    assert!(client.call("COMMAND").contains("[cl.throttle -5 [write fast] 1 1 1 [] [] [] []]"));
    assert!(client.call("COMMAND DOCS echo").starts_with("[echo [summary Returns"));
    assert_eq!(client.call("QUIT"), "OK");
    client.expect_end();
}

#[test]
fn hello_selects_the_version() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    let two = client.call("HELLO 2");
    assert!(two.starts_with("[server redis version 7.0.0 proto 2 id "), "{two}");
    assert!(two.ends_with(" mode standalone role master modules []]"), "{two}");
    let three = client.call("HELLO 3 SETNAME me");
    assert!(three.starts_with("{server redis version 7.0.0 proto 3 id "), "{three}");
    assert_eq!(client.call("CLIENT GETNAME"), "me");
    assert_eq!(client.raw(&["COMMAND", "INFO", "x"]), b"*1\r\n_\r\n");
    assert!(client.raw(&["INFO"]).starts_with(b"="));
    assert!(client.call("COMMAND INFO ping").starts_with("[[ping -1 <noscript "));
    assert_eq!(client.call("CONFIG GET save"), "{save }");
    assert_reply(&mut client, "CL.THROTTLE k 1 1 3600", [0, 2, 1, -1, 3600]);
    for (command, expected) in [
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'"),
        ("HELLO 2 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'"),
        ("HELLO 2 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"),
    ] {
        assert_eq!(client.call(command), expected, "{command}");
    }
    assert!(client.call("HELLO").contains("proto 3"), "errors do not change the version");
    assert_eq!(client.call("RESET"), "RESET");
    assert_eq!(client.raw(&["CLIENT", "GETNAME"]), b"$-1\r\n", "RESET selects RESP2");
}

#[test]
fn inline_commands_are_split_as_redis_does() {
    let (_service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    let mut call = |line: &str| {
        client.send(line.as_bytes()).unwrap();
        readable(&client.reply().unwrap())
    };
    assert_eq!(call("PING\r\n"), "PONG");
    assert_eq!(call("\r\n\n  \nping\n"), "PONG");
    assert_eq!(call("ECHO \"a b\\x00\\n\"\r\n"), r"a b\x00\n");
    assert_eq!(call("echo 'a \"b\"'\r\n"), r#"a \"b\""#);
    assert_eq!(call("CL.THROTTLE \"user 123\" 15 30 60\r\n"), "[0 16 15 -1 2]");
    assert_eq!(
        call("*3\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n1\r\n"),
        "-Cell error: Usage: CL.THROTTLE <key> <max_burst> <count> <period> [<quantity>]"
    );
    assert_eq!(call("ECHO \"a\r\n"), "-ERR Protocol error: unbalanced quotes in request");
    client.expect_end();
}

#[test]
fn http_is_refused() {
    let (_service, address) = start(&[]);
    for request in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\nCL.THROTTLE k 1 1 60\r\n",
        "OPTIONS * HTTP/1.0\r\n\r\n",
        "POST\r\n",
        "Host: localhost\r\n",
        "*1\r\n$4\r\npost\r\n",
    ] {
        let mut client = RespClient::connect(address);
        client.send(request.as_bytes()).unwrap();
        assert_eq!(client.rest().unwrap(), b"", "{request:?}");
    }
}

#[test]
fn decisions_are_counted_once() {
    let (service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    client.call("CL.THROTTLE k 0 1 3600");
    client.call("CL.THROTTLE k 0 1 3600");
    client.call("CL.THROTTLE k 0 1 3600 0");
    client.call("TOLLGATE.CHECK k");
    client.call("TOLLGATE.PEEK k");
    eventually("the metrics", || {
        let metrics = service.get("/metrics").body;
        let has = |line: &str| metrics.lines().any(|known| known == line);
        has("ratelimiter_requests_checked_total{result=\"allowed\"} 2")
            && has("ratelimiter_requests_checked_total{result=\"blocked\"} 1")
    });
}
