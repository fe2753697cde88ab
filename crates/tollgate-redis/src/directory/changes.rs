//! Change events between nodes.

use tollgate::StoreError;

use super::Directory;
use crate::resp::Command;
use crate::subscription::Listener;

/// All rules, in the text of a reset.
const ALL_RULES: &str = "*";

/// A change that concerns other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A refund or reset has freed quota of a subject.
    QuotaFreed {
        /// The escaped subject.
        subject: String,
    },
    /// An override was stored, replaced or removed.
    Override {
        /// The escaped tenant and client.
        client: String,
    },
    /// The counters of a client were reset in the shared store. Other nodes reset what they count by themselves.
    ClientReset {
        /// The escaped tenant and client.
        client: String,
        /// The rules of the counters; all rules and inline limits if `None`. Names of rules, so no `,` and no `/`.
        rules: Option<Vec<String>>,
        /// The node that has reset the client, and its own counters.
        node: String,
    },
}

/// An event of [`Directory::watch`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// All changes from now on will be received. Earlier ones may have been missed.
    Subscribed,
    /// A change.
    Changed(Change),
    /// Changes may be missed until the next `Subscribed`.
    SubscriptionLost,
}

impl Change {
    fn parse(payload: &[u8]) -> Option<Self> {
        let (kind, rest) = payload.split_first()?;
        let text = std::str::from_utf8(rest).ok()?.to_owned();
        match kind {
            b's' => Some(Self::QuotaFreed { subject: text }),
            b'o' => Some(Self::Override { client: text }),
            b'r' => Self::parse_reset(&text),
            _ => None,
        }
    }

    /// Parses `RULES/CLIENT/NODE`. An escaped client contains no `/`, and the rules are `*` or names separated by `,`.
    fn parse_reset(text: &str) -> Option<Self> {
        let (rules, rest) = text.split_once('/')?;
        let (client, node) = rest.split_once('/')?;
        let names =
            || rules.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let rules = (rules != ALL_RULES).then(names);
        Some(Self::ClientReset { client: client.to_owned(), rules, node: node.to_owned() })
    }

    fn payload(&self) -> String {
        match self {
            Self::QuotaFreed { subject } => format!("s{subject}"),
            Self::Override { client } => format!("o{client}"),
            Self::ClientReset { client, rules, node } => {
                let rules = rules.as_ref().map_or(ALL_RULES.to_owned(), |rules| rules.join(","));
                format!("r{rules}/{client}/{node}")
            }
        }
    }
}

impl Directory {
    /// Publishes a change to all nodes. Refunds, resets and overrides publish theirs automatically.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn announce(&self, change: &Change) -> Result<(), StoreError> {
        let channel = self.keys.channel();
        let command = Command::new("PUBLISH").arg(&channel).arg(change.payload());
        self.request(&channel, command).await.map(|_| ())
    }

    /// Calls `watcher` for every event from now on, until the store is dropped. It must not block.
    pub fn watch(&self, watcher: impl Fn(Event) + Send + Sync + 'static) {
        self.events.add_and_start(std::sync::Arc::new(Watcher(watcher)));
    }
}

struct Watcher<F>(F);

impl<F: Fn(Event) + Send + Sync> Listener for Watcher<F> {
    fn subscribed(&self) {
        self.0(Event::Subscribed);
    }

    fn message(&self, payload: &[u8]) {
        if let Some(change) = Change::parse(payload) {
            self.0(Event::Changed(change));
        }
    }

    fn lost(&self) {
        self.0(Event::SubscriptionLost);
    }
}

#[cfg(test)]
mod tests {
    use super::Change;

    #[test]
    fn changes_are_parsed_from_their_payload() {
        let reset = |rules, client: &str, node: &str| Change::ClientReset {
            client: client.to_owned(),
            rules,
            node: node.to_owned(),
        };
        for change in [
            Change::QuotaFreed { subject: "acme:c1".to_owned() },
            Change::Override { client: "acme:c1".to_owned() },
            reset(None, "acme:c%2F1", "node-1"),
            reset(Some(Vec::new()), ":c,1", "host:8080/a"),
            reset(Some(vec!["api".to_owned(), "search.v2".to_owned()]), ":*", ""),
        ] {
            assert_eq!(Change::parse(change.payload().as_bytes()), Some(change));
        }
        for invalid in ["", "r", "r*", "r*/:c1", "x:c1"] {
            assert_eq!(Change::parse(invalid.as_bytes()), None, "{invalid:?}");
        }
    }
}
