//! The model for the checker: which events can follow a state, and what must always hold.

use stateright::{Model, Property};
use tollgate::algorithm::Reply;

use crate::action::Action;
use crate::defect::Defect;
use crate::fleet::{Fleet, Step};
use crate::node::{Activity, MAX_LEASES, Node, STEP};
use crate::numbers::Numbers;

/// The property that must hold in every state.
pub(crate) const BOUND: &str = "admissions are within the limit";

#[derive(Debug, Clone)]
pub(crate) struct LeaseModel {
    pub(crate) numbers: Numbers,
    pub(crate) defect: Option<Defect>,
    /// Nodes are interchangeable, so that fewer states are explored. The numbers of nodes in traces then change.
    pub(crate) is_reduced: bool,
}

impl Model for LeaseModel {
    type State = Fleet;
    type Action = Action;

    fn init_states(&self) -> Vec<Fleet> {
        vec![Fleet::new(&self.numbers)]
    }

    fn actions(&self, fleet: &Fleet, actions: &mut Vec<Action>) {
        if fleet.bound.is_exceeded() {
            return;
        }
        actions.extend([Action::Tick, Action::Take, Action::TakeWithoutReply, Action::Reset]);
        for (number, node) in fleet.nodes.iter().enumerate().take(self.numbers.nodes) {
            self.actions_of_node(number, node, actions);
            if fleet.disturbances > 0 && node.is_running() {
                disturbances_of_node(number, actions);
            }
        }
        if fleet.is_request_abandoned {
            actions.push(Action::LoseAbandoned);
            actions.extend(self.amounts(1).map(|amount| Action::GrantAbandoned { amount }));
        }
        if fleet.failovers > 0 {
            let is_lagging = fleet.lag.is_some();
            actions.push(if is_lagging { Action::FailOver } else { Action::BeginLag });
        }
    }

    fn next_state(&self, fleet: &Fleet, action: Action) -> Option<Fleet> {
        let mut step = Step { numbers: &self.numbers, defect: self.defect, fleet: *fleet };
        match action {
            Action::Tick => step.tick(),
            Action::Take => step.take(false)?,
            Action::TakeWithoutReply => step.take(true)?,
            Action::Request { node } => step.request(node),
            Action::Grant { node, amount, cost } => step.grant(node, amount, cost)?,
            Action::Deliver { node } => step.deliver(node)?,
            Action::GiveUp { node } => step.give_up(node),
            Action::GrantAbandoned { amount } => {
                let _: Reply = step.lease(amount)?;
                step.fleet.is_request_abandoned = false;
            }
            Action::LoseAbandoned => step.fleet.is_request_abandoned = false,
            Action::Spend { node, lease } => step.spend(node, lease)?,
            Action::Revoke { node } => step.revoke(node),
            Action::Reset => step.reset(),
            Action::Crash { node } => step.crash(node),
            Action::Pause { node } => step.stop(node, Activity::Paused)?,
            Action::Suspend { node } => step.stop(node, Activity::Suspended)?,
            Action::Continue { node } => step.fleet.nodes[node].activity = Activity::Running,
            Action::StepClock { node, by } => step.step_clock(node, by)?,
            Action::BeginLag => step.begin_lag(),
            Action::FailOver => step.fail_over()?,
        }
        if self.is_reduced {
            step.fleet.sort_nodes(&self.numbers);
        }
        Some(step.fleet)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let bound = Property::always(BOUND, |_, fleet: &Fleet| !fleet.bound.is_exceeded());
        if self.defect.is_some() {
            // The checker stops at the first counterexample, which is the shortest.
            return vec![bound];
        }
        vec![
            bound,
            Property::sometimes("every node has a lease", |model: &Self, fleet: &Fleet| {
                let mut nodes = fleet.nodes.iter().take(model.numbers.nodes);
                nodes.all(|node| node.leases[0].is_some())
            }),
            Property::sometimes("a node has the next lease", |_, fleet: &Fleet| {
                fleet.nodes.iter().any(|node| !node.has_place())
            }),
            Property::sometimes("the limit is used up", |model: &Self, fleet: &Fleet| {
                let grains = model.numbers.rate().map_or(1, |(_, grains)| grains);
                fleet.bound.used() == model.numbers.limit.capacity() * grains
            }),
        ]
    }
}

impl LeaseModel {
    fn actions_of_node(&self, number: usize, node: &Node, actions: &mut Vec<Action>) {
        if let Some(call) = node.call {
            actions.push(Action::GiveUp { node: number });
            if call.reply.is_none() {
                let grant = |cost| {
                    self.amounts(1 + cost).map(move |amount| Action::Grant {
                        node: number,
                        amount,
                        cost,
                    })
                };
                actions.extend([0, 1].into_iter().flat_map(grant));
            }
        }
        if !node.is_idle() {
            actions.push(Action::Crash { node: number });
        }
        if !node.is_running() {
            actions.push(Action::Continue { node: number });
            return;
        }
        match node.call {
            None if node.has_place() => actions.push(Action::Request { node: number }),
            Some(call) if call.reply.is_some() => actions.push(Action::Deliver { node: number }),
            _ => {}
        }
        if !node.is_idle() {
            actions.push(Action::Revoke { node: number });
        }
        let is_leased = |lease: &usize| node.leases[*lease].is_some();
        let spend = |lease| Action::Spend { node: number, lease };
        actions.extend((0..MAX_LEASES).filter(is_leased).map(spend));
    }

    /// The amounts that a store may grant. The product grants less when little is left, which is not needed for the bound.
    fn amounts(&self, min: u8) -> impl Iterator<Item = u8> {
        min..=self.numbers.max_amount
    }
}

fn disturbances_of_node(node: usize, actions: &mut Vec<Action>) {
    actions.extend([Action::Pause { node }, Action::Suspend { node }]);
    actions.extend([-STEP, -1, 1, STEP].map(|by| Action::StepClock { node, by }));
}
