//! What is above the tables: whom we look at, how it is, and the figures of now.

use ratatui::text::{Line, Span};

use super::super::figures::{NOTHING, count, micros, percent};
use super::super::health::{Worry, health};
use super::super::response::{Frame, Store};
use super::super::state::State;
use super::super::text::{cut, padded, visible};
use super::look::Look;

/// The widest that a name of others may be.
const WIDEST: usize = 32;

/// Who is looked at, and whether it is heard.
pub(super) fn who(state: &State, is_paused: bool, look: Look) -> Line<'static> {
    let (status, worry) = match (is_paused, &state.lost, &state.frame) {
        (true, _, _) => ("paused", Worry::Doubtful),
        (false, Some(_), _) => ("reconnecting", Worry::Bad),
        (false, None, None) => ("connecting", Worry::Doubtful),
        (false, None, Some(_)) => ("live", Worry::None),
    };
    let mut spans = vec![
        Span::styled("tollgate top  ", look.strong()),
        Span::styled(status, look.worry(worry)),
        Span::raw(format!("  {}", short(&state.server))),
    ];
    if let Some(frame) = &state.frame {
        let scope = match frame.scope.as_str() {
            "fleet" => "whole fleet".to_owned(),
            "node" => "this node alone".to_owned(),
            other => short(other),
        };
        spans.push(Span::raw(format!("  node {}  ", short(&frame.node))));
        spans.push(Span::styled(scope, look.faint()));
    }
    Line::from(spans)
}

/// What it decides by.
pub(super) fn what(state: &State, look: Look) -> Line<'static> {
    let mut spans = Vec::new();
    if let Some(frame) = &state.frame {
        spans.push(Span::raw(store(&frame.store)));
    }
    if let Some(policy) = &state.policy {
        let (version, rules) = (short(&policy.version), policy.rules_total);
        spans.push(Span::raw(format!("policy {version}")));
        spans.push(Span::styled(format!(" ({rules} rules)"), look.faint()));
    }
    Line::from(spans)
}

fn store(store: &Store) -> String {
    let mut told = short(&store.kind);
    let mut add = |text: &str| {
        told.push(' ');
        told.push_str(text);
    };
    store.address.iter().for_each(|address| add(&short(address)));
    store.server.iter().for_each(|server| add(&format!("({})", short(server))));
    store.breaker.iter().for_each(|breaker| add(&format!(" breaker {}", short(breaker))));
    match (store.keys, store.max_keys) {
        (Some(keys), Some(most)) => add(&format!(" {keys} of {most} keys")),
        (Some(keys), None) => add(&format!(" {keys} keys")),
        (None, _) => {}
    }
    told + "  "
}

fn short(text: &str) -> String {
    cut(&visible(text), WIDEST)
}

/// The worst that is to say, and how much more there is.
pub(super) fn sentence(state: &State, width: usize, look: Look) -> Line<'static> {
    let said = health(state);
    let more = match said.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    let (worry, first) = said.into_iter().next().unwrap_or((Worry::None, String::new()));
    let room = width.saturating_sub(more.len());
    Line::from(vec![Span::styled(cut(&first, room), look.worry(worry)), Span::raw(more)])
}

/// The figures of now: names above, numbers below.
pub(super) fn tiles(state: &State, width: usize, look: Look) -> [Line<'static>; 2] {
    let frame = state.frame.as_ref();
    let tiles = [
        ("allowed/s", frame.map(|frame| count(frame.now.allowed)), look.allowed()),
        ("refused/s", frame.map(refused), look.refused()),
        ("p50 / p99", frame.map(times), look.strong()),
        ("degraded/s", frame.map(|frame| count(frame.now.degraded)), look.strong()),
    ];
    let wide = width / tiles.len();
    let name = |(name, _, _): &(&str, _, _)| Span::styled(padded(name, wide, false), look.faint());
    let names = tiles.iter().map(name).collect::<Vec<_>>();
    let figures = tiles.iter().map(|(_, figure, style)| {
        let figure = figure.as_deref().unwrap_or(NOTHING);
        Span::styled(padded(figure, wide, false), style.patch(look.strong()))
    });
    [Line::from(names), Line::from(figures.collect::<Vec<_>>())]
}

fn refused(frame: &Frame) -> String {
    let share = percent(frame.now.refused, frame.now.allowed + frame.now.refused);
    format!("{} ({share:.1} %)", count(frame.now.refused))
}

fn times(frame: &Frame) -> String {
    format!("{} / {}", micros(frame.now.p50_us), micros(frame.now.p99_us))
}
