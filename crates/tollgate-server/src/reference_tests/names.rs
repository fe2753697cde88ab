//! Schemas of fields that the responses write as words or formatted text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tollgate::algorithm::CalendarUnit;
use tollgate::policy::{OnMissingFact, OnStoreLoss as StoreLoss, RuleMode};
use tollgate::{
    Algorithm as LimitKind, BreakerState, Distributed as Distribution, LimitField,
    Verdict as Outcome,
};

use crate::node::history::HistoryRange as Range;
use crate::wire::decision::verdict_name;

/// Defines types that stand for strings of a fixed set. `inline` writes the schema in place of a reference.
macro_rules! words {
    ($($name:ident, inline: $inline:literal, $values:expr;)*) => {$(
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                $inline
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": $values })
            }
        }
    )*};
}

/// The algorithms of limits with a window.
fn window_algorithms() -> Vec<&'static str> {
    let with_window = LimitKind::ALL.into_iter().filter(|kind| kind.accepts(LimitField::Window));
    with_window.map(LimitKind::as_str).collect()
}

fn verdicts() -> [&'static str; 3] {
    let deny = Outcome::Deny { retry_after: std::time::Duration::ZERO };
    [Outcome::Allow, deny, Outcome::Never].map(verdict_name)
}

words! {
    Algorithm, inline: false, [LimitKind::NAMES, &[LimitKind::Block.as_str()]].concat();
    RequestedAlgorithm, inline: true, LimitKind::NAMES;
    WindowAlgorithm, inline: true, window_algorithms();
    Align, inline: true, CalendarUnit::ALL.map(CalendarUnit::as_str);
    Mode, inline: false, [RuleMode::Enforce, RuleMode::Shadow].map(RuleMode::as_str);
    Verdict, inline: true, verdicts();
    Source, inline: true, ["store", "cache", "lease", "local"];
    Distributed, inline: true, [Distribution::On, Distribution::Shadow, Distribution::Off].map(Distribution::as_str);
    Missing, inline: true, [OnMissingFact::Share, OnMissingFact::Skip, OnMissingFact::Deny].map(OnMissingFact::as_str);
    OnStoreLoss, inline: true, [StoreLoss::Local, StoreLoss::Allow, StoreLoss::Deny].map(StoreLoss::as_str);
    NodeState, inline: true, ["Up", "Down"];
    StoreKind, inline: true, ["memory", "redis"];
    Breaker, inline: true, [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen].map(BreakerState::as_str);
    HistoryRange, inline: true, Range::ALL.map(Range::as_str);
    HistoryScope, inline: true, ["fleet", "node"];
    EventKind, inline: true, [
        "store_lost",
        "store_back",
        "node_joined",
        "node_left",
        "node_silent",
        "node_back",
        "policy_reloaded",
        "policy_rejected",
        "override_set",
        "override_removed",
        "client_reset",
    ];
    KeptIn, inline: true, ["redis", "data_dir", "memory"];
    Action, inline: true, ["override.set", "override.remove", "client.reset", "policy.reload"];
}

/// Defines types that stand for strings or numbers with constraints.
macro_rules! formats {
    ($($name:ident = $schema:tt;)*) => {$(
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

/// The longest window in milliseconds: 100 years of 365.25 days.
const MAX_WINDOW_MS: u64 = 3_155_760_000_000;
const MAX_INTEGER: u64 = crate::wire::scalar::MAX_INTEGER;

formats! {
    Time = { "type": "string", "format": "date-time" };
    Fact = { "type": "string", "minLength": 1, "maxLength": tollgate::MAX_FACT_LENGTH };
    LimitName = { "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" };
    Costs = {
        "type": "object",
        "maxProperties": tollgate::MAX_UNITS,
        "propertyNames": { "pattern": "^[A-Za-z0-9._-]{1,64}$" },
        "additionalProperties": { "type": "integer", "minimum": 0, "maximum": MAX_INTEGER }
    };
    Rate = { "type": "string", "pattern": "^(0|[0-9]+/[0-9]*(ms|s|min|h|d|w))$" };
    Count = { "type": "integer", "minimum": 0, "maximum": MAX_INTEGER };
    PositiveCount = { "type": "integer", "minimum": 1, "maximum": MAX_INTEGER };
    WindowMs = { "type": "integer", "minimum": 0, "maximum": MAX_WINDOW_MS };
    PositiveWindowMs = { "type": "integer", "minimum": 1, "maximum": MAX_WINDOW_MS };
    PermitText = {
        "type": "string",
        "pattern": "^[0-9a-f]{32}(@n[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._#-]{1,80}\\{[!-z|~]*\\})+$"
    };
    ReservationText = { "type": "string", "pattern": "^r(0|[1-9][0-9]{0,9})-[0-9a-f]{64}$" };
    Facts = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": tollgate::MAX_FACTS,
        "propertyNames": { "pattern": "^[!-~]{1,64}$" },
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": tollgate::MAX_FACT_LENGTH }
    };
    BatchItem = {};
}
