//! Parser examples, and comparison with an independent parser (`sfv`).

use super::{LimitItem, exhausted_for, parse};
use proptest::prelude::*;
use sfv::{List, ListEntry, Parser};

#[test]
fn returns_time_of_exhausted_limits() {
    for (field, seconds) in [
        (r#""burst";r=0;t=30"#, Some(30)),
        (r#""burst";r=0;t=30,"daily";r=0;t=60"#, Some(60)),
        (r#""burst";r=0;t=30, "daily";r=5;t=60"#, Some(30)),
        (r#""burst";r=1;t=30"#, None),
        (r#""burst";t=30"#, None),
        (r#""burst";r=0"#, None),
        (r#""burst";r=-1;t=30"#, None),
        (r#""burst";r=0;t=-30"#, None),
        (r#""burst";r=0.0;t=30"#, None),
        (r#""burst";r=9;r=0;t=30"#, Some(30)),
        (r#""b";pk=:cGFydG5lcg==:;r=0;t=30;q"#, Some(30)),
        (r#"burst;r=0;t=30"#, None),
        (r#""burst";r=0;t=30,"#, None),
        (r#""burst";R=0;t=30"#, None),
        (r#""burst;r=0;t=30"#, None),
        (r#""burst";r=0;t=9999999999999999"#, None),
        ("limit=10, remaining=0, reset=5", None),
        ("", None),
    ] {
        assert_eq!(exhausted_for(field), seconds, "{field}");
    }
}

/// Parses a field with `sfv`; none where our parser must return none.
fn oracle(field: &str) -> Option<Vec<LimitItem>> {
    let list: List = Parser::new(field).parse().ok()?;
    let item = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { return None };
        item.bare_item.as_string()?;
        let number = |name: &str| {
            let number = item.params.get(name)?.as_integer()?;
            u64::try_from(i64::from(number)).ok()
        };
        Some(LimitItem { remaining: number("r"), reset: number("t") })
    };
    list.iter().map(item).collect()
}

/// Valid and invalid fragments of a list.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        r#""burst""#,
        r#""a\"b""#,
        ";r=0",
        ";r=7",
        ";t=30",
        "; t=30",
        ";t=-1",
        ";t=1.5",
        ";pk=:YWI=:",
        ";pk=:YWI:",
        ";pk=:Y:",
        ";q",
        ";q=?1",
        ";q=tok/en",
        ";q=@16",
        ";q=@1.5",
        r#";q="x""#,
        ",",
        ", ",
        "\t,",
        " ",
        "token",
        "(",
        ")",
        r#";q=%"x%c3%a9""#,
        r#";q=%"%ff""#,
        r#";q=%"%C3%A9""#,
        "999999999999999",
        "9",
        ".",
        "é",
        "\\",
        "\"",
        "=",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn agrees_with_sfv_on_fragments(
        pieces in prop::collection::vec(piece(), 0..8),
        starts_with_name in any::<bool>(),
    ) {
        let field = format!("{}{}", if starts_with_name { r#""burst""# } else { "" }, pieces.concat());
        prop_assert_eq!(parse(&field), oracle(&field), "{}", field);
    }

    #[test]
    fn agrees_with_sfv_on_arbitrary_text(field in r#"[ -~\t]{0,24}"#) {
        prop_assert_eq!(parse(&field), oracle(&field), "{}", field);
    }

    #[test]
    fn reads_well_formed_lists(items in prop::collection::vec((0_u32..3, 0_u32..1000), 1..5)) {
        let lines: Vec<String> =
            items.iter().map(|(r, t)| format!(r#""l";r={r};t={t}"#)).collect();
        let expected = items.iter().filter(|(r, _)| *r == 0).map(|(_, t)| u64::from(*t)).max();
        prop_assert_eq!(exhausted_for(&lines.join(", ")), expected);
    }
}
