//! placeholder
use crate::{Address, link::Patience};
use std::sync::Arc;
pub(crate) trait Listener: Send + Sync {
    fn live(&self);
    fn message(&self, payload: &[u8]);
    fn lost(&self);
}
pub(crate) struct Subscription;
impl Subscription {
    pub(crate) fn start(_: Address, _: Patience, _: String, _: Arc<dyn Listener>) -> Self {
        Self
    }
}
