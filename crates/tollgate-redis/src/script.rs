//! The Lua programs: assembled from the files in `lua/`, as scripts and as a function library.
//!
//! Redis creates the closures of a script at every call, which costs more than its arguments. So the most common
//! calls, takes and peeks under one algorithm, have a small script per algorithm next to the general one. A library
//! is loaded once and needs only the general one. All use the same parts.

use sha1::{Digest, Sha1};

use crate::limit_code::Letter;

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("../lua/", $name, ".lua"))
    };
}

/// The clock of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeSource {
    /// The server's clock.
    Server,
    /// An argument, only in programs for tests.
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

/// The entry point of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Takes and peeks under limits of one algorithm.
    Decide(Letter),
    /// All operations on counters except listing.
    Operate,
    List,
    Heartbeat,
    Nodes,
    Override,
    NodeReport,
}

impl Entry {
    /// Returns the name of the Lua function.
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
    lua!("window_count"),
    lua!("block"),
    lua!("token_bucket"),
    lua!("sliding_window"),
    lua!("sliding_counter"),
    lua!("fixed_window"),
    lua!("calendar_window"),
    lua!("concurrency"),
];
const DECIDE: [&str; 4] = [lua!("pause"), lua!("plan"), lua!("multi_take"), lua!("decide")];
const OPERATE: [&str; 5] =
    [lua!("pause"), lua!("permits"), lua!("plan"), lua!("multi_take"), lua!("operations")];
const DIRECTORY: [&str; 4] =
    [lua!("heartbeat"), lua!("nodes"), lua!("overrides"), lua!("node_report")];

/// A script and its SHA-1 hash.
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

/// All programs as functions. The library name contains a hash of the code, so that two versions can coexist.
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

    /// Returns the name of the function for an entry.
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
        let assemble = |time: TimeSource, parts: &[&[&'static str]]| {
            [&[&[time.part()], &SHARED[..]], parts].concat().concat()
        };
        let decide = |letter: Letter, algorithm: &[&'static str]| {
            Script::of(Entry::Decide(letter), &assemble(time, &[algorithm, &DECIDE]))
        };
        // The directory always uses the server's clock.
        let directory =
            |entry: Entry, part| Script::of(entry, &assemble(TimeSource::Server, &[&[part]]));
        let all: [&[&'static str]; 4] = [&ALGORITHMS, &OPERATE, &[lua!("listing")], &DIRECTORY];
        Self {
            token_bucket: decide(Letter::TokenBucket, &[lua!("token_bucket")]),
            sliding_window: decide(Letter::SlidingWindow, &[lua!("sliding_window")]),
            sliding_counter: decide(Letter::SlidingCounter, &[lua!("sliding_counter")]),
            fixed_window: decide(
                Letter::FixedWindow,
                &[lua!("window_count"), lua!("fixed_window")],
            ),
            calendar_window: decide(
                Letter::CalendarWindow,
                &[lua!("window_count"), lua!("calendar_window")],
            ),
            operate: Script::of(Entry::Operate, &assemble(time, &[&ALGORITHMS, &OPERATE])),
            list: Script::of(Entry::List, &assemble(time, &[&ALGORITHMS, &[lua!("listing")]])),
            heartbeat: directory(Entry::Heartbeat, lua!("heartbeat")),
            nodes: directory(Entry::Nodes, lua!("nodes")),
            overrides: directory(Entry::Override, lua!("overrides")),
            node_report: directory(Entry::NodeReport, lua!("node_report")),
            library: Library::of(&assemble(time, &all)),
        }
    }

    /// Returns the smallest script for an entry.
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

/// Joins the parts, without comments and empty lines.
fn code(parts: &[&str]) -> String {
    let lines = parts.iter().flat_map(|part| part.lines());
    let code = lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with("--"));
    code.fold(String::new(), |text, line| text + line + "\n")
}

fn hash(text: &str) -> String {
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
