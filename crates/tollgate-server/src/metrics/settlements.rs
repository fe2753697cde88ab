//! Amounts of settled reservations, by unit.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tollgate::reservation::{Settled, UnitOutcome};

use super::text::Exposition;

/// Maximum number of units with series of their own. Requests can have limits in any unit.
const MAX_UNITS: usize = 32;
/// The label of further units. No unit has this name.
const FURTHER_UNITS: &str = "*";
/// The unit that has series before the first settlement.
const REQUESTS: &str = "requests";

/// Totals of one unit.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    charged: u64,
    refunded: u64,
    uncollected: u64,
}

impl Amounts {
    fn add(&mut self, settled: &UnitOutcome) {
        self.charged = self.charged.saturating_add(settled.charged);
        self.refunded = self.refunded.saturating_add(settled.refunded);
        self.uncollected = self.uncollected.saturating_add(settled.uncollected);
    }
}

/// Settlements of this node since the start.
#[derive(Debug)]
pub(crate) struct Settlements(Mutex<Totals>);

#[derive(Debug)]
struct Totals {
    settlements: u64,
    by_unit: BTreeMap<String, Amounts>,
}

impl Default for Settlements {
    fn default() -> Self {
        let by_unit = BTreeMap::from([(REQUESTS.to_owned(), Amounts::default())]);
        Self(Mutex::new(Totals { settlements: 0, by_unit }))
    }
}

impl Settlements {
    /// Counts a settlement, unless it was settled before.
    pub(crate) fn count(&self, settled: &Settled) {
        if settled.is_repeated {
            return;
        }
        let mut totals = self.0.lock();
        totals.settlements = totals.settlements.saturating_add(1);
        for unit in &settled.units {
            let name = unit.unit.as_str();
            let has_space = totals.by_unit.len() < MAX_UNITS || totals.by_unit.contains_key(name);
            let name = if has_space { name } else { FURTHER_UNITS };
            totals.by_unit.entry(name.to_owned()).or_default().add(unit);
        }
    }

    pub(super) fn render(&self, out: &mut Exposition) {
        let totals = self.0.lock();
        out.counter("tollgate_settlements_total", "Reservations that were settled on this node.")
            .sample(&[], totals.settlements);
        let help = "Amounts of settled reservations by unit: the final charge, what was returned of the estimate, and what \
                    no limit could take.";
        let mut metric = out.counter("tollgate_settled_amount_total", help);
        for (unit, amounts) in &totals.by_unit {
            metric
                .sample(&[("unit", unit), ("part", "charged")], amounts.charged)
                .sample(&[("unit", unit), ("part", "refunded")], amounts.refunded)
                .sample(&[("unit", unit), ("part", "uncollected")], amounts.uncollected);
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Unit;

    use super::*;

    fn settled(unit: &str, is_repeated: bool) -> Settled {
        let unit = Unit::new(unit).expect("a unit");
        let units = vec![UnitOutcome { unit, charged: 3, refunded: 2, uncollected: 1 }];
        let mut settled = Settled::new(units, Vec::new());
        settled.is_repeated = is_repeated;
        settled
    }

    #[test]
    fn the_number_of_units_is_bounded() {
        let settlements = Settlements::default();
        for number in 0..2 * MAX_UNITS {
            settlements.count(&settled(&format!("unit{number}"), false));
            settlements.count(&settled("unit0", true));
        }
        let mut out = Exposition::default();
        settlements.render(&mut out);
        let text = out.into_text();
        let series = |line: &str| text.lines().filter(|other| other.starts_with(line)).count();
        assert_eq!(series("tollgate_settled_amount_total{"), 3 * (MAX_UNITS + 1));
        for line in [
            "tollgate_settlements_total 64",
            "tollgate_settled_amount_total{unit=\"unit0\",part=\"charged\"} 3",
            "tollgate_settled_amount_total{unit=\"*\",part=\"uncollected\"} 33",
        ] {
            assert_eq!(series(line), 1, "{line} in {text}");
        }
    }
}
