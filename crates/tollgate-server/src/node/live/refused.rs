//! JSON of a refused key.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Overrides, Subject};

use super::frame::Thousandths;
use crate::node::overrides::{CLIENT, TENANT};
use crate::node::report::RefusedKey;

/// A refused key, its current rate, and whether an override of its client is active.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    key: String,
    tenant: String,
    rule: String,
    limit: String,
    limit_text: Option<String>,
    count: u64,
    last_at: u64,
    facts: Option<BTreeMap<String, String>>,
    /// Refusals per second.
    rate: Thousandths,
    overridden: bool,
}

impl Refused {
    pub(super) fn new(refused: RefusedKey, policy: &Policy, overrides: &Overrides) -> Self {
        let fact = |name: &str| refused.facts.as_ref().and_then(|facts| facts.get(name));
        let overridden = fact(CLIENT).is_some_and(|client| {
            let tenant = fact(TENANT).map_or(policy.tenant(), String::as_str);
            !overrides.get(&Subject::in_tenant(tenant, [client])).is_empty()
        });
        Self {
            limit_text: refused.limit_text(policy),
            key: refused.key,
            tenant: refused.tenant,
            rule: refused.rule,
            limit: refused.limit,
            count: refused.count,
            last_at: refused.last_at,
            facts: refused.facts,
            rate: Thousandths(refused.rate_milli),
            overridden,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::{Override, OverrideLimit};

    use super::*;

    #[test]
    fn refused_key_of_an_overridden_client_is_marked() {
        let limit = OverrideLimit::new(20, Duration::from_secs(60));
        let override_ = Override::new(vec![limit]).expect("an override");
        let policy = Policy::builtin();
        let client = Subject::in_tenant("", ["c1"]);
        let overrides = Overrides::default().with(&client, override_);
        let refused = |facts: &[(&str, &str)]| {
            let facts = facts.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let refused = RefusedKey {
                key: "c1".to_owned(),
                tenant: String::new(),
                rule: "search".to_owned(),
                limit: "60s".to_owned(),
                limit_text: Some("10/min".to_owned()),
                count: 1,
                last_at: 1,
                facts: Some(facts.collect()),
                rate_milli: 1500,
            };
            serde_json::to_value(Refused::new(refused, &policy, &overrides)).expect("JSON")
        };
        let shown = refused(&[("client", "c1")]);
        assert_eq!((&shown["overridden"], &shown["rate"]), (&true.into(), &1.5.into()));
        assert_eq!(shown["limit_text"], "10/min");
        assert_eq!(refused(&[("client", "c2")])["overridden"], false);
        assert_eq!(refused(&[("ip", "c1")])["overridden"], false);
        assert_eq!(refused(&[("client", "c1"), ("tenant", "t")])["overridden"], false);
    }
}
