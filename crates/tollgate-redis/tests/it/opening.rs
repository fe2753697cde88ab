//! The three ways to open a store: from a URL, from an address, and with a TLS configuration of the program.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Store, Subject};
use tollgate_redis::rustls::crypto::ring;
use tollgate_redis::rustls::pki_types::pem::PemObject;
use tollgate_redis::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tollgate_redis::rustls::{ClientConfig, RootCertStore};
use tollgate_redis::{Address, RedisStore, RedisStoreBuilder};
use tollgate_testkit::server::{Builder, Certificates, Flavor, Identity, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, plan, shared};
use crate::tally::century_window;

/// Peeks until a call succeeds: the default timeout is short for a busy machine.
fn assert_works(store: &RedisStore) {
    let (subject, limit) = (Subject::of(["k"]), century_window(1));
    let request = plan(&subject, &limit, 1);
    eventually("the store decides", || {
        block_on(store.peek(&request)).is_ok_and(|decision| decision.is_allowed())
    });
}

fn tls_server(settings: impl FnOnce(Builder, &Certificates) -> Builder) -> (Server, Certificates) {
    let certificates = Certificates::new();
    let server = settings(Server::builder(Flavor::Redis), &certificates).start();
    (server, certificates)
}

/// A TLS configuration that trusts one CA, with an optional client certificate.
fn config(ca: &std::path::Path, client: Option<&Identity>) -> Arc<ClientConfig> {
    let certificates = |path| CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap);
    let mut roots = RootCertStore::empty();
    certificates(ca).for_each(|certificate| roots.add(certificate).unwrap());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let key = PrivateKeyDer::from_pem_file(&client.key).unwrap();
            let chain = certificates(&client.certificate).collect();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    })
}

/// A builder for the TLS port, with parameters of the URL.
fn tls_builder(server: &Server, parameters: &str) -> RedisStoreBuilder {
    let address = format!("rediss://127.0.0.1:{}{parameters}", server.tls_port());
    RedisStore::builder(address.parse().unwrap()).timeout(Duration::from_secs(60))
}

#[test]
fn opens_from_a_url() {
    let store = RedisStore::from_url(&shared(Flavor::Redis).url()).unwrap();
    assert_works(&store);
    let error = RedisStore::from_url("redis://:hunter2@localhost:redis").unwrap_err();
    let expected = "the port of a Redis address must be a number from 1 to 65535";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn opens_from_an_address() {
    let address: Address = shared(Flavor::Redis).url().parse().unwrap();
    let store = RedisStore::new(address.clone());
    assert_eq!(store.address(), &address);
    assert_works(&store);
}

#[test]
fn opens_with_a_tls_configuration() {
    let (server, certificates) = tls_server(Builder::tls);
    let config = config(&certificates.ca, None);
    // The configuration replaces the files, which do not exist.
    for parameters in ["", "?ca=/missing/ca.pem&cert=/missing/cert.pem&key=/missing/key.pem"] {
        let store = tls_builder(&server, parameters).tls_config(Arc::clone(&config)).build();
        block_on(store.connect()).unwrap();
        assert_works(&store);
    }
}

#[test]
fn tls_configuration_decides_trust_and_server_name_still_applies() {
    let (server, certificates) = tls_server(|builder, all| builder.tls_as(all, &all.other_name));
    let connect = |ca, parameters: &str| {
        let builder = tls_builder(&server, parameters).tls_config(config(ca, None));
        block_on(builder.build().connect()).map_err(|error| error.to_string())
    };
    let error = connect(&certificates.ca, "").unwrap_err();
    assert!(error.contains("is not for the name 127.0.0.1"), "{error}");
    connect(&certificates.ca, "?server_name=elsewhere.test").unwrap();
    let error = connect(&certificates.other_ca, "?server_name=elsewhere.test").unwrap_err();
    let expected = "was not issued by a CA that the supplied TLS configuration trusts";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn tls_configuration_supplies_the_client_certificate() {
    let (server, certificates) = tls_server(Builder::mutual_tls);
    let connect = |client| {
        let builder = tls_builder(&server, "").tls_config(config(&certificates.ca, client));
        block_on(builder.build().connect()).map_err(|error| error.to_string())
    };
    connect(Some(&certificates.client)).unwrap();
    let error = connect(None).unwrap_err();
    assert!(error.contains("client certificate"), "{error}");
    let error = connect(Some(&certificates.stranger)).unwrap_err();
    assert!(error.contains("refused the client certificate"), "{error}");
}
