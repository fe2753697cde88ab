//! What a deployment keeps beside its counters.

use std::sync::Arc;

use crate::store::Shared;

/// What a deployment keeps beside its counters.
#[derive(Debug, Clone)]
pub struct Directory {
    shared: Arc<Shared>,
}

impl Directory {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}
