//! Where a limit is counted, and how it is decided while the shared store is lost.

/// How a limit is decided while the shared store is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnStoreLoss {
    /// By this node's share of the limit.
    #[default]
    Local,
    /// Every request is admitted.
    Allow,
    /// Every request is refused.
    Deny,
}

impl OnStoreLoss {
    /// Returns the name used in policies and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Where a limit is counted: in this node or in the shared store.
///
/// Ordered by the role of the shared store, so that the minimum of two depends on it least.
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
    /// In this node. The shared store is called as well, and differing verdicts are counted.
    Shadow,
    /// In the shared store.
    #[default]
    On,
}

impl Distributed {
    /// Returns the name used in policies and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

/// How nodes share the limit of one take. A [`FallbackStore`](crate::FallbackStore) applies it; other stores
/// ignore it.
///
/// ```
/// use tollgate::{Distributed, OnStoreLoss, Distribution};
///
/// let distribution = Distribution::default();
/// assert_eq!((distribution.distributed, distribution.on_store_loss), (Distributed::On, OnStoreLoss::Local));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Distribution {
    /// Where the limit is counted.
    pub distributed: Distributed,
    /// How the limit is decided while the shared store is lost.
    pub on_store_loss: OnStoreLoss,
}
