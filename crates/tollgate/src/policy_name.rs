//! What a limit is called where those of several rules stand side by side.

use std::fmt;

use crate::plan::Mode;
use crate::status::Status;

/// The enforced among the statuses of a decision: what callers are told of.
pub(crate) fn enforced<'s, 'a>(statuses: &'s [Status<'a>]) -> impl Iterator<Item = &'s Status<'a>> {
    statuses.iter().filter(|status| status.mode() == Mode::Enforce)
}

/// The limit's own name, where no other of the decision has it: `60s`. Else `rule/60s`; and where one limit
/// is taken for several subjects `rule/60s/2`, by place.
///
/// Neither rules nor limits have a `/` in their names, so these three never meet. None of their characters
/// needs escaping, in JSON or in a structured field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyName<'s, 'a> {
    statuses: &'s [Status<'a>],
    status: &'s Status<'a>,
}

impl<'s, 'a> PolicyName<'s, 'a> {
    /// The name of one of these statuses' limit among them.
    pub(crate) const fn among(statuses: &'s [Status<'a>], status: &'s Status<'a>) -> Self {
        Self { statuses, status }
    }

    /// The enforced that come before it.
    fn before(&self) -> impl Iterator<Item = &'s Status<'a>> {
        let it = self.status;
        enforced(self.statuses).take_while(move |other| !std::ptr::eq(*other, it))
    }
}

impl fmt::Display for PolicyName<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.status.limit();
        let (rule, name) = (limit.rule(), limit.name());
        let is_namesake = |other: &&Status<'_>| other.limit().name() == name;
        if enforced(self.statuses).filter(is_namesake).nth(1).is_none() {
            return f.write_str(name);
        }
        let is_same = |other: &&Status<'_>| is_namesake(other) && other.limit().rule() == rule;
        match self.before().filter(is_same).count() {
            0 => write!(f, "{rule}/{name}"),
            earlier => write!(f, "{rule}/{name}/{}", earlier + 1),
        }
    }
}
