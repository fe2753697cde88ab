//! The `defaults` of a file, and its default rule.

use crate::distribution::{Distributed, Distribution, OnStoreLoss};
use crate::limit::identity::Algorithm;
use crate::limit::{DEFAULT_RULE, Limit};
use crate::policy::cursor::{Cursor, Fields};
use crate::policy::error::Flaw;
use crate::policy::fact_name::FactName;
use crate::policy::rule::{OnMissingFact, Rule, RuleMode, Settings};

use super::{limit, rule};

/// The fields of `defaults`.
pub(super) const DEFAULTS: &[&str] =
    &["limit", "algorithm", "on_store_loss", "missing", "per", "distributed"];

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

/// How nodes share limits: as it is written, else as it was before.
pub(super) fn distribution(
    fields: &Fields<'_>,
    inherited: Distribution,
) -> Result<Distribution, Flaw> {
    let distributed = fields.read("distributed", |entry| entry.word(DISTRIBUTED))?;
    let on_store_loss = fields.read("on_store_loss", |entry| entry.word(ON_STORE_LOSS))?;
    Ok(Distribution {
        distributed: distributed.unwrap_or(inherited.distributed),
        on_store_loss: on_store_loss.unwrap_or(inherited.on_store_loss),
    })
}

/// What rules inherit.
pub(super) struct Defaults {
    pub(super) algorithm: Algorithm,
    pub(super) settings: Settings,
    pub(super) per: Vec<FactName>,
    /// The file's own default limit: none in it is unlimited.
    limit: Option<Option<Limit>>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::SlidingWindow,
            settings: Settings::default(),
            per: vec![FactName::new("client")],
            limit: None,
        }
    }
}

impl Defaults {
    pub(super) fn read(map: Cursor<'_>) -> Result<Self, Flaw> {
        let (fields, builtin) = (map.fields(DEFAULTS)?, Self::default());
        let word = |entry: Cursor<'_>| entry.word(limit::ALGORITHMS);
        let algorithm = fields.read("algorithm", word)?.unwrap_or(builtin.algorithm);
        let settings = Settings {
            mode: RuleMode::Enforce,
            distribution: distribution(&fields, builtin.settings.distribution)?,
            missing: fields.read("missing", |entry| entry.word(MISSING))?.unwrap_or_default(),
        };
        let per = fields.read("per", rule::per)?.unwrap_or(builtin.per);
        let limit = fields.read("limit", |entry| match entry.text() {
            Ok("unlimited") => Ok(None),
            _ => limit::read(entry, algorithm).map(Some),
        })?;
        Ok(Self { algorithm, settings, per, limit })
    }

    /// The default rule, behind so many others.
    pub(super) fn rule(self, limit: Limit, index: usize) -> Rule {
        // The name is a valid one, so the limit moves; if it did not, it would still be the limit.
        let moved = |limit: Limit| limit.clone().in_rule(DEFAULT_RULE).unwrap_or(limit);
        let limit = self.limit.unwrap_or(Some(limit)).map(moved);
        let mut settings = self.settings;
        if limit.is_none() {
            settings.missing = OnMissingFact::Share;
        }
        Rule {
            name: DEFAULT_RULE.into(),
            index,
            conditions: Vec::new(),
            per: self.per,
            is_unlimited: limit.is_none(),
            limits: limit.into_iter().collect(),
            next: Vec::new(),
            refusal: rule::refusal(settings.missing, DEFAULT_RULE),
            settings,
            cost: 1,
            continues: false,
        }
    }
}
