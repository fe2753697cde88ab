//! The source line of a policy error, with a caret below the wrong part.

use tollgate::policy::FieldError;

/// The maximum length of a shown line, in characters.
const MAX_SHOWN: usize = 110;

/// Returns two lines: the source line, and carets below the part that is wrong. Empty if the line can contain an API key,
/// because the output of a validation is often kept in a build log.
pub(super) fn source_line(text: &str, error: &FieldError) -> String {
    let Some(line) = text.lines().nth(error.line().saturating_sub(1)) else { return String::new() };
    if error.field().starts_with("tiers") || line.contains("api_key") || line.contains("tiers") {
        return String::new();
    }
    let visible: Vec<char> = line.chars().map(visible).collect();
    let column = error.column().saturating_sub(1).min(visible.len());
    // The end of a long line is shown if the error is there.
    let start = if column > MAX_SHOWN { column - MAX_SHOWN / 2 } else { 0 };
    let shown: String = visible.iter().skip(start).take(MAX_SHOWN).collect();
    let width = visible.iter().skip(column).take_while(|char| !ends_part(**char)).count();
    let width = width.clamp(1, MAX_SHOWN.saturating_sub(column - start).max(1));
    let number = error.line().to_string();
    let margin = " ".repeat(number.len());
    let indent = " ".repeat(column - start);
    let carets = "^".repeat(width);
    format!("{number} | {}\n{margin} | {indent}{carets}\n", shown.trim_end())
}

/// Replaces characters that would move the carets or control the terminal. A tab has the width of a space.
fn visible(char: char) -> char {
    match char {
        '\t' => ' ',
        char if char.is_control() => '\u{fffd}',
        char => char,
    }
}

fn ends_part(char: char) -> bool {
    char.is_whitespace() || matches!(char, ',' | ']' | '}' | ':')
}

#[cfg(test)]
mod tests {
    use tollgate::Limit;
    use tollgate::policy::Policy;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let error = Policy::from_yaml("p.yaml", text, Limit::block()).unwrap_err();
        error.errors().map(|error| source_line(text, error)).collect()
    }

    #[test]
    fn carets_are_below_the_wrong_part() {
        let text = "version: 1\nrules:\n  - { name: é, limits: [10/minute], cots: 2 }\n";
        assert_eq!(
            shown(text),
            [
                "3 |   - { name: é, limits: [10/minute], cots: 2 }\n  |             ^\n",
                "3 |   - { name: é, limits: [10/minute], cots: 2 }\n  |                         ^^^^^^^^^\n",
                "3 |   - { name: é, limits: [10/minute], cots: 2 }\n  |                                     ^^^^\n",
            ]
        );
    }

    #[test]
    fn lines_with_keys_are_not_shown() {
        let text = "version: 1\ntiers: { a: [hunter2] }\nrules: [{ name: a, match: { api_key: hunter2 } }]\n";
        assert!(shown(text).iter().all(String::is_empty));
        let text = "version: 1\ntiers:\n  a:\n    - hunter2\n";
        assert_eq!(shown(text), [""]);
    }

    #[test]
    fn long_and_hostile_lines_are_cut() {
        let text =
            format!("version: 1\nrules: [{}, bad]\n", "{ name: a, limits: [1/s] }, ".repeat(50));
        assert!(shown(&text).iter().all(|shown| shown.lines().all(|line| line.len() < 140)));
        assert!(shown("version: 1\n\u{1b}[2J: 1\n").iter().all(|shown| !shown.contains('\u{1b}')));
        assert_eq!(shown("version: 1\nrules: ["), ["2 | rules: [\n  |        ^\n"]);
    }
}
