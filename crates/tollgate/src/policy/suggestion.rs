//! "Did you mean" suggestions for misspelled names.

/// Returns the known name closest to `name`, if at most a third of its characters differ. A swap of two
/// neighbouring characters counts as one difference.
pub(super) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().map(|known| (known, distance(name, known)));
    let (best, differences) = distances.min_by_key(|(_, differences)| *differences)?;
    (differences <= best.chars().count().div_ceil(3)).then_some(best)
}

/// Returns `, did you mean "…"?` if a known name is close enough, else an empty string.
pub(super) fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map_or_else(String::new, |best| format!(", did you mean {best:?}?"))
}

/// Returns the number of characters to add, remove, replace or swap, ignoring ASCII case
/// (Damerau–Levenshtein). Only the first 65 characters are compared.
fn distance(left: &str, right: &str) -> usize {
    let lowercase = |text: &str| -> Vec<char> {
        text.chars().take(65).map(|char| char.to_ascii_lowercase()).collect()
    };
    let (left, right) = (lowercase(left), lowercase(right));
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    let mut two_above: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, left_char) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_char) in right.iter().enumerate() {
            let replaced = at(&above, column) + usize::from(left_char != right_char);
            let mut min = replaced.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(right_char)
                && right.get(column - 1) == Some(left_char);
            if swapped {
                min = min.min(at(&two_above, column - 1) + 1);
            }
            current.push(min);
        }
        two_above = std::mem::replace(&mut above, current);
    }
    at(&above, right.len())
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (left, right, differences) in [
            ("", "", 0),
            ("a", "", 1),
            ("limitss", "limits", 1),
            ("naem", "name", 1),
            ("abc", "xyz", 3),
        ] {
            assert_eq!(distance(left, right), differences, "{left} {right}");
            assert_eq!(distance(right, left), differences, "{right} {left}");
        }
    }

    #[test]
    fn suggests_only_similar_names() {
        assert_eq!(nearest("algoritm", ["algorithm", "align"]), Some("algorithm"));
        assert_eq!(nearest("quite-different", ["name", "match"]), None);
    }
}
