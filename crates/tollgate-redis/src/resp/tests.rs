//! Tests of the codec.

mod fuzz;

use tollgate_testkit::random::Random;

use super::{Command, Decoder, ErrorReply, Malformed, REPLY_CAP, Reply};

fn encode(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Simple(text) => out.extend(format!("+{text}\r\n").bytes()),
        Reply::Integer(value) => out.extend(format!(":{value}\r\n").bytes()),
        Reply::Error(error) => out.extend(format!("-{error}\r\n").bytes()),
        Reply::Null => out.extend(b"$-1\r\n"),
        Reply::Bulk(bytes) => {
            out.extend(format!("${}\r\n", bytes.len()).bytes());
            out.extend(bytes);
            out.extend(b"\r\n");
        }
        Reply::Array(items) => {
            out.extend(format!("*{}\r\n", items.len()).bytes());
            items.iter().for_each(|item| encode(item, out));
        }
    }
}

fn draw(random: &mut Random, depth: u32) -> Reply {
    let text = |random: &mut Random| format!("ERR {}", random.draw());
    match random.within(0, if depth == 0 { 4 } else { 6 }) {
        0 => Reply::Simple(text(random)),
        1 => Reply::Integer(integer(random)),
        2 => Reply::Null,
        3 => Reply::Error(ErrorReply::new(text(random))),
        4 => {
            let length = random.within(0, 20);
            Reply::Bulk((0..length).map(|_| *random.pick(b"\r\n$*:x").unwrap()).collect())
        }
        _ => {
            let length = random.within(0, 5);
            let are_integers = random.one_in(2);
            let item = |_| match are_integers {
                true => Reply::Integer(integer(random)),
                false => draw(random, depth - 1),
            };
            Reply::Array((0..length).map(item).collect())
        }
    }
}

fn integer(random: &mut Random) -> i64 {
    let value = random.magnitude(i64::MAX.unsigned_abs()).cast_signed();
    if random.one_in(2) { -value } else { value }
}

fn decode(bytes: &[u8]) -> Result<Option<Reply>, Malformed> {
    let mut decoder = Decoder::default();
    decoder.buffer().extend_from_slice(bytes);
    decoder.next(REPLY_CAP)
}

#[test]
fn encodes_commands_as_arrays_of_strings() {
    let command = Command::new("SET").arg(b"a\r\nb").number(0).arg("").number(u64::MAX);
    let expected =
        "*5\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$1\r\n0\r\n$0\r\n\r\n$20\r\n18446744073709551615\r\n";
    assert_eq!(command.into_bytes(), expected);
    let many = (0..1234).fold(Command::with_capacity(0, 0), |command, _| command.arg("x"));
    assert!(many.into_bytes().starts_with(b"*1234\r\n$1\r\nx\r\n$1\r\n"));
}

#[test]
fn decodes_replies_cut_at_any_byte() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let replies = [draw(&mut random, 4), draw(&mut random, 4)];
        let mut bytes = Vec::new();
        replies.iter().for_each(|reply| encode(reply, &mut bytes));
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(decode_pieces([first, second]), replies, "seed {seed}, cut at {cut}");
        }
        assert_eq!(decode_pieces(bytes.chunks(1)), replies, "seed {seed}, byte by byte");
    }
}

fn decode_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Reply> {
    let mut decoder = Decoder::default();
    let mut replies = Vec::new();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        while let Some(reply) = decoder.next(REPLY_CAP).unwrap() {
            replies.push(reply);
        }
    }
    assert!(decoder.is_empty());
    replies
}

#[test]
fn garbage_does_not_panic() {
    for seed in 0..100_000 {
        let mut random = Random::new(seed);
        let length = random.within(0, 40);
        // Mostly bytes of valid replies, so that some inputs get far.
        let bytes: Vec<u8> = (0..length)
            .map(|_| *random.pick(b"+-:$*_0123456789\r\n\r\n\r\nx\xff").unwrap())
            .collect();
        let mut decoder = Decoder::default();
        for piece in bytes.chunks(7) {
            decoder.buffer().extend_from_slice(piece);
            while let Ok(Some(_)) = decoder.next(REPLY_CAP) {}
        }
    }
}

#[test]
fn decodes_the_whole_integer_range() {
    for value in [0, 7, -1, i64::MAX, i64::MIN] {
        assert_eq!(decode(format!(":{value}\r\n").as_bytes()), Ok(Some(Reply::Integer(value))));
        let pair = Reply::Array(vec![Reply::Integer(value), Reply::Integer(value)]);
        assert_eq!(decode(format!("*2\r\n:{value}\r\n:{value}\r\n").as_bytes()), Ok(Some(pair)));
    }
    for wrong in
        [":\r\n", ":-\r\n", ":1 \r\n", ":9223372036854775808\r\n", ":1\n", "$-2\r\n", "$x\r\n"]
    {
        assert_eq!(decode(wrong.as_bytes()), Err(Malformed::Garbage), "{wrong:?}");
        assert_eq!(
            decode(format!("*2\r\n{wrong}").as_bytes()),
            Err(Malformed::Garbage),
            "{wrong:?}"
        );
    }
}

#[test]
fn rejects_other_protocols_by_the_first_byte() {
    assert_eq!(decode(b"HTTP/1.1 400"), Err(Malformed::Garbage));
    assert_eq!(decode(b"$2\r\nabc\r\n"), Err(Malformed::Garbage));
    assert_eq!(decode(b"_x\r\n"), Err(Malformed::Garbage));
    for null in ["_\r\n", "$-1\r\n", "*-1\r\n"] {
        assert_eq!(decode(null.as_bytes()), Ok(Some(Reply::Null)));
    }
}

#[test]
fn rejects_announced_lengths_beyond_the_cap() {
    let too_long = Err(Malformed::TooLong(REPLY_CAP));
    assert_eq!(decode(b"$1048577\r\n"), too_long);
    assert_eq!(decode(b"*999999999\r\n"), too_long);
    assert_eq!(decode(b"*9223372036854775807\r\n"), too_long);
    assert_eq!(decode(&b"*300000\r\n".repeat(2)), Ok(None));
}

#[test]
fn all_received_bytes_count_towards_the_cap() {
    let mut endless = Decoder::default();
    endless.buffer().extend_from_slice(b"*300\r\n");
    let refused = (0..300).find_map(|_| {
        endless.buffer().extend_from_slice(b"$2\r\nxx\r\n");
        endless.next(1000).err()
    });
    assert_eq!(refused, Some(Malformed::TooLong(1000)));

    let mut line = Decoder::default();
    line.buffer().extend_from_slice(&[b'+'; 1001]);
    assert_eq!(line.next(1000), Err(Malformed::TooLong(1000)));

    // Two replies below the cap do not add up.
    let mut two = Decoder::default();
    two.buffer()
        .extend_from_slice(&b"$600\r\n".iter().copied().chain([b'x'; 600]).collect::<Vec<_>>());
    two.buffer().extend_from_slice(b"\r\n");
    let whole = two.buffer().clone();
    two.buffer().extend_from_slice(&whole);
    assert!(matches!((two.next(1000), two.next(1000)), (Ok(Some(_)), Ok(Some(_)))));
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert!(matches!(decode(&nested(8)), Ok(Some(_))));
    assert_eq!(decode(&nested(9)), Err(Malformed::TooDeep));
}
