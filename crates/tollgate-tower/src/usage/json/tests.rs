//! The scanner accepts the same documents as `serde_json`.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::{Figures, JsonScanner, MAX_DEPTH};

/// A document whose figures are set if it is accepted.
fn document(text: &[u8]) -> Vec<u8> {
    [br#"{"usage":{"prompt_tokens":5},"x":"#, text, b"}"].concat()
}

fn is_accepted(document: &[u8]) -> bool {
    let (mut scanner, mut total) = (JsonScanner::new(), Figures::default());
    scanner.push(document, &mut total);
    scanner.end(&mut total);
    total != Figures::default()
}

fn is_valid(document: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(document).is_ok()
}

#[test]
fn accepts_what_serde_json_accepts() {
    let numbers =
        "0 1 10 -0 -1 0.5 1e5 1E+5 1e-05 12.25e3 00 01 -01 - + 1. .5 1.e5 1e 1e+ 0x1 1_0 --1";
    let literals = "true false null True nul truee truth tru e";
    let strings =
        r#""" "a" "é" "\"" "\\" "\/\b\f\n\r\t" "\u0041" "\uD83D\uDE00" "\x" "\u12" "\u12g4" " "a"#;
    let nested = r#"[] {} [1] [1,2] [,] [1,] [1 {"a":1} {"a":1,} {"a"} {"a":} {a:1} {"a":1,"b":[{}]} ] } [} {] [1]]"#;
    let mut accepted = 0;
    for text in [numbers, literals, strings, nested].iter().flat_map(|list| list.split(' ')) {
        let document = document(text.as_bytes());
        assert_eq!(is_accepted(&document), is_valid(&document), "{text}");
        accepted += u32::from(is_valid(&document));
    }
    assert!(accepted >= 20, "{accepted}");
    assert!(!is_accepted(&document(b"\"a\nb\"")), "control characters must be escaped");
    assert!(is_accepted(&document(b" \t\r\n 1 \n")));
    assert!(!is_accepted(&[&document(b"1")[..], b"1"].concat()));
}

#[test]
fn documents_that_are_too_deep_are_ignored() {
    let nested = |depth: usize| document(&[b"[".repeat(depth), b"]".repeat(depth)].concat());
    assert!(is_accepted(&nested(MAX_DEPTH - 1)));
    assert!(!is_accepted(&nested(MAX_DEPTH)));
    assert!(!is_accepted(&nested(1_000_000)));
}

#[test]
fn the_next_document_starts_after_an_invalid_one() {
    let (mut scanner, mut total) = (JsonScanner::new(), Figures::default());
    for text in [&b"[{\"a\":"[..], b"\"\\u12", b"x", b"-", b"tru", b"{\"usage"] {
        scanner.push(text, &mut total);
        scanner.end(&mut total);
        assert_eq!(total, Figures::default());
    }
    scanner.push(&document(b"1"), &mut total);
    scanner.end(&mut total);
    assert_ne!(total, Figures::default());
}

/// Bytes with a meaning in JSON, so that random changes often leave it valid.
const BYTES: &[u8] = b"{}[]:,\"\\u0123456789+-.eEtruefalsn \n\rx\x01\xc3\xa9";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_documents_are_accepted_as_by_serde_json(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(BYTES), 0..3_u8), 0..4,
        ),
    ) {
        let mut document = document(
            br#"[-1.5e-7,0,"a\u00e9\n\"b",true,{"c":null,"d":[],"e":{}},[[false,12]]]"#,
        );
        for (place, byte, edit) in edits {
            let at = place.index(document.len());
            match edit {
                0 => document[at] = byte,
                1 => document.insert(at, byte),
                _ => drop(document.remove(at)),
            }
        }
        // Edits can also change the figure, so compare documents that contain it only.
        if document.starts_with(br#"{"usage":{"prompt_tokens":5},"#) {
            prop_assert_eq!(is_accepted(&document), is_valid(&document));
        }
    }
}
