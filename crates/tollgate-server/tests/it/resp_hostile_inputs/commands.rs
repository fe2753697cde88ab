//! Other protocols, other commands, and commands about the connection.

use super::{Kind, bytes, commands, fixed, generated, repeated};
use crate::resp_client::encode;

pub(super) fn kinds() -> Vec<Kind> {
    [protocols(), others()].into_iter().flatten().collect()
}

fn protocols() -> Vec<Kind> {
    vec![
        fixed(
            "HTTP requests",
            [
                "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nPING\r\n",
                "HEAD / HTTP/1.0\r\n\r\n",
                "CONNECT x:1 HTTP/1.1\r\n\r\n",
                "Host: x\r\nPING\r\n",
                "POST\r\nPING\r\n",
            ],
        ),
        fixed("HTTP/2 preface", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()]),
        generated("TLS handshakes", |random| {
            [b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(), bytes(random, 500)].concat()
        }),
        fixed(
            "other protocols",
            [
                "SSH-2.0-x\r\n",
                "EHLO x\r\n",
                "\x03\0\0\x13\x0e\0\0",
                "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
                "\x05\x01\0",
                "get k\r\n",
                "set k 0 0 1\r\nx\r\n",
                "stats\r\n",
                "quit\r\n",
            ],
        ),
        fixed(
            "binary protocols",
            [
                b"\0\0\0\x2d\0\x03\0\0user\0x\0\0".to_vec(),
                b"\x80\0\0\x01".to_vec(),
                b"\x10\x0c\0\x04MQTT\x04".to_vec(),
            ],
        ),
        commands(
            "commands that change a server",
            &[
                "FLUSHALL",
                "CONFIG SET dir /tmp",
                "SLAVEOF x 1",
                "REPLICAOF no one",
                "MODULE LOAD x",
                "DEBUG SEGFAULT",
                "SHUTDOWN",
                "SAVE",
                "EVAL return 0",
                "SCRIPT LOAD x",
                "MIGRATE x 1 k 0 1",
                "ACL SETUSER x",
            ],
        ),
        commands(
            "commands that change the connection",
            &[
                "SUBSCRIBE x",
                "PSUBSCRIBE *",
                "MONITOR",
                "SYNC",
                "PSYNC ? -1",
                "MULTI",
                "EXEC",
                "WATCH k",
                "CLIENT REPLY OFF",
                "CLIENT TRACKING ON",
                "CLIENT PAUSE 10000",
                "ASKING",
                "READONLY",
            ],
        ),
    ]
}

fn others() -> Vec<Kind> {
    let valid = encode(&["PING"]);
    vec![
        generated("unknown commands", |random| encode(&[&bytes(random, 300), &bytes(random, 300)])),
        fixed(
            "long unknown commands",
            [encode(&["x".repeat(60_000)]), encode(&["x".to_owned(), "y".repeat(60_000)])],
        ),
        commands(
            "unknown subcommands",
            &[
                "CLIENT X",
                "CONFIG X",
                "COMMAND X",
                "CLIENT \r\n",
                "COMMAND INFO \0",
                "CLIENT KILL TYPE normal",
            ],
        ),
        generated("wrong tokens", |random| encode(&[&b"AUTH"[..], &bytes(random, 900)])),
        generated("wrong users", |random| {
            encode(&[&b"AUTH"[..], &bytes(random, 300), &bytes(random, 300)])
        }),
        fixed(
            "many wrong tokens",
            [encode(&["AUTH", "x"]).repeat(1000), encode(&["AUTH", "admin", "x"]).repeat(1000)],
        ),
        commands(
            "bad HELLO",
            &[
                "HELLO 0",
                "HELLO -1",
                "HELLO 99999999999999999999",
                "HELLO 3 AUTH",
                "HELLO 3 AUTH a",
                "HELLO 3 SETNAME",
                "HELLO 3 X",
                "HELLO 2 AUTH a b AUTH c d",
            ],
        ),
        generated("names with control bytes", |random| {
            encode(&[&b"CLIENT"[..], b"SETNAME", &[&b"a\r\n"[..], &bytes(random, 20)].concat()])
        }),
        fixed(
            "long names",
            [
                encode(&["CLIENT", "SETNAME", &"x".repeat(60_000)]),
                encode(&["CLIENT", "SETINFO", "LIB-NAME", &"x".repeat(60_000)]),
            ],
        ),
        generated("valid commands, then random bytes", |random| {
            [valid.repeat(50), bytes(random, 200)].concat()
        }),
        fixed(
            "data after QUIT",
            [
                b"QUIT\r\nPING\r\n".to_vec(),
                [b"QUIT\r\n".to_vec(), repeated(b'x', 1 << 20)].concat(),
            ],
        ),
        fixed(
            "requests with large replies",
            [
                b"COMMAND\r\n".repeat(2000),
                b"INFO\r\n".repeat(2000),
                b"COMMAND DOCS\r\n".repeat(2000),
            ],
        ),
        fixed("many commands", [valid.repeat(20_000), b"PING\n".repeat(50_000)]),
    ]
}
