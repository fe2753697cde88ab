//! The committed golden vectors match the oracle.

use tollgate_testkit::spec::Kind;
use tollgate_testkit::vectors;

#[test]
fn committed_vectors_match_the_oracle() {
    for kind in Kind::ALL {
        let path = vectors::path(kind);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == vectors::render(&vectors::generate(kind)),
            "{} is outdated: run `cargo run -p tollgate-testkit --bin vectors` and check the diff",
            path.display(),
        );
    }
}
