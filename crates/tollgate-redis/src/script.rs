//! The Lua scripts, put together from the files of `lua/`.
//!
//! A script's closures are made anew at every call and cost more than its arguments. So what most calls
//! ask, takes and peeks under one algorithm, has a small script for each algorithm, beside the one that
//! can do everything. All are made of the same parts.

use sha1::{Digest, Sha1};

use crate::limit_code::Letter;

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("../lua/", $name, ".lua"))
    };
}

/// Where a script's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeSource {
    /// The server's own clock.
    Server,
    /// An argument. Only what is built for tests can be told the time.
    #[cfg(feature = "testing")]
    Argument,
}

impl TimeSource {
    pub(crate) const fn part(self) -> &'static str {
        match self {
            Self::Server => lua!("clock"),
            #[cfg(feature = "testing")]
            Self::Argument => lua!("clock_testing"),
        }
    }
}

const ALGORITHMS: [&str; 8] = [
    lua!("counted"),
    lua!("block"),
    lua!("token_bucket"),
    lua!("sliding_window"),
    lua!("sliding_counter"),
    lua!("fixed_window"),
    lua!("calendar_window"),
    lua!("concurrency"),
];

/// A script, and the hash that Redis knows it by.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    hash: String,
}

impl Script {
    /// A script of these parts. Comments are for people; Redis need not keep them.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let lines = parts.iter().flat_map(|part| part.lines());
        let code = lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with("--"));
        let text = code.fold(String::new(), |text, line| text + line + "\n");
        let digest = Sha1::digest(text.as_bytes());
        let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, hash }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// Every script of a store.
#[derive(Debug)]
pub(crate) struct Scripts {
    token_bucket: Script,
    sliding_window: Script,
    sliding_counter: Script,
    fixed_window: Script,
    calendar_window: Script,
    everything: Script,
    listing: Script,
}

impl Scripts {
    pub(crate) fn new(time: TimeSource) -> Self {
        let shared = [time.part(), lua!("arithmetic"), lua!("state")];
        let decide = [lua!("pause"), lua!("plan"), lua!("several"), lua!("decide")];
        let small = |algorithm: &[&str]| Script::of(&[&shared, algorithm, &decide].concat());
        // Only what is kept as a string can be read ahead.
        let strings = |algorithm: &[&str]| small(&[&[lua!("fetch")], algorithm].concat());
        let operate =
            [lua!("pause"), lua!("leases"), lua!("plan"), lua!("several"), lua!("operate")];
        Self {
            token_bucket: strings(&[lua!("token_bucket")]),
            sliding_window: small(&[lua!("sliding_window")]),
            sliding_counter: strings(&[lua!("sliding_counter")]),
            fixed_window: strings(&[lua!("counted"), lua!("fixed_window")]),
            calendar_window: strings(&[lua!("counted"), lua!("calendar_window")]),
            everything: Script::of(&[&shared[..], &ALGORITHMS, &operate].concat()),
            listing: Script::of(&[&shared[..], &ALGORITHMS, &[lua!("listing")]].concat()),
        }
    }

    /// The smallest script that takes and peeks under limits of this letter.
    pub(crate) const fn deciding(&self, letter: Letter) -> &Script {
        match letter {
            Letter::TokenBucket => &self.token_bucket,
            Letter::SlidingWindow => &self.sliding_window,
            Letter::SlidingCounter => &self.sliding_counter,
            Letter::FixedWindow => &self.fixed_window,
            Letter::CalendarWindow => &self.calendar_window,
            Letter::Block | Letter::Concurrency => &self.everything,
        }
    }

    /// The script that can do all but list.
    pub(crate) const fn everything(&self) -> &Script {
        &self.everything
    }

    pub(crate) const fn listing(&self) -> &Script {
        &self.listing
    }
}
