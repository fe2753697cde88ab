//! Input that is not RESP, or not complete.

use super::{Kind, bytes, digits, fixed, generated, repeated};
use crate::resp_client::encode;

pub(super) fn kinds() -> Vec<Kind> {
    [not_resp(), inline(), arrays(), bulks()].into_iter().flatten().collect()
}

fn not_resp() -> Vec<Kind> {
    vec![
        generated("random bytes", |random| bytes(random, 4000)),
        generated("random lines", |random| {
            [bytes(random, 300), b"\r\n".to_vec(), bytes(random, 300), b"\n".to_vec()].concat()
        }),
        generated("random bytes after an array header", |random| {
            [b"*3\r\n$4\r\n".to_vec(), bytes(random, 500)].concat()
        }),
        generated("NUL bytes", |random| {
            repeated(0, usize::try_from(random.within(1, 70_000)).unwrap())
        }),
        fixed("only CR", [repeated(b'\r', 1), repeated(b'\r', 100), repeated(b'\r', 70_000)]),
        fixed("only LF", [repeated(b'\n', 1), repeated(b'\n', 100_000)]),
        fixed(
            "empty commands",
            [
                "\r\n".repeat(50_000),
                "*0\r\n".repeat(50_000),
                "*-1\r\n".repeat(50_000),
                " \n".repeat(50_000),
            ],
        ),
        fixed(
            "replies as requests",
            ["+OK\r\n", "-ERR x\r\n", ":1\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*-1\r\n"],
        ),
        fixed(
            "RESP3 types as requests",
            [
                "%1\r\n+a\r\n+b\r\n",
                "~1\r\n+a\r\n",
                ">1\r\n+a\r\n",
                "_\r\n",
                "#t\r\n",
                ",1.5\r\n",
                "(123\r\n",
                "=7\r\ntxt:abc\r\n",
                "|1\r\n+a\r\n+b\r\n",
                "!3\r\nERR\r\n",
            ],
        ),
    ]
}

fn inline() -> Vec<Kind> {
    vec![
        fixed(
            "endless inline command",
            [repeated(b'a', 1 << 20), repeated(b' ', 1 << 20), repeated(b'"', 1 << 20)],
        ),
        fixed(
            "long inline command",
            [
                [repeated(b'a', 9000), b"\r\n".to_vec()].concat(),
                [b"ECHO ".to_vec(), repeated(b'x', 100_000), b"\n".to_vec()].concat(),
            ],
        ),
        fixed(
            "many inline arguments",
            ["a ".repeat(65) + "\r\n", "a ".repeat(2000) + "\r\n", "'' ".repeat(1000) + "\r\n"],
        ),
        generated("unbalanced double quotes", |random| {
            format!("ECHO \"{}\r\n", digits(random, 50)).into_bytes()
        }),
        generated("unbalanced single quotes", |random| {
            format!("ECHO '{}'x\r\n", digits(random, 50)).into_bytes()
        }),
        fixed(
            "bad escapes",
            [
                "ECHO \"\\x\"\r\n",
                "ECHO \"\\xzz\"\r\n",
                "ECHO \"\\\r\n",
                "ECHO '\\'\r\n",
                "\"\\x00\"\r\n",
                "\"\\\"\r\n",
            ],
        ),
        generated("inline with control bytes", |random| {
            [b"ECHO \x01\x02\x7f\x1b[31m ".to_vec(), bytes(random, 30), b"\r\n".to_vec()].concat()
        }),
    ]
}

