//! The suite that every store passes, over Redis and Valkey.

mod redis {
    use crate::fixture::{Timed, block_on};
    use tollgate_testkit::server::Flavor;

    tollgate_testkit::conformance!(Timed::new(Flavor::Redis), block_on);
}

mod valkey {
    use crate::fixture::{Timed, block_on};
    use tollgate_testkit::server::Flavor;

    tollgate_testkit::conformance!(Timed::new(Flavor::Valkey), block_on);
}
