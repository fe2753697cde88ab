//! The Lua programs: assembled from the files in `lua/`, as scripts and as a function library.
//!
//! Redis creates the closures of a script at every call, which costs more than its arguments. So the most common
//! calls, takes and peeks under one algorithm, have a small script per algorithm next to the general one. A library
//! is loaded once and needs only the general one. All use the same parts.

use sha1::{Digest, Sha1};

use crate::limit_code::{Letter, lua_parts};

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
    #[cfg(any(test, feature = "testing"))]
    Argument,
}

impl TimeSource {
    const fn part(self) -> &'static str {
        match self {
            Self::Server => lua!("clock"),
            #[cfg(any(test, feature = "testing"))]
            Self::Argument => lua!("clock_testing"),
        }
    }
}

/// The entry point of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Takes and peeks from token buckets, each plan in one group.
    DecideBuckets,
    /// Takes and peeks under limits of one algorithm.
    Decide(Letter),
    /// All operations on counters except listing.
    Operate,
    List,
    Leave,
    Nodes,
    Override,
    NodeReport,
    History,
}

impl Entry {
    /// Returns the name of the Lua function.
    const fn name(self) -> &'static str {
        match self {
            Self::DecideBuckets => "decide_buckets",
            Self::Decide(_) => "decide",
            Self::Operate => "operate",
            Self::List => "list",
            Self::Leave => "leave",
            Self::Nodes => "nodes",
            Self::Override => "override",
            Self::NodeReport => "report",
            Self::History => "history",
        }
    }
}

const SHARED: [&str; 2] = [lua!("arithmetic"), lua!("state")];
const DECIDE: [&str; 4] = [lua!("pause"), lua!("plan"), lua!("multi_take"), lua!("decide")];
const OPERATE: [&str; 9] = [
    lua!("pause"),
    lua!("permits"),
    lua!("plan"),
    lua!("multi_take"),
    lua!("lease"),
    lua!("operation_support"),
    lua!("adjustments"),
    lua!("reservations"),
    lua!("operations"),
];
const DIRECTORY: [&str; 6] = [
    lua!("event_log"),
    lua!("history"),
    lua!("leave"),
    lua!("nodes"),
    lua!("overrides"),
    lua!("node_report"),
];

const BUCKETS: &str = lua!("buckets");

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

    /// The script for token buckets. The program for all other states is one function in it, so that its closures are
    /// only created when it is called.
    fn of_buckets(time: TimeSource) -> Self {
        let parts = [lua_parts(Letter::TokenBucket), &DECIDE].concat();
        let parts: Vec<_> = SHARED.into_iter().chain(parts.into_iter().map(deciding)).collect();
        let general = [
            "local function general(call_keys, call_args)",
            &code(&parts),
            "return decide(call_keys, call_args)",
            "end",
        ];
        let general = general.join("\n");
        let parts = [time.part(), lua!("bucket_format"), &general, BUCKETS];
        Self::of(Entry::DecideBuckets, &parts)
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
        let general = "local general = operate\n";
        let code = code(&[parts, &[general, BUCKETS]].concat());
        let name = format!("tollgate_{}", hash(&code).get(..12).unwrap_or_default());
        let entries = [
            Entry::DecideBuckets,
            Entry::Operate,
            Entry::List,
            Entry::Leave,
            Entry::Nodes,
            Entry::Override,
            Entry::NodeReport,
            Entry::History,
        ];
        let registered: String =
            entries.iter().map(|entry| entry.name()).map(|entry| register(&name, entry)).collect();
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

/// Returns the Lua statement that registers a function. Its named keys may have several slots.
fn register(library: &str, entry: &str) -> String {
    format!(
        "redis.register_function{{function_name='{library}_{entry}', callback={entry}, \
         flags={{'allow-cross-slot-keys'}}}}\n"
    )
}

/// The programs of a store.
#[derive(Debug)]
pub(crate) struct Programs {
    decide_buckets: Script,
    /// The small scripts. Other algorithms use `operate`.
    decide: Vec<(Letter, Script)>,
    operate: Script,
    list: Script,
    leave: Script,
    nodes: Script,
    overrides: Script,
    node_report: Script,
    history: Script,
    library: Library,
}

impl Programs {
    pub(crate) fn new(time: TimeSource) -> Self {
        let assemble = |time: TimeSource, parts: &[&[&'static str]]| {
            [&[&[time.part()], &SHARED[..]], parts].concat().concat()
        };
        let decide = |letter: Letter| {
            let algorithm: Vec<_> = lua_parts(letter).iter().map(|part| deciding(part)).collect();
            let script = Script::of(Entry::Decide(letter), &assemble(time, &[&algorithm, &DECIDE]));
            (letter, script)
        };
        // The directory always uses the server's clock.
        let directory =
            |entry: Entry, parts: &[_]| Script::of(entry, &assemble(TimeSource::Server, &[parts]));
        let algorithms = algorithms();
        let without_listing: Vec<_> = algorithms.iter().map(|part| deciding(part)).collect();
        let all: [&[&'static str]; 4] = [&algorithms, &OPERATE, &[lua!("listing")], &DIRECTORY];
        Self {
            decide_buckets: Script::of_buckets(time),
            decide: Letter::ALL.into_iter().filter(has_small_script).map(decide).collect(),
            operate: Script::of(Entry::Operate, &assemble(time, &[&without_listing, &OPERATE])),
            list: Script::of(Entry::List, &assemble(time, &[&algorithms, &[lua!("listing")]])),
            leave: directory(Entry::Leave, &[lua!("event_log"), lua!("leave")]),
            nodes: directory(Entry::Nodes, &[lua!("nodes")]),
            overrides: directory(Entry::Override, &[lua!("overrides")]),
            node_report: directory(
                Entry::NodeReport,
                &[lua!("event_log"), lua!("history"), lua!("node_report")],
            ),
            history: directory(Entry::History, &[lua!("history")]),
            library: Library::of(&assemble(time, &all)),
        }
    }

    /// Returns the smallest script for an entry.
    pub(crate) fn script(&self, entry: Entry) -> &Script {
        match entry {
            Entry::Decide(letter) => {
                let mut scripts = self.decide.iter();
                let small = scripts.find(|(other, _)| *other == letter);
                small.map_or(&self.operate, |(_, script)| script)
            }
            Entry::DecideBuckets => &self.decide_buckets,
            Entry::Operate => &self.operate,
            Entry::List => &self.list,
            Entry::Leave => &self.leave,
            Entry::Nodes => &self.nodes,
            Entry::Override => &self.overrides,
            Entry::NodeReport => &self.node_report,
            Entry::History => &self.history,
        }
    }

    pub(crate) const fn library(&self) -> &Library {
        &self.library
    }
}

/// The line in the Lua file of an algorithm before the code that only listing needs.
const LISTING: &str = "-- Only in programs that list keys:";

/// Returns the part of an algorithm's Lua file that every program needs.
fn deciding(part: &'static str) -> &'static str {
    part.split_once(LISTING).map_or(part, |(deciding, _)| deciding)
}

/// Returns the Lua files of all algorithms, each once.
fn algorithms() -> Vec<&'static str> {
    let mut parts: Vec<&'static str> = Vec::new();
    for part in Letter::ALL.into_iter().flat_map(lua_parts) {
        if !parts.contains(part) {
            parts.push(part);
        }
    }
    parts
}

/// Returns whether takes under an algorithm are common and need no permit.
fn has_small_script(letter: &Letter) -> bool {
    *letter != Letter::Block && !letter.algorithm().holds_slots()
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
