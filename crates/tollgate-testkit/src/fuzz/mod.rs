//! Fuzzing on the stable toolchain: a target runs on mutated inputs of its corpus, reproducible from a seed.
//!
//! There is no coverage feedback, which needs instrumentation. Instead, a target returns its outcome, such as an error
//! or the number of decoded items; an input with a new outcome is mutated further.
//!
//! `TOLLGATE_EXECUTIONS` sets the number of executions and `TOLLGATE_SEED` the seed; `scripts/fuzz` sets both.

mod corpus;
mod mutation;

use std::collections::HashSet;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

use crate::random::Random;
use mutation::Mutator;

/// Maximum number of inputs that are mutated further.
const MAX_POOL: usize = 4096;

/// Default maximum length of an input in bytes.
const MAX_LENGTH: usize = 4096;

/// One property of a parser, and the inputs to test it with.
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    executions: u64,
    max_length: usize,
    seeds: Vec<Vec<u8>>,
    dictionary: Vec<&'static [u8]>,
}

/// What a campaign did.
#[derive(Debug)]
pub struct Summary {
    /// Number of mutated inputs.
    pub executions: u64,
    /// Number of different outcomes.
    pub outcomes: usize,
}

impl Target {
    /// Creates a target with the corpus `testdata/fuzz/NAME.txt`, and its number of executions in a test.
    ///
    /// # Panics
    /// The corpus is missing or invalid.
    pub fn new(name: &'static str, executions: u64) -> Self {
        let seeds = corpus::read(name);
        Self { name, executions, max_length: MAX_LENGTH, seeds, dictionary: Vec::new() }
    }

    /// Sets the texts that mutations insert.
    #[must_use]
    pub fn dictionary(mut self, texts: &[&'static str]) -> Self {
        self.dictionary = texts.iter().map(|text| text.as_bytes()).collect();
        self
    }

    /// Adds inputs to the corpus.
    #[must_use]
    pub fn seeds<T: Into<Vec<u8>>>(mut self, seeds: impl IntoIterator<Item = T>) -> Self {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Sets the maximum length of a mutated input in bytes.
    #[must_use]
    pub fn max_length(self, max_length: usize) -> Self {
        Self { max_length, ..self }
    }

    /// Runs the property on every input of the corpus, then on mutated ones. It returns the outcome of an input, and
    /// panics if the input breaks it; the input is then printed as a line for the corpus.
    ///
    /// # Panics
    /// An input breaks the property.
    pub fn run<T: Hash>(self, mut property: impl FnMut(&[u8]) -> T) -> Summary {
        let seed = number("TOLLGATE_SEED").unwrap_or(1);
        let executions = number("TOLLGATE_EXECUTIONS").unwrap_or(self.executions);
        let mut outcomes = HashSet::new();
        let mut is_new = |input: &[u8]| {
            let _report = Report { name: self.name, input };
            outcomes.insert(hash(&property(input)))
        };
        for input in &self.seeds {
            is_new(input);
        }
        let mut mutator = Mutator::new(Random::new(seed), self.dictionary, self.max_length);
        let seeds = self.seeds.len();
        let mut pool = self.seeds;
        let mut input = Vec::new();
        for _ in 0..executions {
            mutator.mutate(&pool, seeds, &mut input);
            if is_new(&input) && pool.len() < MAX_POOL {
                pool.push(input.clone());
            }
        }
        let summary = Summary { executions, outcomes: outcomes.len() };
        println!("fuzz {}: {summary:?}, seed {seed}", self.name);
        summary
    }
}

/// Splits an input into chunks of random lengths, which depend on the input only.
pub fn chunks(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut random = Random::new(hash(input));
    let mut rest = input;
    std::iter::from_fn(move || {
        let length = usize::try_from(random.magnitude(64)).ok()?.min(rest.len());
        let (chunk, after) = rest.split_at(length);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Prints the input if the property panics.
struct Report<'a> {
    name: &'a str,
    input: &'a [u8],
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let (name, line) = (self.name, corpus::escape(self.input));
            eprintln!(
                "fuzz {name}: add this line to testdata/fuzz/{name}.txt to repeat the failure:\n{line}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn target() -> Target {
        let seeds = vec![b"key=value".to_vec()];
        Target {
            name: "test",
            executions: 20_000,
            max_length: 64,
            seeds,
            dictionary: vec![b"magic"],
        }
    }

    #[test]
    fn finds_an_input_that_needs_a_dictionary_word_and_several_steps() {
        let is_broken = |input: &[u8]| {
            input.starts_with(b"key=magic") && input.last().is_some_and(|byte| *byte > 127)
        };
        let found = catch_unwind(|| target().run(|input| assert!(!is_broken(input))));
        assert!(found.is_err());
    }

    #[test]
    fn one_seed_gives_the_same_inputs() {
        let inputs = || {
            let mut inputs = Vec::new();
            target().run(|input| {
                inputs.push(input.to_vec());
                input.len()
            });
            inputs
        };
        let first = inputs();
        assert_eq!(first, inputs());
        assert!(first.iter().all(|input| input.len() <= 64));
        let distinct: HashSet<_> = first.iter().collect();
        assert!(distinct.len() * 4 > first.len(), "{} of {}", distinct.len(), first.len());
    }

    #[test]
    fn chunks_are_the_whole_input() {
        let input: Vec<u8> = (0..=255).collect();
        assert!(chunks(&input).count() > 1);
        assert_eq!(chunks(&input).collect::<Vec<_>>().concat(), input);
        assert_eq!(chunks(b"").count(), 0);
    }
}
