//! Finds messages in Rust sources: string literals of log macros and `#[error]` attributes, and all others that read
//! as text.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

/// Where a message appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In a log line.
    Log,
    /// In an `#[error]` attribute.
    Error,
    /// Elsewhere: API problems, command output, warnings.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log",
            Self::Error => "error",
            Self::Text => "text",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

const LOG_MACROS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "event"];

/// Names of files and folders that are not part of a release: tests, and models of concurrency.
const NOT_RELEASED: [&str; 4] = ["tests", "fixtures", "sample", "models"];

/// Lists the Rust files of a folder and its subfolders that are part of a release.
pub(crate) fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if NOT_RELEASED.contains(&&*stem) || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The messages of one source file, in order, each once.
pub(crate) fn messages(source: &str) -> Vec<Message> {
    let tokens: TokenStream = source.parse().expect("the file is Rust");
    let mut found = Vec::new();
    scan(tokens, None, &mut found);
    let mut distinct: Vec<Message> = Vec::new();
    for message in found {
        if !distinct.contains(&message) {
            distinct.push(message);
        }
    }
    distinct
}

/// Scans tokens; `within` is set inside a log macro or an `#[error]` attribute.
fn scan(tokens: TokenStream, within: Option<Kind>, found: &mut Vec<Message>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let is_inner = is_punct(tokens.get(index), '!');
                let at = index + usize::from(is_inner);
                let Some(TokenTree::Group(group)) = tokens.get(at) else { continue };
                index = at + 1;
                if is_test_only(&group.stream()) {
                    index = after_item(&tokens, index);
                } else if starts_with(group.stream(), "error") {
                    scan(group.stream(), Some(Kind::Error), found);
                }
            }
            TokenTree::Ident(ident)
                if is_punct(tokens.get(index), '!')
                    && LOG_MACROS.contains(&ident.to_string().as_str()) =>
            {
                if let Some(TokenTree::Group(group)) = tokens.get(index + 1) {
                    scan(group.stream(), Some(Kind::Log), found);
                    index += 2;
                }
            }
            TokenTree::Group(group) => scan(group.stream(), within, found),
            TokenTree::Literal(literal) => found.extend(message(literal, within)),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// A literal as a message. Outside log macros and `#[error]`, only texts of two words or more are messages.
fn message(literal: &Literal, within: Option<Kind>) -> Option<Message> {
    let text = string(&literal.to_string())?;
    let is_prose = text.split_whitespace().filter(|word| is_word(word)).count() >= 2;
    let kind = within.or(is_prose.then_some(Kind::Text))?;
    (!text.is_empty()).then_some(Message { kind, text })
}

fn is_word(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || "-'’`".contains(c))
}

/// The value of a string literal; `None` for other literals.
fn string(source: &str) -> Option<String> {
    if source.starts_with('r') {
        let inner = source.strip_prefix('r')?.trim_matches('#');
        return inner.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
    }
    let inner = source.strip_prefix('"')?.strip_suffix('"')?;
    let (mut text, mut chars) = (String::new(), inner.chars().peekable());
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next()? {
            // A line that goes on: the indentation of the next one is not part of the text.
            '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            'n' => text.push('\n'),
            't' => text.push('\t'),
            other => text.push(other),
        }
    }
    Some(text)
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn starts_with(attribute: TokenStream, name: &str) -> bool {
    matches!(attribute.into_iter().next(), Some(TokenTree::Ident(ident)) if ident == name)
}

/// Whether an attribute marks an item that only tests have: `#[test]` or `#[cfg(test)]`.
fn is_test_only(attribute: &TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "test"
        || text == "tokio::test"
        || text.starts_with("cfg(test")
        || text.starts_with("cfg(all(test")
        || text.starts_with("cfg(doctest")
}

/// The index after the item that an attribute is on: past its body or its semicolon.
fn after_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    let rest = tokens.get(from..).unwrap_or_default();
    rest.iter().position(is_end).map_or(tokens.len(), |at| from + at + 1)
}