fn arrays() -> Vec<Kind> {
    vec![
        fixed(
            "array count is not a number",
            ["*a\r\n", "*1x\r\n", "* 1\r\n", "*1 \r\n", "*0x10\r\n", "*1.0\r\n", "*one\r\n"],
        ),
        fixed("array count is missing", ["*\r\n", "*\n", "**\r\n", "*$\r\n", "*-\r\n"]),
        fixed(
            "array count with a sign",
            ["*+1\r\n", "*-1\r\n", "*--1\r\n", "*-0\r\n", "*-99999\r\n"],
        ),
        fixed(
            "array count above the maximum",
            ["*65\r\n", "*1000\r\n", "*1048577\r\n", "*2147483647\r\n"],
        ),
        fixed(
            "array count overflows",
            [
                "*2147483648\r\n",
                "*4294967296\r\n",
                "*9223372036854775808\r\n",
                "*18446744073709551617\r\n",
            ],
        ),
        generated("array count has many digits", |random| {
            format!("*{}", digits(random, 3000)).into_bytes()
        }),
        fixed("array count without LF", ["*1\r", "*1\rx", "*1\r\r\n", "*1\n$4\r\nPING\r\n"]),
        fixed(
            "nested arrays",
            [
                "*1\r\n*1\r\n$4\r\nPING\r\n".to_owned(),
                "*1\r\n".repeat(10_000),
                "*2\r\n$4\r\nECHO\r\n*0\r\n".to_owned(),
            ],
        ),
        fixed(
            "items of another type",
            [
                "*1\r\n:1\r\n",
                "*1\r\n+PING\r\n",
                "*1\r\n-ERR\r\n",
                "*2\r\n$4\r\nECHO\r\n_\r\n",
                "*1\r\n#t\r\n",
                "*1\r\n\r\n",
                "*1\r\n\0",
            ],
        ),
        fixed(
            "null items",
            ["*1\r\n$-1\r\n", "*2\r\n$4\r\nECHO\r\n$-1\r\n", "*2\r\n$-1\r\n$-1\r\n"],
        ),
        fixed(
            "empty names",
            [encode(&[""]), encode(&["", "", ""]), b"\"\"\r\n".to_vec(), b"'' a\r\n".to_vec()],
        ),
        fixed(
            "arrays of maximum count",
            [encode(&vec!["x"; 64]), encode(&vec![""; 64]), encode(&vec!["PING"; 64]).repeat(20)],
        ),
        generated("fewer items than announced", |random| {
            format!("*{}\r\n$4\r\nPING\r\n", random.within(2, 60)).into_bytes()
        }),
        generated("more items than announced", |random| {
            format!("*1\r\n$4\r\nPING\r\n${}\r\nx\r\n", random.within(1, 60)).into_bytes()
        }),
    ]
}

fn bulks() -> Vec<Kind> {
    let valid = encode(&["CL.THROTTLE", "key", "15", "30", "60", "1"]);
    let cut = (0..valid.len()).map(|length| valid[..length].to_vec()).collect::<Vec<_>>();
    let flipped = (0..valid.len()).map(|at| {
        let mut bytes = valid.clone();
        bytes[at] ^= 0x41;
        bytes
    });
    vec![
        fixed(
            "bulk length is not a number",
            [
                "*1\r\n$a\r\n",
                "*1\r\n$4x\r\nPING\r\n",
                "*1\r\n$ 4\r\nPING\r\n",
                "*1\r\n$4.0\r\n",
                "*1\r\n$\r\n",
            ],
        ),
        fixed(
            "bulk length is negative",
            ["*1\r\n$-1\r\n", "*1\r\n$-2\r\n", "*1\r\n$-2147483649\r\n"],
        ),
        fixed(
            "huge bulk length",
            [
                "*1\r\n$65536\r\n",
                "*1\r\n$536870913\r\n",
                "*1\r\n$1073741824\r\nxxxx",
                "*2\r\n$4\r\nECHO\r\n$65530\r\n",
            ],
        ),
        fixed(
            "bulk length overflows",
            [
                "*1\r\n$4294967300\r\n",
                "*1\r\n$9223372036854775807\r\n",
                "*1\r\n$18446744073709551620\r\n",
            ],
        ),
        generated("bulk shorter than announced", |random| {
            format!("*1\r\n${}\r\nPING\r\n", random.within(5, 60_000)).into_bytes()
        }),
        generated("bulk longer than announced", |random| {
            format!("*1\r\n${}\r\n{}\r\n", random.within(0, 9), digits(random, 90) + "0123456789")
                .into_bytes()
        }),
        fixed(
            "bulk without CRLF",
            [
                "*1\r\n$4\r\nPINGxx",
                "*1\r\n$4\r\nPING\n\r",
                "*1\r\n$4\r\nPING\r\r",
                "*1\r\n$4\r\nPING*1\r\n$4\r\nPING\r\n",
            ],
        ),
        fixed("command cut at every byte", cut),
        fixed("command with one changed byte", flipped),
    ]
}
