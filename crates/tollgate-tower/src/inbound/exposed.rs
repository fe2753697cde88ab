//! What the service receives in the extensions of an admitted request.

use http::Extensions;

use super::decision::RateLimitDecision;
use super::held_slots::RequestSlots;

/// The extensions that the layer adds to an admitted request. Boxed, because few requests have any.
pub(super) struct Exposed {
    decision: Option<RateLimitDecision>,
    slots: Option<RequestSlots>,
}

impl Exposed {
    pub(super) fn new(
        decision: Option<RateLimitDecision>,
        slots: Option<RequestSlots>,
    ) -> Option<Box<Self>> {
        let is_empty = decision.is_none() && slots.is_none();
        (!is_empty).then(|| Box::new(Self { decision, slots }))
    }

    pub(super) fn insert_into(self, extensions: &mut Extensions) {
        if let Some(decision) = self.decision {
            extensions.insert(decision);
        }
        if let Some(slots) = self.slots {
            extensions.insert(slots);
        }
    }
}
