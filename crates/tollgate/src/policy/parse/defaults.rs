//! Parses `defaults` and builds the default rule.

use crate::algorithm::Algorithm;
use crate::limit::{DEFAULT_RULE, LeaseSize, Limit};
use crate::plan::{Distributed, Distribution, OnStoreLoss};
use crate::policy::error::FieldErrors;
use crate::policy::fact_name::FactName;
use crate::policy::node_ref::{Fields, NodeRef};
use crate::policy::rule::{OnMissingFact, Rule, RuleMode, Settings};

use super::limit::{self, Inherited};
use super::rule;

/// The fields of `defaults`.
pub(super) const DEFAULTS: &[&str] =
    &["limit", "algorithm", "on_store_loss", "missing", "per", "distributed", "lease"];

const ON_STORE_LOSS: &[(&str, OnStoreLoss)] = &[
    (OnStoreLoss::Local.as_str(), OnStoreLoss::Local),
    (OnStoreLoss::Allow.as_str(), OnStoreLoss::Allow),
    (OnStoreLoss::Deny.as_str(), OnStoreLoss::Deny),
];
pub(super) const MISSING: &[(&str, OnMissingFact)] = &[
    (OnMissingFact::Share.as_str(), OnMissingFact::Share),
    (OnMissingFact::Skip.as_str(), OnMissingFact::Skip),
    (OnMissingFact::Deny.as_str(), OnMissingFact::Deny),
];
const DISTRIBUTED: &[(&str, Distributed)] = &[
    (Distributed::On.as_str(), Distributed::On),
    (Distributed::Shadow.as_str(), Distributed::Shadow),
    (Distributed::Off.as_str(), Distributed::Off),
];

/// Parses `distributed` and `on_store_loss`; fields that are not set keep the inherited value.
pub(super) fn distribution(
    fields: &Fields<'_>,
    inherited: Distribution,
    errors: &mut FieldErrors,
) -> Distribution {
    let distributed = fields.parse("distributed", errors, |entry| entry.word(DISTRIBUTED));
    let on_store_loss = fields.parse("on_store_loss", errors, |entry| entry.word(ON_STORE_LOSS));
    Distribution {
        distributed: distributed.unwrap_or(inherited.distributed),
        on_store_loss: on_store_loss.unwrap_or(inherited.on_store_loss),
    }
}

/// The values that rules inherit.
pub(super) struct Defaults {
    pub(super) algorithm: Algorithm,
    pub(super) lease: LeaseSize,
    pub(super) settings: Settings,
    pub(super) per: Vec<FactName>,
    /// The default limit if the file sets one; `Some(None)` is `limit: unlimited`.
    limit: Option<Option<Limit>>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::SlidingWindow,
            lease: LeaseSize::Off,
            settings: Settings::default(),
            per: vec![FactName::new("client")],
            limit: None,
        }
    }
}

impl Defaults {
    /// Parses `defaults`. Invalid fields are recorded in `errors` and keep their built-in values.
    pub(super) fn parse(map: NodeRef<'_>, errors: &mut FieldErrors) -> Self {
        let builtin = Self::default();
        let Some(fields) = map.known_fields(DEFAULTS, errors) else { return builtin };
        let algorithm = fields.parse("algorithm", errors, limit::rate_algorithm);
        let algorithm = algorithm.unwrap_or(builtin.algorithm);
        let lease = fields.parse("lease", errors, limit::lease).unwrap_or(builtin.lease);
        let inherited = Inherited { algorithm, lease };
        let missing = fields.parse("missing", errors, |entry| entry.word(MISSING));
        let settings = Settings {
            mode: RuleMode::Enforce,
            distribution: distribution(&fields, builtin.settings.distribution, errors),
            missing: missing.unwrap_or_default(),
        };
        let per = fields.parse("per", errors, rule::per).unwrap_or(builtin.per);
        let limit = fields.get("limit").and_then(|entry| match entry.text() {
            Ok("unlimited") => Some(None),
            _ => limit::parse(entry, inherited, errors).map(Some),
        });
        Self { algorithm, lease, settings, per, limit }
    }

    /// Builds the default rule. `limit` applies if the file does not set one; `index` is the number of rules.
    pub(super) fn rule(self, limit: Limit, index: usize) -> Rule {
        // `in_rule` cannot fail, because the rule name is valid.
        let in_default = |limit: Limit| limit.clone().in_rule(DEFAULT_RULE).unwrap_or(limit);
        let limit = self.limit.unwrap_or_else(|| Some(limit.with_lease(self.lease)));
        let limit = limit.map(in_default);
        let mut settings = self.settings;
        if limit.is_none() {
            settings.missing = OnMissingFact::Share;
        }
        Rule {
            name: DEFAULT_RULE.into(),
            index,
            conditions: Vec::new(),
            exclusions: Vec::new(),
            per: self.per,
            is_unlimited: limit.is_none(),
            limits: limit.into_iter().collect(),
            next: Vec::new(),
            missing_block: rule::missing_block(settings.missing, DEFAULT_RULE),
            settings,
            cost: 1,
            continues: false,
        }
    }
}
