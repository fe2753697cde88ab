//! Lines above the tables: service, store and policy, health, and current rates.

use ratatui::text::{Line, Span};

use super::super::format::{MISSING, count, micros, percent};
use super::super::health::{Severity, health};
use super::super::response::{Frame, Store};
use super::super::state::State;
use super::super::text::{cut, padded, visible};
use super::theme::Theme;

/// Maximum width of a received name, in columns.
const MAX_NAME_WIDTH: usize = 32;

/// Returns the line with the connection state, the service and the node.
pub(super) fn service(state: &State, is_paused: bool, theme: Theme) -> Line<'static> {
    let (status, severity) = match (is_paused, &state.lost, &state.frame) {
        (true, _, _) => ("paused", Severity::Warning),
        (false, Some(_), _) => ("reconnecting", Severity::Error),
        (false, None, None) => ("connecting", Severity::Warning),
        (false, None, Some(_)) => ("live", Severity::Ok),
    };
    let mut spans = vec![
        Span::styled("tollgate top  ", theme.strong()),
        Span::styled(status, theme.severity(severity)),
        Span::raw(format!("  {}", short(&state.server))),
    ];
    if let Some(frame) = &state.frame {
        let scope = match frame.scope.as_str() {
            "fleet" => "all nodes".to_owned(),
            "node" => "this node only".to_owned(),
            other => short(other),
        };
        spans.push(Span::raw(format!("  node {}  ", short(&frame.node))));
        spans.push(Span::styled(scope, theme.faint()));
    }
    Line::from(spans)
}

/// Returns the line with the store and the policy.
pub(super) fn store_and_policy(state: &State, theme: Theme) -> Line<'static> {
    let mut spans = Vec::new();
    if let Some(frame) = &state.frame {
        spans.push(Span::raw(describe_store(&frame.store)));
    }
    if let Some(policy) = &state.policy {
        let (version, rules) = (short(&policy.version), policy.rules_total);
        spans.push(Span::raw(format!("policy {version}")));
        spans.push(Span::styled(format!(" ({rules} rules)"), theme.faint()));
    }
    Line::from(spans)
}

fn describe_store(store: &Store) -> String {
    let mut line = short(&store.kind);
    let mut add = |text: &str| {
        line.push(' ');
        line.push_str(text);
    };
    store.address.iter().for_each(|address| add(&short(address)));
    store.server.iter().for_each(|server| add(&format!("({})", short(server))));
    store.breaker.iter().for_each(|breaker| add(&format!(" breaker {}", short(breaker))));
    match (store.keys, store.max_keys) {
        (Some(keys), Some(max)) => add(&format!(" {keys} of {max} keys")),
        (Some(keys), None) => add(&format!(" {keys} keys")),
        (None, _) => {}
    }
    line + "  "
}

fn short(text: &str) -> String {
    cut(&visible(text), MAX_NAME_WIDTH)
}

/// Returns the line with the most severe health message and the number of further messages.
pub(super) fn health_line(state: &State, width: usize, theme: Theme) -> Line<'static> {
    let messages = health(state);
    let more = match messages.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let (severity, first) = messages.into_iter().next().unwrap_or((Severity::Ok, String::new()));
    let room = width.saturating_sub(more.len());
    Line::from(vec![Span::styled(cut(&first, room), theme.severity(severity)), Span::raw(more)])
}

/// Returns two lines with the current rates: names and numbers.
pub(super) fn tiles(state: &State, width: usize, theme: Theme) -> [Line<'static>; 2] {
    let frame = state.frame.as_ref();
    let tiles = [
        ("allowed/s", frame.map(|frame| count(frame.now.allowed)), theme.allowed()),
        ("refused/s", frame.map(refused), theme.refused()),
        ("p50 / p99", frame.map(latencies), theme.strong()),
        ("degraded/s", frame.map(|frame| count(frame.now.degraded)), theme.strong()),
    ];
    let tile_width = width / tiles.len();
    let name =
        |(name, _, _): &(&str, _, _)| Span::styled(padded(name, tile_width, false), theme.faint());
    let names = tiles.iter().map(name).collect::<Vec<_>>();
    let numbers = tiles.iter().map(|(_, number, style)| {
        let number = number.as_deref().unwrap_or(MISSING);
        Span::styled(padded(number, tile_width, false), style.patch(theme.strong()))
    });
    [Line::from(names), Line::from(numbers.collect::<Vec<_>>())]
}

fn refused(frame: &Frame) -> String {
    let percentage = percent(frame.now.refused, frame.now.allowed + frame.now.refused);
    format!("{} ({percentage:.1} %)", count(frame.now.refused))
}

fn latencies(frame: &Frame) -> String {
    format!("{} / {}", micros(frame.now.p50_us), micros(frame.now.p99_us))
}
