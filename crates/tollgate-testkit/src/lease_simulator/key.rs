//! A key of the fleet: its limit, before and after a change, and the bound on its admissions.

use std::sync::Arc;

use tollgate::{LeaseSize, Limit};

use crate::admission_bound::AdmissionBound;
use crate::spec::{Kind, LimitSpec};

/// A limit of the plan, in two versions.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) versions: [Arc<Limit>; 2],
    /// `None` while nodes have different versions.
    pub(super) bound: Option<AdmissionBound>,
    version: usize,
}

impl Key {
    pub(super) fn new(number: u64, specs: [LimitSpec; 2], size: LeaseSize) -> Self {
        let [first, second] = specs;
        // A fixed window is open when its limit changes, and the bound cannot know since when.
        let is_fixed = |spec: &LimitSpec| spec.algorithm == Kind::FixedWindow;
        let second = if is_fixed(&first) || is_fixed(&second) { first.clone() } else { second };
        let versions = [first, second].map(|spec| {
            let limit = spec.build().and_then(|limit| limit.named(&format!("limit{number}")));
            let limit = limit.expect("drawn specs are valid");
            // A limit may be too small for leases of this size.
            let sized = limit.clone().with_lease(size);
            Arc::new(if sized.lease_hold().is_some() { sized } else { limit })
        });
        let bound = Some(AdmissionBound::new(&versions[0]));
        Self { versions, bound, version: 0 }
    }

    /// Nodes begin to load the second version, or all have loaded it.
    pub(super) fn change(&mut self, version: usize) {
        self.version = version;
        if self.versions[0] != self.versions[1] {
            self.bound = (version > 0).then(|| AdmissionBound::new(&self.versions[1]));
        }
    }

    pub(super) fn reset(&mut self) {
        if let Some(bound) = &mut self.bound {
            *bound = AdmissionBound::new(&self.versions[self.version]);
        }
    }
}
