//! Truncation of the names in a column, so that different names stay different.

use std::collections::BTreeMap;

use super::super::text::{columns, cut};

/// Share of the width for the start of a name whose middle is left out: one fourth.
const START: usize = 4;

/// Truncates each text to the width. Texts that would look the same lose their common beginning instead of their end.
pub(super) fn fit(texts: &[&str], width: usize) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for text in texts.iter().filter(|text| columns(text) > width) {
        let group = groups.entry(cut(text, width)).or_default();
        if !group.contains(text) {
            group.push(text);
        }
    }
    let fit_one = |text: &&str| {
        let short = cut(text, width);
        match groups.get(&short) {
            Some(group) if group.len() > 1 => without_middle(text, common_start(group), width),
            _ => short,
        }
    };
    texts.iter().map(fit_one).collect()
}

/// Returns the number of characters that all texts begin with.
fn common_start(texts: &[&str]) -> usize {
    let Some((first, rest)) = texts.split_first() else { return 0 };
    let common = |text: &&str| first.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    rest.iter().map(common).min().unwrap_or_default()
}

/// Truncates a text so that the part after `start` characters is visible: `ext…i-orders-v2`.
fn without_middle(text: &str, start: usize, width: usize) -> String {
    let head = characters_in(text, width / START).min(start);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    let Some(room) = width.checked_sub(columns(&short)) else { return cut(text, width) };
    let rest = |from: usize| text.chars().skip(from).collect::<String>();
    // If the rest is short, as much of the common beginning as fits is shown before it.
    let fits = |from: &usize| columns(&rest(*from)) <= room;
    let from = (head..start).find(fits).unwrap_or(start);
    short.push_str(&cut(&rest(from), room));
    short
}

/// Returns how many characters at the start of a text fit into a width.
fn characters_in(text: &str, width: usize) -> usize {
    let mut used = 0;
    let fits = |letter: &char| {
        used += columns(letter.encode_utf8(&mut [0; 4]));
        used <= width
    };
    text.chars().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_stay_different() {
        let texts =
            ["external-api-orders-v1", "external-api-orders-v2", "login", "internal-jobs-nightly"];
        let expected = ["ext…i-orders-v1", "ext…i-orders-v2", "login", "internal-jobs-…"];
        assert_eq!(fit(&texts, 15), expected);
        let texts = ["customer-0000-production-eu", "customer-0001-production-eu"];
        assert_eq!(fit(&texts, 12), ["cus…0-produ…", "cus…1-produ…"]);
    }

    #[test]
    fn names_fit_any_width() {
        let texts = [
            "日本語のとても長い鍵の一",
            "日本語のとても長い鍵の二",
            "aaaaaaaaaaaaaaab",
            "aaaaaaaaaaaaaaac",
            "",
        ];
        for width in 0..40 {
            for (text, short) in texts.iter().zip(fit(&texts, width)) {
                assert!(columns(&short) <= width, "{text} in {width}: {short}");
            }
        }
        let same = ["one and the same name", "one and the same name"];
        assert_eq!(fit(&same, 8), ["one and…", "one and…"]);
    }
}
