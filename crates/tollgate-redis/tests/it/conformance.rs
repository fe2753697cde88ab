//! The suite that every store passes: over Redis and Valkey, by scripts and by functions, on one server and on a
//! cluster.

macro_rules! conforms {
    ($name:ident, $fixture:expr) => {
        mod $name {
            #[allow(
                unused_imports,
                reason = "not every fixture says how programs reach the server"
            )]
            use tollgate_redis::Scripting;
            use tollgate_testkit::server::Flavor;

            use crate::fixture::{Timed, block_on};

            tollgate_testkit::conformance!($fixture, block_on);
        }
    };
}

conforms!(redis, Timed::new(Flavor::Redis, Scripting::Script));
conforms!(redis_functions, Timed::new(Flavor::Redis, Scripting::Function));
conforms!(redis_cluster, Timed::on_cluster(Flavor::Redis));
conforms!(valkey, Timed::new(Flavor::Valkey, Scripting::Auto));
conforms!(valkey_cluster, Timed::on_cluster(Flavor::Valkey));
