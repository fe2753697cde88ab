//! Screens of all sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::{Color, Modifier};

use super::super::sample;
use super::super::update::Update;
use super::*;

fn drawn(size: (u16, u16), state: &State, view: &View, theme: Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|canvas| draw(canvas, state, view, theme)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the screen as lines, without the cells that wide letters cover.
fn lines_of(buffer: &Buffer) -> Vec<String> {
    let row = |y: u16| {
        let (mut line, mut x) = (String::new(), 0);
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(super::super::text::columns(symbol)).unwrap().max(1);
        }
        line.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

fn shown(size: (u16, u16), state: &State, keys: &[KeyCode]) -> Vec<String> {
    lines_of(&drawn(size, state, &pressed(keys, size, state), Theme::new(true)))
}

fn pressed(keys: &[KeyCode], size: (u16, u16), state: &State) -> View {
    let mut view = View::default();
    for key in keys {
        let range = scroll_range(Size::from(size), state, &view);
        view.press(KeyEvent::from(*key), state, range);
    }
    view
}

#[test]
fn draws_a_common_terminal_size() {
    let lines = shown((80, 24), &sample::state(), &[]);
    assert_eq!(lines[0], "tollgate top  live  http://127.0.0.1:8080  node web-1  all nodes");
    assert_eq!(lines[1], "redis 10.0.0.5:6379 (valkey 9.1)  breaker closed  policy 9f3c (3 rules)");
    assert_eq!(lines[2], "no problems detected");
    assert_eq!(lines[3], "allowed/s           refused/s           p50 / p99           degraded/s");
    assert_eq!(lines[4], "1234                61.7 (4.8 %)        210µs / 1.9ms       0");
    assert!(lines[5].starts_with("allowed/s, last 5m, peak 20"), "{lines:#?}");
    assert!(lines[5].contains("refused/s, last 5m, peak 5"), "{lines:#?}");
    assert!(lines[9].contains("···█") && lines[6].ends_with('█'), "{lines:#?}");
    assert_eq!(lines[10], " 1 refused keys (4)   2 nodes (2)   3 on trial (2)   4 rules (3)");
    assert!(
        lines[11].starts_with("COUNT  RATE/S  RULE     LIMIT    AGO  TENANT  KEY"),
        "{lines:#?}"
    );
    assert!(
        lines[12].starts_with("   37     2.5  search   10/min    1s  -       c1 "),
        "{lines:#?}"
    );
    assert!(lines[13].contains("acme    \\u{1b}[2J"), "{lines:#?}");
    assert!(lines[14].contains("\\u{202e}gpj"), "{lines:#?}");
    assert!(lines[15].contains("日本語の"), "{lines:#?}");
    assert!(lines[16].starts_with("   61     2.5  total"), "{lines:#?}");
    assert!(lines[23].starts_with("q quit"), "{lines:#?}");
}

#[test]
fn switches_tables() {
    let state = sample::state();
    let nodes = shown((80, 24), &state, &[KeyCode::Char('2')]).join("\n");
    assert!(nodes.contains("NODE ") && nodes.contains("web-2"), "{nodes}");
    let trials = shown((80, 24), &state, &[KeyCode::Char('3')]).join("\n");
    assert!(trials.contains("search       0     6         2  next 5/min"), "{trials}");
    let rules = shown((80, 24), &state, &[KeyCode::BackTab]).join("\n");
    assert!(rules.contains("10/min,100/h"), "{rules}");
    let help = shown((80, 24), &state, &[KeyCode::Char('?')]).join("\n");
    assert!(help.contains("select a table") && !help.contains("COUNT"), "{help}");
}

#[test]
fn scrolls_to_the_end_and_back() {
    let state = sample::state();
    let size = (80, 10);
    let first = shown(size, &state, &[]);
    assert!(first[7].contains(" c1 ") && !first.concat().contains("日本"), "{first:#?}");
    let end = shown(size, &state, &[KeyCode::End]);
    assert!(end[8].contains("日本") && !end.concat().contains(" c1 "), "{end:#?}");
    let past = [KeyCode::PageDown; 9];
    assert_eq!(shown(size, &state, &past), end);
    assert_eq!(shown(size, &state, &[&past[..], &[KeyCode::Home]].concat()), first);
    // The table becomes shorter while it is scrolled.
    let (view, state) = (pressed(&past, size, &state), State::new("x"));
    assert!(
        lines_of(&drawn(size, &state, &view, Theme::new(true)))
            .concat()
            .contains("no refused keys")
    );
}

#[test]
fn selects_filters_and_shows_details() {
    let state = sample::state();
    let reversed = |keys: &[KeyCode]| {
        let buffer = drawn((80, 24), &state, &pressed(keys, (80, 24), &state), Theme::new(true));
        let rows = (12..16).filter(|y| buffer[(0, *y)].modifier.contains(Modifier::REVERSED));
        rows.collect::<Vec<u16>>()
    };
    assert_eq!(reversed(&[]), [12]);
    assert_eq!(reversed(&[KeyCode::Down, KeyCode::Down]), [14]);
    let filter: Vec<KeyCode> = "/acme".chars().map(KeyCode::Char).collect();
    let filtered = shown((80, 24), &state, &filter);
    assert!(filtered[10].contains("1 refused keys (1)"), "{filtered:#?}");
    assert!(filtered[12].contains("acme") && !filtered[13].contains("default"), "{filtered:#?}");
    assert_eq!(filtered[23], "filter: acme_  Enter keep  Esc remove");
    let details = shown((80, 24), &state, &[KeyCode::End, KeyCode::Enter]).join("\n");
    let key = "日本語のとても長い鍵".repeat(4);
    assert!(details.replace(['\n', ' '], "").contains(&key), "the whole key is shown: {details}");
    let name = "customer-acme-corporation-production-0001";
    let facts = format!("\"client\":\"{name}\"");
    let long = sample::state_with(&[("\"client\":\"c1\"", &facts)]);
    let raise = shown((80, 24), &long, &[KeyCode::Enter]).concat().replace(' ', "");
    let command = format!("tollgateoverrideset{name}RATE--rulesearch--for1h--dry-run");
    assert!(raise.contains(&command), "the whole command is visible: {raise}");
}

#[test]
fn large_terminal_shows_all_tables() {
    let all = shown((200, 60), &sample::state(), &[]).join("\n");
    for words in ["COUNT", "NODE ", "DIVERGED", "ON_LOSS", "refused keys, last 5 min"] {
        assert!(all.contains(words), "{words} is not in\n{all}");
    }
}

#[test]
fn draws_any_size_and_state() {
    let mut lost = sample::state();
    lost.apply(Update::Lost("x".repeat(5000)));
    for state in [State::new("x"), lost] {
        for width in [0, 1, 2, 5, 11, 12, 24, 59, 60, 80, 150, 300] {
            for height in [0, 1, 2, 4, 5, 6, 8, 9, 11, 12, 24, 60] {
                for keys in [
                    &[][..],
                    &[KeyCode::End],
                    &[KeyCode::Tab],
                    &[KeyCode::Enter],
                    &[KeyCode::Char('/')],
                    &[KeyCode::Char('?')],
                ] {
                    let _ = shown((width, height), &state, keys);
                }
            }
        }
    }
}

#[test]
fn missing_data_is_shown_as_missing() {
    let lines = shown((80, 24), &State::new("http://h"), &[]);
    assert_eq!(lines[0], "tollgate top  connecting  http://h");
    assert_eq!(lines[2], "waiting for data");
    assert_eq!(lines[4], "-                   -                   -                   -");
    assert_eq!(lines[11], "no refused keys");
}

#[test]
fn shows_lost_connection() {
    let mut state = sample::state();
    state.apply(Update::Lost("connection\u{1b}[2J refused".to_owned()));
    let lines = shown((80, 24), &state, &[]);
    assert!(lines[0].starts_with("tollgate top  reconnecting  "), "{}", lines[0]);
    assert_eq!(
        lines[2],
        "connection lost, reconnecting: connection\\u{1b}[2J refused; last update 0s ago"
    );
}

#[test]
fn shows_pause() {
    let lines = shown((80, 24), &sample::state(), &[KeyCode::Char('p')]);
    assert!(lines[0].starts_with("tollgate top  paused  "), "{}", lines[0]);
}

/// Direction marks and an invisible character.
const UNSAFE_CHARACTERS: [char; 4] = ['\u{200b}', '\u{202e}', '\u{2066}', '\u{2069}'];

#[test]
fn never_draws_control_characters() {
    let hostile = "\\u001b[2J\\u009b31m\\u202e\\u2066\\u200b\\u0007\\n";
    let changes: Vec<(String, String)> =
        ["web-1", "c1", "search", "acme", "valkey 9.1", "9f3c", "0.1.0"]
            .iter()
            .map(|word| (format!("\"{word}\""), format!("\"{hostile}{word}\"")))
            .collect();
    let changes: Vec<(&str, &str)> =
        changes.iter().map(|(o, n)| (o.as_str(), n.as_str())).collect();
    let state = sample::state_with(&changes);
    for keys in [KeyCode::Char('1'), KeyCode::Char('2'), KeyCode::Char('3'), KeyCode::Char('4')] {
        for size in [(80, 24), (200, 60), (300, 10)] {
            let text = shown(size, &state, &[keys]).concat();
            let is_unsafe =
                |letter: char| letter.is_control() || UNSAFE_CHARACTERS.contains(&letter);
            assert!(!text.contains(is_unsafe), "{text:?}");
        }
    }
}

#[test]
fn draws_without_colours_on_request() {
    let (state, view) = (sample::state(), View::default());
    let has_colours = |theme: Theme| {
        let buffer = drawn((80, 24), &state, &view, theme);
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(has_colours(Theme::new(true)));
    assert!(!has_colours(Theme::new(false)));
}
