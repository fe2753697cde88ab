//! Files that are missing, bad, late or gone.

use std::fs;

use super::{Address, Authority, Secured, assert_answers, at, refusal};
use crate::fixtures::LONG;
use crate::route::Route;

fn with_ca(secured: &Secured, ca: &str) -> Address {
    at(secured.tls_port, &format!("?ca={ca}"))
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_in_one_line() {
    let secured = Secured::start();
    let authority = &secured.authority;
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    let missing = authority.file("missing.pem");
    let empty = authority.write("empty.pem", "");
    let bad = authority
        .write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let client = |certificate: &str, key: &str| {
        secured.address_with(&format!("&cert={certificate}&key={key}"))
    };
    for (address, expected) in [
        (
            with_ca(&secured, &missing),
            format!("the CA file {missing} cannot be read: No such file"),
        ),
        (
            with_ca(&secured, &empty),
            format!("the CA file {empty} holds no certificate in PEM form"),
        ),
        (with_ca(&secured, &one.key), format!("the CA file {} holds no certificate", one.key)),
        (with_ca(&secured, &bad), format!("the CA file {bad} holds a certificate that is none")),
        (client(&missing, &one.key), format!("the certificate file {missing} cannot be read")),
        (client(&one.certificate, &missing), format!("the key file {missing} cannot be read")),
        (
            client(&one.certificate, &one.certificate),
            format!("the key file {} holds no private key", one.certificate),
        ),
        (
            client(&one.certificate, &other.key),
            format!("the key file {} is not for the certificate in {}", other.key, one.certificate),
        ),
    ] {
        let why = refusal(&address).await;
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[tokio::test]
async fn files_are_read_once_they_are_there_and_then_no_more() {
    let secured = Secured::start();
    let late = secured.authority.file("late.pem");
    let route = Route::from(with_ca(&secured, &late));
    assert!(route.connect(LONG).await.is_err());
    fs::copy(secured.authority.ca(), &late).unwrap();
    assert!(route.connect(LONG).await.is_ok());
    fs::remove_file(&late).unwrap();
    assert!(route.clone().connect(LONG).await.is_ok());
}

#[tokio::test]
async fn a_file_may_hold_several_authorities() {
    let (secured, stranger) = (Secured::start(), Authority::new());
    let read = |authority: &Authority| fs::read_to_string(authority.ca()).unwrap();
    let both = format!("# ours\n{}\n{}", read(&stranger), read(&secured.authority));
    let bundle = secured.authority.write("a bundle.pem", &both).replace(' ', "%20");
    assert_answers(&with_ca(&secured, &bundle)).await;
}
