//! What nodes tell a store that is back: what they owe, each once, and nothing else.

use std::sync::Arc;

use super::mirror::Attends;
use super::owed::{Owed, Tell};
use super::{Check, Holds, Outcome};
use crate::simulator::clockwork::TaskId;
use crate::simulator::request::{Act, Request};

impl Check {
    /// A node tells the store of one spending: it must be the next that it owes.
    pub(super) fn tells(&mut self, node: usize, task: TaskId, request: &Request, now: u64) {
        let setting = Arc::clone(&self.setting);
        let [want] = request.wants.as_slice() else {
            return self.fail(now, || format!("node {node} told of several keys: {request:?}"));
        };
        let spec = &setting.specs[want.key];
        let mirror = &mut self.mirrors[node];
        let owed = &mut mirror.owed[want.key];
        let (_, queue) = mirror.telling.entry(want.key).or_insert_with(|| {
            let tells = std::mem::replace(owed, Owed::new(spec)).tells(spec, now);
            (task, tells.into())
        });
        let said = match (request.act, request.permit) {
            (Act::Debit { age_us }, None) => Some(Tell::Debit { cost: want.cost, age: age_us }),
            (Act::Take, Some(permit)) => Some(Tell::Hold { cost: want.cost, permit }),
            _ => None,
        };
        let right = queue.pop_front();
        self.figures.told += 1;
        self.hold(now, Holds::from(said.is_some() && said == right), || {
            format!("node {node} told {request:?} and owed {right:?} next")
        });
    }

    /// The store heard of it, or it is lost. The rest is told all the same.
    pub(super) fn told(&mut self, node: usize, request: &Request, outcome: Outcome) {
        let mirror = &mut self.mirrors[node];
        for want in &request.wants {
            let is_last = mirror.telling.get(&want.key).is_none_or(|(_, queue)| queue.is_empty());
            if is_last {
                mirror.telling.remove(&want.key);
            }
        }
        if !outcome.is_heard {
            self.figures.untold += 1;
            mirror.attends = Attends::Disturbed;
        }
    }

    /// Whoever told went away.
    pub(in crate::simulator) fn gave_up(&mut self, node: usize, task: TaskId, now: u64) {
        self.note(now, || format!("the caller of task {task} at node {node} gave up"));
        let mirror = &mut self.mirrors[node];
        let before = mirror.telling.len();
        mirror.telling.retain(|_, (teller, _)| *teller != task);
        self.figures.untold += (before - mirror.telling.len()) as u64;
        self.roles.remove(&task);
        self.heard.remove(&task);
    }

    /// After a node was heard to the end.
    pub(super) fn owes_nothing(&mut self, node: usize, now: u64) {
        if !std::mem::take(&mut self.mirrors[node].has_spent) {
            return;
        }
        let setting = Arc::clone(&self.setting);
        for (key, spec) in setting.specs.iter().enumerate() {
            let left = self.mirrors[node].owed[key].tells(spec, now);
            self.hold(now, Holds::from(left.is_empty()), || {
                format!("node {node} did not tell {left:?} of key {key}")
            });
        }
    }
}
