//! Responses of /reserve and /settle as text for people.

use std::collections::BTreeMap;

use serde::Deserialize;
use tollgate::Costs;

use super::response::{CheckReply, DEGRADED};

/// Response of /reserve.
#[derive(Debug, Deserialize)]
pub(super) struct ReserveReply {
    #[serde(flatten)]
    decision: CheckReply,
    /// None if the limits refuse.
    reservation: Option<String>,
    expires_at: Option<String>,
}

impl ReserveReply {
    pub(super) const fn is_reserved(&self) -> bool {
        self.reservation.is_some()
    }

    /// Returns the reservation alone in the first line, for scripts, then the decision.
    pub(super) fn lines(&self, costs: &Costs) -> Vec<String> {
        let decision = self.decision.line(costs);
        match (&self.reservation, &self.expires_at) {
            (Some(reservation), Some(expires_at)) => {
                vec![reservation.clone(), format!("{decision}, expires at {expires_at}")]
            }
            _ => vec![decision],
        }
    }
}

/// Amounts by unit.
type Amounts = BTreeMap<String, u64>;

/// Response of /settle.
#[derive(Debug, Deserialize)]
pub(super) struct SettleReply {
    repeated: bool,
    degraded: bool,
    charged: Amounts,
    refunded: Amounts,
    uncollected: Amounts,
}

impl SettleReply {
    /// Returns the settlement in one line.
    pub(super) fn line(&self) -> String {
        let settled = if self.repeated { "already settled" } else { "settled" };
        let mut parts = vec![format!("{settled}: charged {}", list(&self.charged))];
        for (name, amounts) in [("refunded", &self.refunded), ("uncollected", &self.uncollected)] {
            if amounts.values().any(|amount| *amount > 0) {
                parts.push(format!("{name} {}", list(amounts)));
            }
        }
        if self.degraded {
            parts.push(DEGRADED.to_owned());
        }
        parts.join("; ")
    }
}

fn list(amounts: &Amounts) -> String {
    let amounts = amounts.iter().map(|(unit, amount)| format!("{unit}={amount}"));
    amounts.collect::<Vec<_>>().join(" ")
}
