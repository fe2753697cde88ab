//! Commands with hostile arguments.

use super::{Kind, bytes, check, commands, digits, fixed, generated, repeated, throttle};
use crate::resp_client::encode;

pub(super) fn kinds() -> Vec<Kind> {
    [keys(), numbers(), facts()].into_iter().flatten().collect()
}

fn keys() -> Vec<Kind> {
    let with_key = |key: &[u8]| throttle(&[key, b"1", b"1", b"60"]);
    vec![
        fixed("1 MB key", [with_key(&repeated(b'k', 1 << 20)), check([repeated(b'k', 1 << 20)])]),
        fixed(
            "key above the maximum",
            [1025, 2000, 60_000].map(|length| with_key(&repeated(b'k', length))),
        ),
        generated("binary keys", |random| with_key(&bytes(random, 1024))),
        generated("keys with line ends", |random| {
            with_key(format!("a\r\n+OK\r\n{}", digits(random, 9)).as_bytes())
        }),
        generated("keys with hash tags", |random| {
            with_key(format!("{{a}}{{}}}}{{{}", digits(random, 9)).as_bytes())
        }),
        generated("keys with separators", |random| {
            with_key(format!("a:b/c%3A%-:{}", digits(random, 9)).as_bytes())
        }),
        fixed("empty keys", [with_key(b""), check([Vec::new()]), encode(&["TOLLGATE.PEEK", ""])]),
        generated("keys with terminal sequences", |random| {
            with_key(format!("\x1b]0;{}\x07\x1b[2J", digits(random, 9)).as_bytes())
        }),
        fixed(
            "keys with format strings",
            [
                "%s%s%n",
                "{}{0}",
                "$(id)",
                "`id`",
                "'; DROP TABLE x",
                "../../etc/passwd",
                "${jndi:x}",
            ]
            .map(|key| with_key(key.as_bytes())),
        ),
    ]
}

fn numbers() -> Vec<Kind> {
    let each = |text: &[u8]| -> Vec<Vec<u8>> {
        (0..4)
            .map(|position| {
                let mut arguments: Vec<&[u8]> = vec![b"k", b"15", b"30", b"60", b"1"];
                arguments[position + 1] = text;
                throttle(&arguments)
            })
            .collect()
    };
    let all =
        |texts: &[&str]| texts.iter().flat_map(|text| each(text.as_bytes())).collect::<Vec<_>>();
    vec![
        fixed("zero", all(&["0", "-0", "00"])),
        fixed("negative numbers", all(&["-1", "-9223372036854775808"])),
        fixed(
            "numbers that overflow",
            all(&["9223372036854775807", "9223372036854775808", "18446744073709551616"]),
        ),
        fixed(
            "numbers above 2^53",
            all(&["9007199254740991", "9007199254740992", "9007199254740993"]),
        ),
        fixed("fractions", all(&["1.5", ".5", "1.", "1e9", "NaN", "inf"])),
        fixed(
            "numbers with other characters",
            all(&["1x", "0x10", " 1", "1 ", "1_000", "١", "+", "-", ""]),
        ),
        fixed("numbers with many digits", each("9".repeat(10_000).as_bytes())),
        fixed("numbers with many zeros", each(("0".repeat(10_000) + "1").as_bytes())),
        generated("random numbers", |random| {
            let numbers = [0; 4].map(|_| digits(random, 19));
            let arguments: Vec<&[u8]> =
                std::iter::once(&b"k"[..]).chain(numbers.iter().map(String::as_bytes)).collect();
            throttle(&arguments)
        }),
        generated("binary numbers", |random| {
            throttle(&[b"k", &bytes(random, 20), &bytes(random, 20), b"60"])
        }),
        commands(
            "wrong number of arguments",
            &[
                "CL.THROTTLE",
                "CL.THROTTLE k",
                "CL.THROTTLE k 1 1",
                "CL.THROTTLE k 1 1 1 1 1",
                "THROTTLE",
                "TOLLGATE.CHECK",
                "TOLLGATE.RELEASE",
                "ECHO",
                "AUTH",
                "SELECT",
                "CLIENT",
                "CONFIG",
            ],
        ),
    ]
}

fn facts() -> Vec<Kind> {
    let fact = |number: usize| format!("f{number}=v").into_bytes();
    vec![
        fixed("too many facts", [33, 40, 62].map(|count| check((0..count).map(fact)))),
        generated("long fact names", |random| {
            check([[
                repeated(b'n', usize::try_from(random.within(65, 900)).unwrap()),
                b"=v".to_vec(),
            ]
            .concat()])
        }),
        generated("binary fact names", |random| {
            check([[bytes(random, 40), b"=v".to_vec()].concat()])
        }),
        fixed(
            "duplicate facts",
            [
                check([b"client=a".to_vec(), b"client=b".to_vec()]),
                check([b"a".to_vec(), b"client=b".to_vec()]),
                check([b"HEADER:X=1".to_vec(), b"header:x=2".to_vec()]),
            ],
        ),
        fixed(
            "empty facts",
            [
                check([b"=".to_vec()]),
                check([b"a=".to_vec()]),
                check([b"=a".to_vec()]),
                check([b"==".to_vec()]),
            ],
        ),
        fixed(
            "long fact values",
            [1025, 30_000]
                .map(|length| check([[b"path=".to_vec(), repeated(b'/', length)].concat()])),
        ),
        generated("binary fact values", |random| {
            check([[b"path=".to_vec(), bytes(random, 1000)].concat()])
        }),
        commands(
            "bad costs",
            &[
                "TOLLGATE.CHECK k COST",
                "TOLLGATE.CHECK k COST -1",
                "TOLLGATE.CHECK k COST 1.5",
                "TOLLGATE.CHECK k COST 9007199254740992",
                "TOLLGATE.CHECK k COST 99999999999999999999",
                "TOLLGATE.CHECK k COST x",
                "TOLLGATE.CHECK k COST 1 COST 1",
                "TOLLGATE.REFUND k COST 9007199254740991",
                "TOLLGATE.CHECK COST COST COST",
            ],
        ),
        generated("forged permits", |random| {
            encode(&[
                "TOLLGATE.RELEASE",
                &format!(
                    "{:016x}{:016x}@n{}/x{{:c}}",
                    random.draw(),
                    random.draw(),
                    digits(random, 9)
                ),
            ])
        }),
        generated("binary permits", |random| {
            encode(&[&b"TOLLGATE.RENEW"[..], &bytes(random, 2000)])
        }),
        fixed(
            "huge permits",
            [encode(&["TOLLGATE.RELEASE", &("0".repeat(32) + &"@nx/y{:c}".repeat(6000))])],
        ),
        commands(
            "resets without permission",
            &[
                "TOLLGATE.RESET k",
                "TOLLGATE.RESET",
                "TOLLGATE.RESET a b",
                "TOLLGATE.RESET client=x tenant=y",
                "AUTH admin x",
                "AUTH admin ",
            ],
        ),
    ]
}
