//! The committed golden vectors are what the oracle says today.

use tollgate_testkit::spec::Kind;
use tollgate_testkit::vectors;

#[test]
fn committed_vectors_are_current() {
    for kind in Kind::ALL {
        let path = vectors::path(kind);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == vectors::render(&vectors::generate(kind)),
            "{} is stale: run `cargo run -p tollgate-testkit --bin vectors` and look at the difference",
            path.display(),
        );
    }
}
