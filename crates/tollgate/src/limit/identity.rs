//! Storage identity of a limit: the text by which stores keep the states of different limits apart.

use crate::algorithm::Letter;
use crate::naming::is_name;

/// Parsed storage identity: a letter for the algorithm, then `rule/name`.
#[derive(Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) letter: Letter,
    pub(crate) rule: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Identity<'a> {
    /// Parses the output of [`Limit::identity`](crate::Limit::identity). Returns `None` if it is invalid.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let letter = Letter::from_byte(*text.as_bytes().first()?)?;
        let (rule, name) = text.get(1..)?.split_once('/')?;
        // Unnamed limits with equal windows are numbered: `60s`, `60s#2`.
        let (base, nth) = name.split_once('#').unwrap_or((name, "2"));
        let is_number = nth.bytes().all(|byte| byte.is_ascii_digit()) && !nth.is_empty();
        let is_valid = is_name(rule) && is_name(base) && is_number;
        is_valid.then_some(Self { letter, rule, name })
    }
}
