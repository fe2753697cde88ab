//! Groups the paths of a log into routes.

use std::collections::HashMap;

/// Maximum number of routes with a rule of their own.
const MAX_ROUTES: usize = 15;
/// Maximum number of groups while reading; further paths belong to no group.
const MAX_GROUPS: usize = 20_000;
/// A route with more children than this is one group.
const MAX_CHILDREN: usize = 12;
/// A route needs at least one request in this many.
const MIN_SHARE: u64 = 100;

/// Placeholder for a segment that identifies an object.
const ID: &str = "{id}";

/// Requests by the first two segments of their paths.
#[derive(Debug, Default)]
pub(super) struct Routes {
    groups: HashMap<(String, Option<String>), u64>,
    requests: u64,
}

/// A rule for some paths; without a pattern, for all that are left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) pattern: Option<String>,
    pub(super) requests: u64,
}

impl Routes {
    pub(super) fn add(&mut self, path: &[u8]) {
        self.requests += 1;
        let Some(path) = std::str::from_utf8(path).ok().and_then(|path| path.strip_prefix('/'))
        else {
            return;
        };
        let mut segments = path.split('/');
        let first = group(segments.next().unwrap_or_default());
        let second = segments.next().filter(|segment| !segment.is_empty()).map(group);
        if first == ID {
            return;
        }
        let is_full = self.groups.len() >= MAX_GROUPS;
        let key = (first.to_owned(), second.map(str::to_owned));
        match self.groups.get_mut(&key) {
            Some(count) => *count += 1,
            None if is_full => {}
            None => {
                self.groups.insert(key, 1);
            }
        }
    }

    /// Returns the routes in the order of their rules: the more specific one first, the rest last.
    pub(super) fn into_rules(self) -> Vec<Route> {
        let mut by_first: HashMap<&str, Vec<(Option<&str>, u64)>> = HashMap::new();
        for ((first, second), count) in &self.groups {
            by_first.entry(first).or_default().push((second.as_deref(), *count));
        }
        let is_large = |count: u64| count * MIN_SHARE >= self.requests;
        let mut routes = Vec::new();
        for (first, children) in by_first {
            let total: u64 = children.iter().map(|(_, count)| count).sum();
            if !is_large(total) {
                continue;
            }
            let mut rest = total;
            if children.len() <= MAX_CHILDREN {
                let mut ids = 0;
                for (second, count) in &children {
                    match second.filter(|_| is_large(*count) && *count < total) {
                        Some(ID) => ids = *count,
                        Some(second) => {
                            routes.push(Route::new(&[first, second], *count));
                            rest -= count;
                        }
                        None => {}
                    }
                }
                if ids > 0 {
                    // The pattern with a placeholder also matches the segments without a route.
                    let alone = children.iter().find(|(second, _)| second.is_none());
                    let alone = alone.map_or(0, |(_, count)| *count);
                    routes.push(Route::new(&[first, ID], rest - alone));
                    rest = alone;
                }
            }
            if is_large(rest) {
                routes.push(Route::new(&[first], rest));
            }
        }
        routes.sort_by(|one, other| {
            other.requests.cmp(&one.requests).then_with(|| one.name.cmp(&other.name))
        });
        routes.truncate(MAX_ROUTES);
        // A route of two segments must come before the route that contains it, and a literal one before a placeholder.
        routes.sort_by_key(|route| (std::cmp::Reverse(route.depth()), route.has_placeholder()));
        let covered: u64 = routes.iter().map(|route| route.requests).sum();
        routes.push(Route {
            name: "everything-else".to_owned(),
            pattern: None,
            requests: self.requests - covered,
        });
        unique_names(&mut routes);
        routes
    }
}

impl Route {
    fn new(segments: &[&str], requests: u64) -> Self {
        let words: Vec<&str> =
            segments.iter().map(|segment| segment.trim_matches(['{', '}'])).collect();
        let joined = words.join("-");
        let name: String = if joined.trim_matches('-').is_empty() {
            "root".to_owned()
        } else {
            joined.chars().take(56).collect()
        };
        let pattern = match segments {
            [""] => "/".to_owned(),
            _ => format!("/{}/**", segments.join("/")),
        };
        Self { name, pattern: Some(pattern), requests }
    }

    fn has_placeholder(&self) -> bool {
        self.pattern.as_deref().is_some_and(|pattern| pattern.contains(ID))
    }

    fn depth(&self) -> usize {
        self.pattern.as_deref().map_or(0, |pattern| pattern.matches('/').count())
    }
}

/// Returns a segment, or a placeholder if it looks like the identifier of an object or needs escaping in a pattern.
fn group(segment: &str) -> &str {
    let is_plain =
        segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    let is_version = segment.len() <= 3 && segment.starts_with('v');
    if is_plain && segment.len() <= 32 && (digits == 0 || is_version) { segment } else { ID }
}

/// Gives rules with the same name a number.
fn unique_names(routes: &mut [Route]) {
    let mut used: HashMap<String, u32> = HashMap::new();
    for route in routes {
        if ["default", "inline"].contains(&route.name.as_str()) {
            route.name.push_str("-route");
        }
        let count = used.entry(route.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            route.name = format!("{}-{count}", route.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_grouped_and_specific_routes_come_first() {
        let mut routes = Routes::default();
        for number in 0..1000 {
            routes.add(format!("/api/orders/{number}").as_bytes());
            routes.add(format!("/users/{number}/profile").as_bytes());
            routes.add(b"/api/health");
            routes.add(b"/");
            routes.add(format!("/{number}.html").as_bytes());
            routes.add(b"/%3Cscript%3E/\"x");
        }
        let rules = routes.into_rules();
        let patterns: Vec<(&str, Option<&str>)> =
            rules.iter().map(|route| (route.name.as_str(), route.pattern.as_deref())).collect();
        assert_eq!(
            patterns,
            [
                ("api-health", Some("/api/health/**")),
                ("api-orders", Some("/api/orders/**")),
                ("users", Some("/users/**")),
                ("root", Some("/")),
                ("everything-else", None),
            ]
        );
        assert_eq!(rules.iter().map(|route| route.requests).sum::<u64>(), 6000);
    }

    #[test]
    fn literal_routes_come_before_placeholders_of_the_same_depth() {
        let mut routes = Routes::default();
        for number in 0..1000 {
            routes.add(format!("/users/{number}").as_bytes());
            routes.add(b"/users/");
            if number < 500 {
                routes.add(b"/users/me");
            }
            if number < 5 {
                routes.add(b"/users/rare");
            }
        }
        let rules = routes.into_rules();
        let rules: Vec<(Option<&str>, u64)> =
            rules.iter().map(|route| (route.pattern.as_deref(), route.requests)).collect();
        assert_eq!(
            rules,
            [
                (Some("/users/me/**"), 500),
                (Some("/users/{id}/**"), 1005),
                (Some("/users/**"), 1000),
                (None, 0),
            ]
        );
    }
}
