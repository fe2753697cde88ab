//! What is known, as lines for people and for grep: each begins with what it is about.

use super::figures::{NOTHING, percent};
use super::health::health;
use super::response::{Frame, Store};
use super::sheets::{Kind, Sheet};
use super::state::State;
use super::text::{columns, visible};

/// The widest that a column is filled up to; what is longer moves the rest of its line.
const WIDEST: usize = 32;

/// Columns of the first word.
const ABOUT: usize = 9;

/// The whole text.
pub(super) fn summary(state: &State) -> String {
    let mut text = String::new();
    let mut line = |about: &str, told: &str| {
        text.push_str(format!("{about:ABOUT$}{told}").trim_end());
        text.push('\n');
    };
    line("server", &visible(&state.server));
    if let Some(frame) = &state.frame {
        line("scope", &format!("{} node={}", visible(&frame.scope), visible(&frame.node)));
        line("store", &store(&frame.store));
    }
    if let Some(policy) = &state.policy {
        let file = policy.file.as_deref().map_or(NOTHING.to_owned(), visible);
        let (version, rules) = (visible(&policy.version), policy.rules_total);
        line("policy", &format!("{version} rules={rules} file={file}"));
    }
    health(state).iter().for_each(|(_, said)| line("health", said));
    if let Some(frame) = &state.frame {
        line("now", &now(frame));
    }
    for kind in Kind::ALL {
        line("", "");
        table(kind, &kind.sheet(state)).iter().for_each(|row| line(kind.word(), row));
    }
    text
}

fn store(store: &Store) -> String {
    let mut told = visible(&store.kind);
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let text = |text: &Option<String>| text.as_deref().map(visible);
    let pairs = [
        ("address", text(&store.address)),
        ("breaker", text(&store.breaker)),
        ("keys", number(store.keys)),
        ("max_keys", number(store.max_keys)),
        // It may hold spaces, so it is the rest of the line.
        ("server", text(&store.server)),
    ];
    for (name, value) in pairs {
        if let Some(value) = value {
            told.push_str(&format!(" {name}={value}"));
        }
    }
    told
}

fn now(frame: &Frame) -> String {
    let now = &frame.now;
    let share = percent(now.refused, now.allowed + now.refused);
    let time = |us: Option<f64>| us.map_or(NOTHING.to_owned(), |us| format!("{us:.0}"));
    format!(
        "allowed/s={:.1} refused/s={:.1} refused%={share:.1} degraded/s={:.1} errors/s={:.1} p50_us={} p99_us={}",
        now.allowed,
        now.refused,
        now.degraded,
        now.errors,
        time(now.p50_us),
        time(now.p99_us)
    )
}

/// The lines of a table, the first of which names the columns.
fn table(kind: Kind, sheet: &Sheet) -> Vec<String> {
    if sheet.rows.is_empty() {
        return vec![format!("({})", kind.nothing())];
    }
    let names = sheet.columns.iter().map(|column| column.name.to_owned()).collect();
    let rows = || std::iter::once(&names).chain(&sheet.rows);
    let words: Vec<Vec<String>> = rows().map(|row: &Vec<String>| worded(row)).collect();
    let width = |at: usize| {
        let widths = words.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell));
        widths.max().unwrap_or_default().min(WIDEST)
    };
    let widths: Vec<usize> = (0..sheet.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(sheet.columns).zip(&widths).map(|((cell, column), width)| {
            let blank = " ".repeat(width.saturating_sub(columns(cell)));
            if column.to_the_right { blank + cell } else { format!("{cell}{blank}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    words.iter().map(line).collect()
}

/// Cells without spaces, so that each is one word; the last is the rest of the line.
fn worded(row: &[String]) -> Vec<String> {
    let last = row.len().saturating_sub(1);
    let cell = |(at, cell): (usize, &String)| {
        if at == last { cell.clone() } else { cell.replace(' ', "\\u{20}") }
    };
    row.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_summary_tells_everything_in_lines_of_their_own() {
        let text = summary(&sample::state());
        for line in [
            "server   http://127.0.0.1:8080",
            "scope    fleet node=web-1",
            "store    redis address=10.0.0.5:6379 breaker=closed server=valkey 9.1",
            "policy   9f3c rules=3 file=/etc/policy.yaml",
            "health   all is well",
            "now      allowed/s=1234.5 refused/s=61.7 refused%=4.8 degraded/s=0.0 errors/s=0.0 p50_us=210 p99_us=1900",
            "node     web-2  Up             -          -      -  -        -       -        10.0.0.8:8080  -",
            "rule     login    shadow   on      deny           0  ip      5/60s             -",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.lines().any(|line| line.ends_with(' ')), "{text}");
    }

    #[test]
    fn a_cell_is_a_word_whatever_is_in_it() {
        let text = summary(&sample::state_with(&[("\"key\":\"c1\"", "\"key\":\"a b\\n c\"")]));
        let row = text.lines().find(|line| line.starts_with("refused     37")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..6], ["refused", "37", "search", "60s", "1s", "-"]);
        assert_eq!(words[6..], ["a\\u{20}b\\n\\u{20}c", "client=c1", "path=/search", "a"]);
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn nothing_known_is_said_too() {
        let text = summary(&State::new("http://h"));
        let expected = "server   http://h\nhealth   waiting for the first figures\n\n\
                        refused  (nobody was refused)\n\nnode     (no node is known)\n\n\
                        trial    (nothing is on trial)\n\nrule     (no rule is known)\n";
        assert_eq!(text, expected);
    }
}
