//! What the tests of tollgate share.
