//! Admin changes as events.

use tollgate::{Override, RateText, Unit};

use super::change::{Action, Change};
use crate::events::EventKind;

/// Returns the event of a change of an override from `old` to `new`, or of another change. Clients are named as in the
/// audit log. A reload has an event of its own on every node.
pub(super) fn change_event(
    change: &Change,
    old: Option<&Override>,
    new: Option<&Override>,
) -> Option<(EventKind, String)> {
    let client = change.client.as_deref().unwrap_or_default();
    let client = match change.tenant.as_deref() {
        Some(tenant) => format!("client {client} of tenant {tenant}"),
        None => format!("client {client}"),
    };
    let (kind, what) = if change.is(Action::SetOverride) {
        (EventKind::OverrideSet, new.map(limits).unwrap_or_default())
    } else if change.is(Action::RemoveOverride) {
        (EventKind::OverrideRemoved, old.map(in_rule).unwrap_or_default())
    } else if change.is(Action::Reset) {
        (EventKind::ClientReset, String::new())
    } else {
        return None;
    };
    let author = if change.author.is_empty() { &change.peer } else { &change.author };
    let reason = match &*change.reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    Some((kind, in_one_line(&format!("{client}{what}, by {author}{reason}"))))
}

/// Escapes control characters: an event is one line, so a line break in a client id would hide the rest.
fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

/// Returns the limits of an override and the rule that it applies to, to follow the client.
fn limits(new: &Override) -> String {
    let limits = new.limits().iter().map(|limit| {
        let unit = limit.unit.as_ref().map_or("requests", Unit::as_str);
        RateText { count: limit.count, window: limit.window, unit }.to_string()
    });
    let limits = limits.collect::<Vec<_>>().join(", ");
    format!(": {limits}{}", in_rule(new))
}

fn in_rule(stored: &Override) -> String {
    stored.rule.as_deref().map(|rule| format!(" in rule {rule}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use tollgate::OverrideLimit;

    use super::*;
    use crate::node::overrides::{Author, Client};

    fn event(
        action: Action,
        reason: &str,
        (old, new): (Option<&Override>, Option<&Override>),
    ) -> Option<(EventKind, String)> {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let author = Author { name: "alice".to_owned(), token: None, peer };
        let client = Client::new("c1".to_owned(), "acme".to_owned()).expect("a client");
        change_event(&Change::new(action, author, "n1", reason.to_owned()).of(&client), old, new)
    }

    #[test]
    fn events_name_client_author_and_reason() {
        let limit = OverrideLimit::new(20, Duration::from_secs(60));
        let new = Override::new(vec![limit]).expect("an override");
        let (kind, detail) =
            event(Action::SetOverride, "incident 7", (None, Some(&new))).expect("an event");
        assert_eq!(kind, EventKind::OverrideSet);
        assert_eq!(detail, "client c1 of tenant acme: 20/min, by alice: incident 7");
        let (kind, detail) = event(Action::RemoveOverride, "", (Some(&new.for_rule("api")), None))
            .expect("an event");
        assert_eq!(kind, EventKind::OverrideRemoved);
        assert_eq!(detail, "client c1 of tenant acme in rule api, by alice");
        let (kind, detail) = event(Action::Reset, "a\nb", (None, None)).expect("an event");
        assert_eq!(kind, EventKind::ClientReset);
        assert_eq!(detail, r"client c1 of tenant acme, by alice: a\nb");
        assert_eq!(event(Action::Reload, "", (None, None)), None);
    }
}
