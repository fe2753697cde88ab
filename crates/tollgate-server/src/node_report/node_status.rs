//! How a node fares now, as it tells others.

use serde::{Deserialize, Serialize};

use super::refused_keys::RefusedKey;
use crate::api::read::warning;
use crate::app::App;

/// The longest warning that is told, in characters.
const LONGEST: usize = 500;

/// How a node fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeStatus {
    pub(crate) version: String,
    pub(crate) policy: String,
    /// Whether the store is asked; none where it is in the process.
    pub(crate) breaker: Option<String>,
    pub(crate) warning: Option<String>,
    /// The keys that it refused most of late.
    #[serde(default)]
    pub(crate) refused: Vec<RefusedKey>,
}

impl NodeStatus {
    /// How this node fares.
    pub(crate) fn of(app: &App) -> Self {
        let breaker = app.backend().fallback().map(|store| store.breaker().as_str().to_owned());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: app.limiter().active_policy().policy().version().to_owned(),
            breaker,
            warning: warning(app).map(|text| text.chars().take(LONGEST).collect()),
            refused: app.refused().top(),
        }
    }
}
