//! Measures tollgate beside its peers.
