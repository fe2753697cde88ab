//! Hostile input for the RESP listener, by named kinds.

mod arguments;
mod commands;
mod framing;

use tollgate_testkit::random::Random;

use crate::resp_client::encode;

/// A kind of hostile input with its variants.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) inputs: Vec<Vec<u8>>,
}

/// Variants of each generated kind.
const VARIANTS: u64 = 10;

/// Returns a kind whose variants are generated.
fn generated(name: &'static str, mut variant: impl FnMut(&mut Random) -> Vec<u8>) -> Kind {
    let seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut random = Random::new(seed);
    Kind { name, inputs: (0..VARIANTS).map(|_| variant(&mut random)).collect() }
}

/// Returns a kind with these variants.
fn fixed<I: Into<Vec<u8>>>(name: &'static str, inputs: impl IntoIterator<Item = I>) -> Kind {
    Kind { name, inputs: inputs.into_iter().map(Into::into).collect() }
}

/// Returns a kind of commands, each given as words.
fn commands(name: &'static str, lines: &[&str]) -> Kind {
    fixed(name, lines.iter().map(|line| encode(&line.split(' ').collect::<Vec<_>>())))
}

fn bytes(random: &mut Random, max: u64) -> Vec<u8> {
    (0..random.within(1, max)).map(|_| random.draw().to_le_bytes()[0]).collect()
}

fn digits(random: &mut Random, max: u64) -> String {
    (0..random.within(1, max))
        .map(|_| char::from(b'0' + (random.draw() % 10).to_le_bytes()[0]))
        .collect()
}

/// Returns `count` copies of a byte.
fn repeated(byte: u8, count: usize) -> Vec<u8> {
    vec![byte; count]
}

fn check(facts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let name = b"TOLLGATE.CHECK".to_vec();
    encode(&std::iter::once(name).chain(facts).collect::<Vec<_>>())
}

fn throttle(arguments: &[&[u8]]) -> Vec<u8> {
    encode(&[&[&b"CL.THROTTLE"[..]], arguments].concat())
}

/// Returns all kinds.
pub(crate) fn kinds() -> Vec<Kind> {
    [framing::kinds(), arguments::kinds(), commands::kinds()].concat()
}
