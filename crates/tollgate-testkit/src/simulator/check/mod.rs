//! What must hold at every moment, whatever goes wrong.

mod asking;
mod bounds;
mod decisions;
mod mirror;
mod owed;
mod telling;

use std::collections::HashMap;
use std::sync::Arc;

pub(super) use decisions::Worked;
use mirror::Mirror;

use super::Figures;
use super::clockwork::TaskId;
use super::request::{Act, Oracles, Request};
use super::setting::Setting;
use crate::answer::Answer;

/// Who waits for the store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Attends,
    Calls { act: Act, permit: Option<u64> },
}

/// What the store said to a caller, and when it decided.
#[derive(Debug, Clone)]
struct Heard {
    answers: Option<Vec<Answer>>,
    at: u64,
}

/// What passed.
#[derive(Debug, Clone, Copy)]
struct Admission {
    at: u64,
    cost: u64,
    by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Store,
    Node(usize),
}

/// Slots in use.
#[derive(Debug, Clone, Copy)]
struct Holding {
    key: usize,
    permit: Option<u64>,
    cost: u64,
    from: u64,
    until: u64,
}

/// In which part of the hour, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Hour,
    /// All is well, and everything has come back.
    Rested,
    /// Then the store is lost once more.
    LostAgain,
}

/// Everything that is known about a simulation from outside.
#[derive(Debug)]
pub(super) struct Check {
    setting: Arc<Setting>,
    failure: Option<String>,
    timeline: Option<Vec<String>>,
    pub(super) figures: Figures,
    pub(super) stage: Stage,
    server: Oracles,
    mirrors: Vec<Mirror>,
    roles: HashMap<TaskId, Role>,
    heard: HashMap<TaskId, Heard>,
    admissions: Vec<Vec<Admission>>,
    holdings: Vec<Holding>,
    /// When the store lost its data or its clock stepped.
    upsets: Vec<u64>,
    /// When something was debited as of some time ago: a window that opens so closes sooner.
    aged: Vec<u64>,
}

impl Check {
    pub(super) fn new(setting: &Arc<Setting>, timeline: Option<Vec<String>>) -> Self {
        let keys = setting.keys.len();
        Self {
            setting: Arc::clone(setting),
            failure: None,
            timeline,
            figures: Figures::default(),
            stage: Stage::Hour,
            server: Oracles::new(keys),
            mirrors: Vec::new(),
            roles: HashMap::new(),
            heard: HashMap::new(),
            admissions: vec![Vec::new(); keys],
            holdings: Vec::new(),
            upsets: Vec::new(),
            aged: Vec::new(),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// What failed first, and all that led to it if it was written down.
    pub(super) fn take_failure(&mut self) -> Option<(String, Vec<String>)> {
        let why = self.failure.take()?;
        Some((why, self.timeline.take().unwrap_or_default()))
    }

    pub(super) fn take_timeline(&mut self) -> Vec<String> {
        self.timeline.take().unwrap_or_default()
    }

    pub(super) fn note(&mut self, now: u64, what: impl FnOnce() -> String) {
        if let Some(timeline) = self.timeline.as_mut().filter(|_| self.failure.is_none()) {
            timeline.push(format!("{now:>20} {}", what()));
        }
    }

    fn fail(&mut self, now: u64, why: impl FnOnce() -> String) {
        if self.failure.is_none() {
            let why = why();
            self.note(now, || format!("FAILS: {why}"));
            self.failure = Some(why);
        }
    }

    fn hold(&mut self, now: u64, holds: Holds, why: impl FnOnce() -> String) {
        if holds == Holds::No {
            self.fail(now, why);
        }
    }

    pub(super) fn set_role(&mut self, task: TaskId, role: Role) {
        self.roles.insert(task, role);
    }

    pub(super) fn is_attending(&self, task: TaskId) -> bool {
        matches!(self.roles.get(&task), Some(Role::Attends))
    }

    pub(super) fn joined(&mut self, nodes: u32, now: u64) {
        let setting = Arc::clone(&self.setting);
        self.mirrors.push(Mirror::new(&setting, nodes, now));
    }

    pub(super) fn learned(&mut self, node: usize, nodes: u32, now: u64) {
        let setting = Arc::clone(&self.setting);
        self.mirrors[node].learn(&setting, nodes, now);
    }

    /// The store has forgotten everything.
    pub(super) fn emptied(&mut self, now: u64) {
        self.server = Oracles::new(self.setting.keys.len());
        self.upset(now);
    }

    pub(super) fn upset(&mut self, now: u64) {
        self.upsets.push(now);
    }

    /// Whether the store answers a node, from now on.
    pub(super) fn set_well(&mut self, node: usize, well: Well, now: u64) {
        let since = &mut self.mirrors[node].well_since;
        *since = match well {
            Well::No => None,
            Well::Yes => since.or(Some(now)),
        };
    }

    /// A node goes on that stood still.
    pub(super) fn woke(&mut self, node: usize) {
        self.mirrors[node].breaker.spare_probes = 1;
    }

    /// A question runs in the store, at the store's time.
    pub(super) fn ran(
        &mut self,
        task: Option<TaskId>,
        request: &Request,
        answers: Option<Vec<Answer>>,
        times: Times,
    ) {
        self.note_age(request, times.now);
        let setting = Arc::clone(&self.setting);
        let right = self.server.run(&setting.specs, request, times.of_store);
        if let Some(answers) = answers.as_ref().filter(|_| !request.wants.is_empty()) {
            let holds = Holds::from(*answers == right);
            self.hold(times.now, holds, || {
                format!("the store answered {answers:?} to {request:?}, the oracle {right:?}")
            });
        }
        if let Some(task) = task {
            self.heard.insert(task, Heard { answers, at: times.now });
        }
    }

    fn note_age(&mut self, request: &Request, now: u64) {
        if matches!(request.act, Act::Debit { age_us: 1.. }) {
            self.aged.push(now);
        }
    }
}

/// Two clocks at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: u64,
    pub(super) of_store: u64,
}

/// What became of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub(super) task: TaskId,
    pub(super) is_heard: bool,
    /// How often the node had changed its mind about the store when it asked.
    pub(super) changes_then: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Well {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}
