//! No message or `Debug` output contains a login, however the URL is written or mistyped.

use proptest::prelude::*;

use super::{Address, parse, parse_error};
use crate::RedisStore;
use crate::connection::Route;

const SECRET: &str = "hunter2";

#[test]
fn display_debug_and_errors_hide_logins() {
    let address = parse("redis://admin:hunter2@[::1]:7000/3");
    assert_eq!(address.to_string(), "redis://***@[::1]:7000/3");
    assert_eq!(format!("{:?}", address.login.unwrap()), "Login { user: Some(***), password: *** }");
    for url in
        ["redis://:hunter2@", "redis://hunter2:x", "redis://:%hunter2@h", "redis://:a/hunter2@h"]
    {
        assert!(!parse_error(url).contains(SECRET), "{url}");
    }
}

/// Returns every text that may be shown for a URL.
fn shown(url: &str) -> String {
    match url.parse::<Address>() {
        Err(error) => format!("{error} {error:?}"),
        Ok(address) => {
            let route = Route::from(&address);
            let builder = format!("{:?}", RedisStore::builder(address.clone()));
            let store = RedisStore::new(address.clone());
            format!("{address} {address:?} {route} {route:?} {builder} {store:?}")
        }
    }
}

/// Generates a secret with arbitrary text around it, mostly URL delimiters.
fn secrets() -> impl Strategy<Value = String> {
    let around = || "([:/?#@%&=,+ \\[\\]]|ca=|db=|://|\\PC){0,5}";
    (around(), around()).prop_map(|(before, after)| format!("{before}{SECRET}{after}"))
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

proptest! {
    #[test]
    fn no_form_of_login_is_shown(secret in secrets(), is_escaped: bool) {
        let login = if is_escaped { escaped(&secret) } else { secret };
        for url in [
            format!("redis://:{login}@h"),
            format!("redis://u:{login}@h:1/2"),
            format!("redis://{login}:p@h"),
            format!("redis://{login}@h"),
            format!("rediss://u:{login}@h/1?ca=/x&server_name=y"),
            format!("unix://u:{login}@/s?db=1"),
            format!("redis+cluster://u:{login}@h,i:1"),
            format!("rediss+cluster://{login}@h,i:1"),
            format!("redis+sentinel://u:{login}@h,i:1/m/2"),
            format!("rediss+sentinel://{login}:p@h/m?sentinel_password=x"),
        ] {
            prop_assert!(!shown(&url).contains(SECRET), "{}", url);
            prop_assert!(!is_escaped || url.parse::<Address>().is_ok(), "{}", url);
        }
        // An unescaped & would end the parameter.
        let value = login.replace('&', "%26");
        for url in [
            format!("redis+sentinel://h/m?sentinel_password={value}"),
            format!("rediss+sentinel://h/m?sentinel_user={value}&sentinel_password={value}&ca=c"),
        ] {
            prop_assert!(!shown(&url).contains(SECRET), "{}", url);
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "(rediss?|unix)(\\+cluster|\\+sentinel)?://\\PC{0,40}") {
        let _ = shown(&text);
    }
}
