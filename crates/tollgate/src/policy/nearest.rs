//! The name somebody may have meant.

/// The nearest of the known names, if one is near enough to be meant: a third of its letters wrong at
/// most, counting a swap of two neighbours as one.
pub(super) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = |candidate: &&str| distance(name, candidate);
    let (best, away) =
        known.into_iter().map(|known| (known, near(&known))).min_by_key(|(_, away)| *away)?;
    (away <= best.chars().count().div_ceil(3)).then_some(best)
}

/// `, did you mean "…"?` where there is a name near enough, else nothing.
pub(super) fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!(", did you mean {near:?}?"))
}

/// How many letters to add, drop, replace or swap, upper and lower case alike. Beyond 64 letters
/// names are not compared.
fn distance(left: &str, right: &str) -> usize {
    let letters = |text: &str| -> Vec<char> {
        text.chars().take(65).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let (left, right) = (letters(left), letters(right));
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = at(&above, column) + usize::from(letter != other);
            let mut least = replaced.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(other)
                && right.get(column - 1) == Some(letter);
            if swapped {
                least = least.min(at(&before, column - 1) + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    at(&above, right.len())
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn letters_that_differ_are_counted() {
        for (left, right, away) in [
            ("", "", 0),
            ("a", "", 1),
            ("limitss", "limits", 1),
            ("naem", "name", 1),
            ("abc", "xyz", 3),
        ] {
            assert_eq!(distance(left, right), away, "{left} {right}");
            assert_eq!(distance(right, left), away, "{right} {left}");
        }
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("algoritm", ["algorithm", "align"]), Some("algorithm"));
        assert_eq!(nearest("quite-different", ["name", "match"]), None);
    }
}
