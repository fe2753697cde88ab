//! The suite that every store passes, over Redis and Valkey, by scripts and by functions.

macro_rules! conforms {
    ($name:ident, $flavor:expr, $scripting:expr) => {
        mod $name {
            use crate::fixture::{Timed, block_on};
            use tollgate_redis::Scripting;
            use tollgate_testkit::server::Flavor;

            tollgate_testkit::conformance!(Timed::new($flavor, $scripting), block_on);
        }
    };
}

conforms!(redis, Flavor::Redis, Scripting::Script);
conforms!(redis_functions, Flavor::Redis, Scripting::Function);
conforms!(valkey, Flavor::Valkey, Scripting::Auto);
