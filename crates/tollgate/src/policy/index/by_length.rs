//! Beginnings and endings of values, by hash.

use crate::policy::wildcard::Literal;

use super::{Candidates, List, Map, push};

/// Which end of a value is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Front,
    Back,
}

/// Literals that values begin or end with. A value is cut at each length there is, and looked up.
#[derive(Debug)]
pub(super) struct ByLength {
    end: End,
    lengths: Vec<usize>,
    literals: Map<Literal, List>,
}

impl ByLength {
    pub(super) fn new(end: End) -> Self {
        Self { end, lengths: Vec::new(), literals: Map::default() }
    }

    pub(super) fn file(&mut self, number: u32, literal: Literal) {
        if let Err(place) = self.lengths.binary_search(&literal.len()) {
            self.lengths.insert(place, literal.len());
        }
        push(self.literals.entry(literal).or_default(), number);
    }

    pub(super) fn look_up<'i>(&'i self, value: &[u8], found: &mut Candidates<'i>) {
        for length in &self.lengths {
            let Some(cut) = value.len().checked_sub(*length) else { return };
            let part = match self.end {
                End::Front => value.get(..*length),
                End::Back => value.get(cut..),
            };
            found.add(part.and_then(|part| self.literals.get(part)).map_or(&[], List::as_slice));
        }
    }
}
