//! How nodes share a limit, and what each does while it cannot ask the others' store.

/// What becomes of a limit while the store cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnStoreLoss {
    /// This node decides by its share of the limit.
    #[default]
    Local,
    /// Everything passes.
    Allow,
    /// Nothing passes.
    Deny,
}

impl OnStoreLoss {
    /// Its name in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Whether a limit is counted in the store that nodes share.
///
/// Ordered by how much the shared store has to say, so that the lesser of two is the more careful.
///
/// ```
/// use tollgate::Distributed;
///
/// assert_eq!(Distributed::On.min(Distributed::Shadow), Distributed::Shadow);
/// assert_eq!(Distributed::Off.min(Distributed::Shadow), Distributed::Off);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Distributed {
    /// In this node only.
    Off,
    /// In this node; the shared store is asked beside it, and differing verdicts are counted.
    Shadow,
    /// In the shared store.
    #[default]
    On,
}

impl Distributed {
    /// Its name in policies and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

/// How nodes share one take's limit. A [`FallbackStore`](crate::FallbackStore) heeds it; other stores count
/// every limit themselves, and fail when they cannot.
///
/// ```
/// use tollgate::{Distributed, OnStoreLoss, Distribution};
///
/// let usual = Distribution::default();
/// assert_eq!((usual.distributed, usual.on_store_loss), (Distributed::On, OnStoreLoss::Local));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Distribution {
    /// Where it is counted.
    pub distributed: Distributed,
    /// What becomes of it while the shared store cannot be asked.
    pub on_store_loss: OnStoreLoss,
}
