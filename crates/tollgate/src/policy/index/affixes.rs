//! Rules by the prefix or suffix of a value.

use crate::policy::wildcard::Literal;

use super::{Candidates, List, Map, push};

/// Which end of a value is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// A hash map of prefixes or suffixes. A lookup cuts the value at each length that occurs in the map.
#[derive(Debug)]
pub(super) struct Affixes {
    affix: Affix,
    lengths: Vec<usize>,
    literals: Map<Literal, List>,
}

impl Affixes {
    pub(super) fn new(affix: Affix) -> Self {
        Self { affix, lengths: Vec::new(), literals: Map::default() }
    }

    pub(super) fn insert(&mut self, number: u32, literal: Literal) {
        if let Err(position) = self.lengths.binary_search(&literal.len()) {
            self.lengths.insert(position, literal.len());
        }
        push(self.literals.entry(literal).or_default(), number);
    }

    pub(super) fn lookup<'i>(&'i self, value: &[u8], found: &mut Candidates<'i>) {
        for length in &self.lengths {
            let Some(cut) = value.len().checked_sub(*length) else { return };
            let part = match self.affix {
                Affix::Prefix => value.get(..*length),
                Affix::Suffix => value.get(cut..),
            };
            found.add(part.and_then(|part| self.literals.get(part)).map_or(&[], List::as_slice));
        }
    }
}
