//! The result of `tollgate override set`: each limit before and after.

use serde::Deserialize;

use super::SetArgs;

/// The response to a new override.
#[derive(Debug, Deserialize)]
pub(super) struct SetReply {
    client: String,
    tenant: String,
    applies_to: Vec<String>,
    expires_at: Option<String>,
    problem: Option<String>,
    replaces: Vec<Replaced>,
    keeps: Vec<Kept>,
}

#[derive(Debug, Deserialize)]
struct Replaced {
    rule: String,
    limit_name: String,
    before: Option<String>,
    after: Option<String>,
    burst_before: Option<u64>,
    burst_after: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Kept {
    rule: String,
    limit_name: String,
    limit: String,
    burst: Option<u64>,
}

impl SetReply {
    /// Returns one paragraph per rule: a line that says what was set, then one line per limit.
    pub(super) fn text(&self, args: &SetArgs) -> String {
        let verb = if args.dry_run { "would set override" } else { "override set" };
        // Free text may contain terminal escapes, so it is quoted.
        let client = match self.tenant.as_str() {
            "" => format!("{:?}", self.client),
            tenant => format!("{:?} of tenant {tenant:?}", self.client),
        };
        let until = self.expires_at.as_deref().unwrap_or("removed");
        let mut text = String::new();
        for rule in &self.applies_to {
            text.push_str(&format!("{verb} for {client} in rule {rule} until {until}\n"));
            let lines = self.lines(rule);
            let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
            for (name, change) in lines {
                text.push_str(&format!("  {name:width$}  {change}\n"));
            }
            if args.fresh {
                text.push_str(if args.dry_run {
                    "  would reset the client's counters of this rule\n"
                } else {
                    "  the client's counters of this rule are reset\n"
                });
            }
        }
        if let Some(problem) = &self.problem {
            text.push_str(&format!("  warning: {problem:?}\n"));
        }
        text
    }

    /// Returns the limits of a rule: the name, and what happens to it.
    fn lines(&self, rule: &str) -> Vec<(&str, String)> {
        let replaced = self.replaces.iter().filter(|change| change.rule == rule);
        let replaced = replaced.map(|change| (change.limit_name.as_str(), change.text()));
        let kept = self.keeps.iter().filter(|kept| kept.rule == rule);
        let kept = kept.map(|kept| {
            (kept.limit_name.as_str(), format!("{} (kept)", with_burst(&kept.limit, kept.burst)))
        });
        replaced.chain(kept).collect()
    }
}

impl Replaced {
    fn text(&self) -> String {
        let before = self.before.as_deref().map(|text| with_burst(text, self.burst_before));
        let after = self.after.as_deref().map(|text| with_burst(text, self.burst_after));
        match (before, after) {
            (Some(before), Some(after)) if before == after => format!("{after} (unchanged)"),
            (Some(before), Some(after)) => format!("{before} → {after}"),
            (Some(before), None) => format!("{before} → removed"),
            (None, after) => format!("none → {}", after.unwrap_or_default()),
        }
    }
}

fn with_burst(limit: &str, burst: Option<u64>) -> String {
    burst.map_or_else(|| limit.to_owned(), |burst| format!("{limit} (burst {burst})"))
}
