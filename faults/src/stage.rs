//! The stage of one row: the binary, the scale, scratch files, and the recorded output of nodes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::canary::Witness;
use crate::scale::Scale;
use crate::scratch::Scratch;
use crate::timing::{TimeBounds, Timing};

/// The stage of one row.
#[derive(Debug)]
pub struct Stage {
    tollgate: PathBuf,
    scale: Scale,
    bounds: TimeBounds,
    witness: Witness,
    scratch: Scratch,
    policies: AtomicU32,
}

impl Stage {
    /// Creates the stage of a row for a binary.
    pub fn new(tollgate: PathBuf, scale: Scale, timing: Timing) -> Self {
        let (witness, scratch) = (Witness::default(), Scratch::new());
        let (bounds, policies) = (TimeBounds::new(timing), AtomicU32::new(0));
        Self { tollgate, scale, bounds, witness, scratch, policies }
    }

    /// The scale of the row.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Checks a bound that depends on the speed of the machine: a latency, a recovery time, a number of slow
    /// responses. Every other bound is asserted. `figure` describes the measured figure.
    #[track_caller]
    pub fn check_time(&self, is_within: bool, figure: impl FnOnce() -> String) {
        self.bounds.check(is_within, figure);
    }

    pub(crate) fn bounds(&self) -> &TimeBounds {
        &self.bounds
    }

    /// The recorded output of all nodes.
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// The binary.
    pub fn tollgate(&self) -> &Path {
        &self.tollgate
    }

    /// The temporary files of this row.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    pub(crate) fn write_policy(&self, text: &str) -> PathBuf {
        let number = self.policies.fetch_add(1, Ordering::Relaxed);
        self.scratch.write(&format!("policy-{number}.yaml"), text)
    }
}
