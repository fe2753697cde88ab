//! Unique names of the limits in one decision, for headers and refusal bodies.

use std::fmt;

use crate::decision::Status;
use crate::plan::Mode;

/// Returns the enforced statuses, which are the ones reported to clients.
pub(crate) fn enforced<'s, 'a>(statuses: &'s [Status<'a>]) -> impl Iterator<Item = &'s Status<'a>> {
    statuses.iter().filter(|status| status.mode() == Mode::Enforce)
}

/// Name of a limit that is unique in its decision: `60s` if no other limit has that name, otherwise
/// `rule/60s`; if one limit is taken for several subjects, `rule/60s/2` for the second, and so on.
///
/// Names of rules and limits contain no `/`, so the three forms never collide. No character needs escaping in
/// JSON or in a structured field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyName<'s, 'a> {
    statuses: &'s [Status<'a>],
    status: &'s Status<'a>,
}

impl<'s, 'a> PolicyName<'s, 'a> {
    /// Creates the name of `status`'s limit, which must be one of `statuses`.
    pub(crate) const fn new(statuses: &'s [Status<'a>], status: &'s Status<'a>) -> Self {
        Self { statuses, status }
    }

    /// Returns the enforced statuses before this one.
    fn before(&self) -> impl Iterator<Item = &'s Status<'a>> {
        let status = self.status;
        enforced(self.statuses).take_while(move |earlier| !std::ptr::eq(*earlier, status))
    }
}

impl fmt::Display for PolicyName<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.status.limit();
        let (rule, name) = (limit.rule(), limit.name());
        let has_same_name = |status: &&Status<'_>| status.limit().name() == name;
        if enforced(self.statuses).filter(has_same_name).nth(1).is_none() {
            return f.write_str(name);
        }
        let is_same = |status: &&Status<'_>| has_same_name(status) && status.limit().rule() == rule;
        match self.before().filter(is_same).count() {
            0 => write!(f, "{rule}/{name}"),
            earlier => write!(f, "{rule}/{name}/{}", earlier + 1),
        }
    }
}
