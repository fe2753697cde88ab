//! The Lua programs, put together from the files of `lua/`, as scripts and as a library of functions.
//!
//! A script's closures are made anew at every call and cost more than its arguments. So what most calls
//! ask, takes and peeks under one algorithm, has a small script for each algorithm, beside the one that
//! can do everything. A library is loaded once, and needs only the one. All are made of the same parts.

use sha1::{Digest, Sha1};

use crate::limit_code::Letter;

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("../lua/", $name, ".lua"))
    };
}

/// Where a program's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeSource {
    /// The server's own clock.
    Server,
    /// An argument. Only what is built for tests can be told the time.
    #[cfg(feature = "testing")]
    Argument,
}

impl TimeSource {
    const fn part(self) -> &'static str {
        match self {
            Self::Server => lua!("clock"),
            #[cfg(feature = "testing")]
            Self::Argument => lua!("clock_testing"),
        }
    }
}

/// What a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Takes and peeks under limits of one algorithm.
    Decide(Letter),
    /// All that can be done with counters, but to list them.
    Operate,
    List,
    Heartbeat,
    Nodes,
    Override,
    NodeReport,
}

impl Entry {
    /// Its Lua function.
    const fn name(self) -> &'static str {
        match self {
            Self::Decide(_) => "decide",
            Self::Operate => "operate",
            Self::List => "list",
            Self::Heartbeat => "heartbeat",
            Self::Nodes => "nodes",
            Self::Override => "override",
            Self::NodeReport => "report",
        }
    }
}

const SHARED: [&str; 2] = [lua!("arithmetic"), lua!("state")];
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
const DECIDE: [&str; 4] = [lua!("pause"), lua!("plan"), lua!("several"), lua!("decide")];
const OPERATE: [&str; 5] =
    [lua!("pause"), lua!("permits"), lua!("plan"), lua!("several"), lua!("operations")];
const DIRECTORY: [&str; 4] =
    [lua!("heartbeat"), lua!("nodes"), lua!("overrides"), lua!("node_report")];

/// A script, and the hash that Redis knows it by.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn of(entry: Entry, parts: &[&str]) -> Self {
        let text = code(parts) + &format!("return {}(KEYS, ARGV)\n", entry.name());
        Self { hash: hash(&text), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// All of it as functions. The library is named by what it says, so that two versions live side by side.
#[derive(Debug)]
pub(crate) struct Library {
    name: String,
    text: String,
}

impl Library {
    fn of(parts: &[&str]) -> Self {
        let code = code(parts);
        let name = format!("tollgate_{}", hash(&code).get(..12).unwrap_or_default());
        let entries = [
            Entry::Operate,
            Entry::List,
            Entry::Heartbeat,
            Entry::Nodes,
            Entry::Override,
            Entry::NodeReport,
        ];
        let registered: String = entries
            .iter()
            .map(|entry| entry.name())
            .map(|entry| format!("redis.register_function('{name}_{entry}', {entry})\n"))
            .collect();
        Self { text: format!("#!lua name={name}\n{code}{registered}"), name }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The name of the function that does it.
    pub(crate) fn function(&self, entry: Entry) -> String {
        let name = match entry {
            Entry::Decide(_) => Entry::Operate.name(),
            other => other.name(),
        };
        format!("{}_{name}", self.name)
    }
}

/// The programs of a store.
#[derive(Debug)]
pub(crate) struct Programs {
    token_bucket: Script,
    sliding_window: Script,
    sliding_counter: Script,
    fixed_window: Script,
    calendar_window: Script,
    operate: Script,
    list: Script,
    heartbeat: Script,
    nodes: Script,
    overrides: Script,
    node_report: Script,
    library: Library,
}

impl Programs {
    pub(crate) fn new(time: TimeSource) -> Self {
        let with = |time: TimeSource, parts: &[&[&'static str]]| {
            [&[&[time.part()], &SHARED[..]], parts].concat().concat()
        };
        let small = |letter: Letter, algorithm: &[&'static str]| {
            Script::of(Entry::Decide(letter), &with(time, &[algorithm, &DECIDE]))
        };
        // The directory always goes by the server's clock.
        let directory =
            |entry: Entry, part| Script::of(entry, &with(TimeSource::Server, &[&[part]]));
        let all: [&[&'static str]; 4] = [&ALGORITHMS, &OPERATE, &[lua!("listing")], &DIRECTORY];
        Self {
            token_bucket: small(Letter::TokenBucket, &[lua!("token_bucket")]),
            sliding_window: small(Letter::SlidingWindow, &[lua!("sliding_window")]),
            sliding_counter: small(Letter::SlidingCounter, &[lua!("sliding_counter")]),
            fixed_window: small(Letter::FixedWindow, &[lua!("counted"), lua!("fixed_window")]),
            calendar_window: small(
                Letter::CalendarWindow,
                &[lua!("counted"), lua!("calendar_window")],
            ),
            operate: Script::of(Entry::Operate, &with(time, &[&ALGORITHMS, &OPERATE])),
            list: Script::of(Entry::List, &with(time, &[&ALGORITHMS, &[lua!("listing")]])),
            heartbeat: directory(Entry::Heartbeat, lua!("heartbeat")),
            nodes: directory(Entry::Nodes, lua!("nodes")),
            overrides: directory(Entry::Override, lua!("overrides")),
            node_report: directory(Entry::NodeReport, lua!("node_report")),
            library: Library::of(&with(time, &all)),
        }
    }

    /// The smallest script that does it.
    pub(crate) const fn script(&self, entry: Entry) -> &Script {
        match entry {
            Entry::Decide(Letter::TokenBucket) => &self.token_bucket,
            Entry::Decide(Letter::SlidingWindow) => &self.sliding_window,
            Entry::Decide(Letter::SlidingCounter) => &self.sliding_counter,
            Entry::Decide(Letter::FixedWindow) => &self.fixed_window,
            Entry::Decide(Letter::CalendarWindow) => &self.calendar_window,
            Entry::Decide(Letter::Block | Letter::Concurrency) | Entry::Operate => &self.operate,
            Entry::List => &self.list,
            Entry::Heartbeat => &self.heartbeat,
            Entry::Nodes => &self.nodes,
            Entry::Override => &self.overrides,
            Entry::NodeReport => &self.node_report,
        }
    }

    pub(crate) const fn library(&self) -> &Library {
        &self.library
    }
}

/// The parts as one text. Comments are for people; Redis need not keep them.
fn code(parts: &[&str]) -> String {
    let lines = parts.iter().flat_map(|part| part.lines());
    let code = lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with("--"));
    code.fold(String::new(), |text, line| text + line + "\n")
}

fn hash(text: &str) -> String {
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
