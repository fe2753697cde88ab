//! The conformance suite of all stores: on Redis and Valkey, with scripts and functions, on one server, on a
//! cluster and with sentinels, over TLS and a Unix socket.

macro_rules! conforms {
    ($name:ident, $fixture:expr) => {
        #[allow(unused_imports, reason = "no fixture needs all of them")]
        mod $name {
            use tollgate_redis::Scripting;
            use tollgate_testkit::server::Flavor;

            use crate::fixture::{Timed, block_on, shared_sentinels, shared_socket, shared_tls};

            tollgate_testkit::conformance!($fixture, block_on);
        }
    };
}

conforms!(redis, Timed::new(Flavor::Redis, Scripting::Script));
conforms!(redis_functions, Timed::new(Flavor::Redis, Scripting::Function));
conforms!(redis_cluster, Timed::on_cluster(Flavor::Redis));
conforms!(redis_sentinels, Timed::by(&shared_sentinels(Flavor::Redis).url()));
conforms!(redis_tls, Timed::by(&shared_tls()));
conforms!(redis_socket, Timed::by(&shared_socket(Flavor::Redis)));
conforms!(valkey, Timed::new(Flavor::Valkey, Scripting::Auto));
conforms!(valkey_cluster, Timed::on_cluster(Flavor::Valkey));
conforms!(valkey_sentinels, Timed::by(&shared_sentinels(Flavor::Valkey).url()));
