use super::Address;

fn parse(url: &str) -> Address {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn refusal(url: &str) -> String {
    url.parse::<Address>().expect_err(url).to_string()
}

fn login(url: &str) -> Option<(Option<String>, String)> {
    let text = |secret: &super::Secret| String::from_utf8(secret.expose().to_vec()).unwrap();
    parse(url).login().map(|login| (login.user.as_ref().map(text), text(&login.password)))
}

#[test]
fn parts_are_read_and_defaults_filled_in() {
    for (url, host, port, database) in [
        ("redis://localhost", "localhost", 6379, 0),
        ("REDIS://localhost/", "localhost", 6379, 0),
        ("redis://10.0.0.1:7000/15", "10.0.0.1", 7000, 15),
        ("redis://[::1]", "::1", 6379, 0),
        ("redis://u:p@[fe80::1]:1/1", "fe80::1", 1, 1),
        ("redis://my_cache.internal:65535", "my_cache.internal", 65535, 0),
    ] {
        let address = parse(url);
        assert_eq!((address.host(), address.port(), address.database()), (host, port, database));
    }
}

#[test]
fn logins_are_read_and_decoded() {
    let some =
        |user: Option<&str>, password: &str| Some((user.map(str::to_owned), password.to_owned()));
    for (url, expected) in [
        ("redis://localhost", None),
        ("redis://@localhost", None),
        ("redis://:@localhost", None),
        ("redis://:secret@localhost", some(None, "secret")),
        ("redis://app:secret@localhost", some(Some("app"), "secret")),
        ("redis://app@localhost", some(Some("app"), "")),
        ("redis://a%40b:%3a%2F%25%23@localhost", some(Some("a@b"), ":/%#")),
        ("redis://:a:b@c@localhost", some(None, "a:b@c")),
    ] {
        assert_eq!(login(url), expected, "{url}");
    }
}

#[test]
fn a_refusal_names_the_part_that_is_wrong() {
    for (part, urls) in [
        (
            "scheme",
            &["rediss://h", "redis+sentinel://h", "redis+cluster://h", "unix:///s", "h:6379", ""][..],
        ),
        ("query", &["redis://h?db=1", "redis://h/0?x#y"]),
        ("fragment", &["redis://h#0", "redis://:hunter#2@h?x"]),
        ("user", &["redis://%4:p@h", "redis://%zz:p@h"]),
        ("password", &["redis://:100%@h", "redis://:%4g@h"]),
        (
            "host",
            &[
                "redis://",
                "redis://:6379",
                "redis://a b",
                "redis://[::1",
                "redis://[h]",
                "redis://ü",
            ],
        ),
        (
            "port",
            &["redis://h:", "redis://h:0", "redis://h:65536", "redis://h:+1", "redis://[::1]6379"],
        ),
        (
            "database",
            &[
                "redis://h/x",
                "redis://h/-1",
                "redis://h/1/2",
                "redis://h/4294967296",
                "redis://:a/b@h",
            ],
        ),
    ] {
        for url in urls {
            let refusal = refusal(url);
            assert!(refusal.contains(part), "{url}: {refusal}");
        }
    }
}

#[test]
fn nothing_shows_who_logs_in() {
    let address = parse("redis://admin:hunter2@[::1]:7000/3");
    assert_eq!(address.to_string(), "redis://***@[::1]:7000/3");
    assert_eq!(format!("{address:?}"), "redis://***@[::1]:7000/3");
    assert_eq!(
        format!("{:?}", address.login().unwrap()),
        "Login { user: Some(***), password: *** }"
    );
    for url in
        ["redis://:hunter2@", "redis://hunter2:x", "redis://:%hunter2@h", "redis://:a/hunter2@h"]
    {
        assert!(!refusal(url).contains("hunter2"), "{url}");
    }
}

#[test]
fn the_environment_names_a_server_or_leaves_it_at_the_local_one() {
    assert_eq!(Address::told(None).unwrap(), Address::local());
    let told = Address::told(Some("redis://cache:7000/3".into())).unwrap();
    assert_eq!(told.to_string(), "redis://cache:7000/3");
    assert!(Address::told(Some(String::new().into())).is_err());
}
