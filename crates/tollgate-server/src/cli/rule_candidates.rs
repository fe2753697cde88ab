//! Commands that name a rule, for an override whose rule is ambiguous.

use serde::Deserialize;

/// The part of a problem body that lists the rules.
#[derive(Debug, Deserialize)]
struct Ambiguous {
    candidates: Vec<Candidate>,
}

#[derive(Debug, Deserialize)]
struct Candidate {
    rule: String,
    limits: Vec<String>,
    blocks: bool,
}

/// Returns one ready-to-run command per rule, made of the arguments of this process, or `None` if the problem body does
/// not list rules.
pub(super) fn commands(body: &str, process_args: impl Iterator<Item = String>) -> Option<String> {
    let Ambiguous { candidates } = serde_json::from_str(body).ok()?;
    let args: Vec<String> = process_args.skip(1).filter(|arg| arg != "--all-rules").collect();
    let mut lines: Vec<(String, String)> = candidates
        .iter()
        .map(|candidate| {
            let limits = candidate.limits.join(", ");
            let note = if candidate.blocks { "replaces a block".to_owned() } else { limits };
            (command(&args, &["--rule", &candidate.rule]), note)
        })
        .collect();
    let rest = candidates.iter().filter(|candidate| !candidate.blocks).count();
    if rest > 1 {
        let note = if rest < candidates.len() { "all rules except blocks" } else { "all rules" };
        lines.push((command(&args, &["--all-rules"]), note.to_owned()));
    }
    let width = lines.iter().map(|(command, _)| command.chars().count()).max()?;
    let lines = lines.iter().map(|(command, note)| format!("  {command:width$}  # {note}\n"));
    Some(format!("run one of:\n{}", lines.collect::<String>()))
}

/// Returns the command with further options. They are before `--`, after which nothing is an option.
fn command(args: &[String], options: &[&str]) -> String {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let (before, after) = args.split_at(end);
    let words = before.iter().map(String::as_str).chain(options.iter().copied());
    let words = words.chain(after.iter().map(String::as_str));
    words.fold("tollgate".to_owned(), |line, word| line + " " + &shell_quoted(word))
}

/// Quotes a word for a POSIX shell if it needs quotes.
fn shell_quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().all(is_printable) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // A control character must not reach the terminal. Between $' and ' it can be written as an escape.
    let escaped = word.chars().map(|letter| match letter {
        '\'' | '\\' => format!("\\{letter}"),
        letter if is_printable(letter) => letter.to_string(),
        control => {
            let mut bytes = [0; 4];
            let bytes = control.encode_utf8(&mut bytes).bytes();
            bytes.map(|byte| format!("\\x{byte:02x}")).collect()
        }
    });
    format!("$'{}'", escaped.collect::<String>())
}

fn is_printable(letter: char) -> bool {
    letter == ' ' || letter.is_ascii_graphic() || letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> impl Iterator<Item = String> {
        words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn each_candidate_has_a_command() {
        let body = r#"{"candidates":[{"rule":"banned","limits":["blocked"],"blocks":true},
            {"rule":"api","limits":["10/min","100/h"],"blocks":false}]}"#;
        let words = ["/bin/tollgate", "override", "set", "it's me", "9/s", "--for", "2h"];
        let expected = "run one of:
  tollgate override set 'it'\\''s me' 9/s --for 2h --rule banned  # replaces a block
  tollgate override set 'it'\\''s me' 9/s --for 2h --rule api     # 10/min, 100/h
";
        assert_eq!(commands(body, args(&words)).as_deref(), Some(expected));
        assert_eq!(commands(r#"{"detail":"x"}"#, args(&words)), None);
    }

    #[test]
    fn options_precede_a_double_dash_and_control_characters_are_escaped() {
        let words: Vec<String> = args(&["override", "set", "--", "-c\u{1b}[2J", "9/s"]).collect();
        let line = command(&words, &["--rule", "api"]);
        assert_eq!(line, r"tollgate override set --rule api -- $'-c\x1b[2J' 9/s");
    }
}
