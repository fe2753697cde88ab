mod secrets;

use super::Address;
use super::parts::{HostPort, Layout, Servers};

fn parse(url: &str) -> Address {
    url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn parse_error(url: &str) -> String {
    url.parse::<Address>().expect_err(url).to_string()
}

fn login(url: &str) -> Option<(Option<String>, String)> {
    let text = |secret: &super::parts::Secret| String::from_utf8(secret.expose().to_vec()).unwrap();
    parse(url).login.map(|login| (login.user.as_ref().map(text), text(&login.password)))
}

#[test]
fn parses_parts_and_applies_defaults() {
    for (url, shown) in [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("REDIS://localhost/", "redis://localhost:6379/0"),
        ("redis://10.0.0.1:7000/15", "redis://10.0.0.1:7000/15"),
        ("redis://[::1]", "redis://[::1]:6379/0"),
        ("redis://u:p@[fe80::1]:1/1", "redis://***@[fe80::1]:1/1"),
        ("redis://my_cache.internal:65535?", "redis://my_cache.internal:65535/0"),
        ("rediss://h", "rediss://h:6379/0"),
        ("rediss://h/2?ca=/a%20b/ca.pem", "rediss://h:6379/2?ca=/a%20b/ca.pem"),
        ("rediss://h?key=k&cert=c&ca=x", "rediss://h:6379/0?ca=x&cert=c&key=k"),
        (
            "rediss://10.0.0.1?server_name=h.example",
            "rediss://10.0.0.1:6379/0?server_name=h.example",
        ),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("unix:///a%40b/%23.sock?db=3", "unix:///a%40b/%23.sock?db=3"),
        ("unix://u:p@/run/redis.sock?db=0", "unix://***@/run/redis.sock"),
        ("redis+cluster://h", "redis+cluster://h:6379"),
        ("redis+cluster://a:1,b:2,[::1]:3/", "redis+cluster://a:1,b:2,[::1]:3"),
        ("rediss+cluster://:p@a,b/0?ca=c", "rediss+cluster://***@a:6379,b:6379?ca=c"),
        ("redis+sentinel://a,b:1/my-master", "redis+sentinel://a:26379,b:1/my-master/0"),
        (
            "rediss+sentinel://:p@a/m/4?sentinel_user=u&ca=c&sentinel_password=p",
            "rediss+sentinel://***@a:26379/m/4?sentinel_user=***&sentinel_password=***&ca=c",
        ),
        (
            "redis+sentinel://a/m?sentinel_password=p%26q",
            "redis+sentinel://a:26379/m/0?sentinel_password=***",
        ),
    ] {
        let address = parse(url);
        assert_eq!(address.to_string(), shown);
        assert_eq!(format!("{address:?}"), shown);
        if !shown.contains("***") {
            assert_eq!(parse(shown), address);
        }
    }
}

#[test]
fn sentinels_have_a_separate_login() {
    let url = "redis+sentinel://app:a@s1,s2:7/main/4?sentinel_user=watch&sentinel_password=%77";
    let Servers::Network { layout, tls: None } = parse(url).servers else { panic!("{url}") };
    let Layout::Sentinel { sentinels, login: Some(login), master, database: 4 } = layout else {
        panic!("{url}")
    };
    let host_port = |host: &str, port| HostPort { host: host.to_owned(), port };
    assert_eq!(
        (sentinels, master.as_str()),
        (vec![host_port("s1", 26379), host_port("s2", 7)], "main")
    );
    assert_eq!(login.user.unwrap().expose(), b"watch");
    assert_eq!(login.password.expose(), b"w");
}

#[test]
fn parses_and_decodes_logins() {
    let login_parts =
        |user: Option<&str>, password: &str| Some((user.map(str::to_owned), password.to_owned()));
    for (url, expected) in [
        ("redis://localhost", None),
        ("redis://@localhost", None),
        ("redis://:@localhost", None),
        ("redis://:secret@localhost", login_parts(None, "secret")),
        ("redis://app:secret@localhost", login_parts(Some("app"), "secret")),
        ("redis://app@localhost", login_parts(Some("app"), "")),
        ("redis://a%40b:%3a%2F%25%23@localhost", login_parts(Some("a@b"), ":/%#")),
        ("redis://:a:b@c@localhost", login_parts(None, "a:b@c")),
        ("unix:///s", None),
        ("unix://app:secret@/s", login_parts(Some("app"), "secret")),
        ("redis+cluster://app:a,b@h,i", login_parts(Some("app"), "a,b")),
        ("redis+sentinel://:secret@h,i/m", login_parts(None, "secret")),
    ] {
        assert_eq!(login(url), expected, "{url}");
    }
}

#[test]
fn errors_name_the_wrong_part() {
    let (schemes, fragments) = (
        ["http://h", "redis-sentinel://h", "redis+unix:///s", "h:6379", "unix:/s", ""],
        ["redis://h#0", "redis://:hunter#2@h?x", "rediss://h#insecure"],
    );
    let hosts =
        ["redis://", "redis://:6379", "redis://a b", "redis://[::1", "redis://[h]", "redis://ü"];
    let invalid_hosts =
        ["redis+cluster://a,", "redis+cluster://,a", "redis+sentinel:///m", "unix://h/s"];
    let ports =
        ["redis://h:", "redis://h:0", "redis://h:65536", "redis://h:+1", "redis://[::1]6379"];
    let databases = ["redis://h/x", "redis://h/-1", "redis://h/1/2", "redis://h/4294967296"];
    let paths = [
        "redis://:a/b@h",
        "redis+cluster://h/1",
        "redis+cluster://h/x",
        "redis+sentinel://h",
        "redis+sentinel://h//0",
        "redis+sentinel://h/m%20",
        "unix://",
        "unix:///",
        "unix:///a@b",
        "unix:///%ff",
        "unix:///a%0",
    ];
    for (part, urls) in [
        ("scheme", &schemes[..]),
        ("fragment", &fragments),
        ("user", &["redis://%4:p@h", "redis://%zz:p@h"]),
        ("password", &["redis://:100%@h", "redis://:%4g@h", "unix://:%4g@/s"]),
        ("host", &hosts),
        ("host", &invalid_hosts),
        ("redis+cluster://", &["redis://a,b", "rediss://a:1,b:2"]),
        ("port", &ports),
        ("port", &["redis+cluster://h:1,i:x", "redis+sentinel://h:0/m"]),
        ("database", &databases),
        ("database", &["unix:///s?db=x", "redis+sentinel://h/m/x", "redis+sentinel://h/m/1/2"]),
        ("path", &paths),
    ] {
        for url in urls {
            let parse_error = parse_error(url);
            assert!(parse_error.contains(part), "{url}: {parse_error}");
        }
    }
}

#[test]
fn errors_suggest_the_right_parameter() {
    for (url, words) in [
        ("redis://h?x=1", "none; remove"),
        ("redis://h?ca=/c", "rediss"),
        ("redis+cluster://h?server_name=x", "rediss"),
        ("redis://h?db=1", "the path is the database"),
        ("rediss://h?sentinel_user=x", "redis+sentinel"),
        ("unix:///s?database=1", "known parameters: db"),
        ("unix:///s?DB=1", "did you mean db?"),
        ("unix:///s?ca=1", "rediss"),
        ("rediss://h?cacert=/c", "did you mean ca?"),
        ("rediss://h?certs=/c", "did you mean cert?"),
        ("rediss://h?servername=x", "did you mean server_name?"),
        ("rediss://h?insecure=true", "known parameters: ca, cert, key, server_name"),
        ("redis+sentinel://h/m?sentinel_pasword=x", "did you mean sentinel_password?"),
        ("rediss://h?ca", "ca of a Redis address must have a value"),
        ("rediss://h?ca=", "ca of a Redis address must have a value"),
        ("rediss://h?ca=%", "ca of a Redis address must have a value"),
        ("rediss://h?ca=%ff", "ca of a Redis address must be UTF-8"),
        ("rediss://h?ca=a&ca=b", "ca of a Redis address is given twice"),
        ("rediss://h?cert=c", "cert of a Redis address also needs key"),
        ("rediss://h?key=c", "key of a Redis address also needs cert"),
        ("rediss://h?server_name=a%20b", "must be a DNS name"),
        ("redis+sentinel://h/m?sentinel_user=x", "also needs sentinel_password"),
    ] {
        let parse_error = parse_error(url);
        assert!(parse_error.contains(words), "{url}: {parse_error}");
    }
}

#[test]
fn environment_variable_defaults_to_the_local_server() {
    assert_eq!(Address::from_optional_url(None).unwrap(), Address::local());
    let address = Address::from_optional_url(Some("redis://cache:7000/3".into())).unwrap();
    assert_eq!(address.to_string(), "redis://cache:7000/3");
    assert!(Address::from_optional_url(Some(String::new().into())).is_err());
}
