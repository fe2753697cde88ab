//! Where one row is played: the program, how long it may take, and who hears what is said.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::canary::Witness;
use crate::scratch::Scratch;
use crate::setup::Setup;

/// How much of a fault there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Some seconds of it, before each change lands.
    Quick,
    /// As the matrix says.
    Full,
}

impl Scale {
    /// The one or the other.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// The stage of one row.
#[derive(Debug)]
pub struct Stage {
    tollgate: PathBuf,
    scale: Scale,
    witness: Witness,
    scratch: Scratch,
    policies: AtomicU32,
}

impl Stage {
    /// For this program.
    pub fn new(tollgate: PathBuf, scale: Scale) -> Self {
        let (witness, scratch) = (Witness::default(), Scratch::new());
        Self { tollgate, scale, witness, scratch, policies: AtomicU32::new(0) }
    }

    /// Nodes that are about to be started.
    pub fn node(&self) -> Setup<'_> {
        Setup::new(self)
    }

    /// How much of the fault there is to be.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Who hears what nodes say.
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// The program.
    pub fn tollgate(&self) -> &Path {
        &self.tollgate
    }

    /// Files of this row.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    pub(crate) fn write_policy(&self, text: &str) -> PathBuf {
        let number = self.policies.fetch_add(1, Ordering::Relaxed);
        self.scratch.write(&format!("policy-{number}.yaml"), text)
    }
}
