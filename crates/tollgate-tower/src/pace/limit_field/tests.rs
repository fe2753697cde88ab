//! What the field says, and that an independent reader says the same.

use super::{Service, parse, used_up_for};
use proptest::prelude::*;
use sfv::{List, ListEntry, Parser};

#[test]
fn what_is_used_up_says_for_how_long() {
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
        assert_eq!(used_up_for(field), seconds, "{field}");
    }
}

/// What an independent reader makes of a field; none where we want to have none.
fn oracle(field: &str) -> Option<Vec<Service>> {
    let list: List = Parser::new(field).parse().ok()?;
    let service = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { return None };
        item.bare_item.as_string()?;
        let number = |name: &str| {
            let number = item.params.get(name)?.as_integer()?;
            u64::try_from(i64::from(number)).ok()
        };
        Some(Service { remaining: number("r"), reset: number("t") })
    };
    list.iter().map(service).collect()
}

/// Pieces that lists are made of, and some that they are not.
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
    fn an_independent_reader_reads_the_same(
        pieces in prop::collection::vec(piece(), 0..8),
        begins_well in any::<bool>(),
    ) {
        let field = format!("{}{}", if begins_well { r#""burst""# } else { "" }, pieces.concat());
        prop_assert_eq!(parse(&field), oracle(&field), "{}", field);
    }

    #[test]
    fn an_independent_reader_reads_any_text_the_same(field in r#"[ -~\t]{0,24}"#) {
        prop_assert_eq!(parse(&field), oracle(&field), "{}", field);
    }

    #[test]
    fn what_is_written_is_read(services in prop::collection::vec((0_u32..3, 0_u32..1000), 1..5)) {
        let lines: Vec<String> =
            services.iter().map(|(r, t)| format!(r#""l";r={r};t={t}"#)).collect();
        let used_up = services.iter().filter(|(r, _)| *r == 0).map(|(_, t)| u64::from(*t)).max();
        prop_assert_eq!(used_up_for(&lines.join(", ")), used_up);
    }
}
