//! The same bytes on a connection that begins with plain checks, and on one that uses hyper from the start.
//!
//! The responses must be equal, except for the date. Every request has its own key, because the times in a response
//! depend on the time since the last request of its key.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Builder;

use super::*;

/// Equal services: one receives requests directly, the others through hyper.
struct Services {
    plain: Arc<Service>,
    hyper: Arc<Service>,
    /// Receives all bytes at once.
    hyper_at_once: Arc<Service>,
}

impl Services {
    async fn new() -> Self {
        let hyper_at_once = service().await;
        Self { plain: service().await, hyper: service().await, hyper_at_once }
    }

    /// Sends the bytes in these pieces and compares the responses. Returns them.
    async fn compare(&self, pieces: &[&[u8]]) -> String {
        let plain = exchange(&self.plain, &[], pieces).await;
        let hyper = exchange(&self.hyper, NOT_PLAIN, pieces).await;
        let all = pieces.concat();
        let at_once = exchange(&self.hyper_at_once, NOT_PLAIN, &[&all]).await;
        // hyper refuses an invalid head at once, or only when it is complete if its begin arrived before.
        if plain != at_once {
            assert_eq!(plain, hyper, "{:?}", String::from_utf8_lossy(&all));
        }
        plain
    }
}

/// Sends the bytes after `first` and its response, closes the sending side, and returns the responses without their dates.
async fn exchange(service: &Arc<Service>, first: &[u8], pieces: &[&[u8]]) -> String {
    let mut connection = Connection::open(service, 1 << 20);
    if !first.is_empty() {
        connection.send(first).await;
        connection.response().await;
    }
    for piece in pieces {
        // The server may have closed the connection.
        if connection.client.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let _ = connection.client.shutdown().await;
    let lines = connection.rest().await;
    let lines = lines.split_inclusive("\r\n").filter(|line| !line.starts_with("date: "));
    lines.collect()
}

fn body(length: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST /check HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn bodies_have_equal_responses() {
    let services = Services::new().await;
    let mut statuses = Vec::new();
    for text in [
        r#"{"key":"a"}"#,
        r#"{"key":"b","cost":100}"#,
        r#"{"key":"c","cost":101}"#,
        r#"{"key":"d","cost":0}"#,
        r#"{"key":"l","costs":{"requests":3,"tokens":1800}}"#,
        r#"{"key":"m","limit":5,"window_ms":60000,"unit":"tokens","costs":{"tokens":4}}"#,
        r#"{"key":"n","cost":1,"costs":{}}"#,
        r#"{"key":"e\"\u00e9\n"}"#,
        r#"{"facts":{"client":"f","path":"/x"},"tenant":"t"}"#,
        r#"{"key":"g","limit":5,"window_ms":60000}"#,
        r#"{"key":"h","limits":["10/min",{"limit":3,"window_ms":1000}]}"#,
        r#"{"key":"i","limits":[{"limit":0,"window_ms":1000}]}"#,
        r#"{"key":""}"#,
        r#"{"key":7}"#,
        r#"{"key":"j","unknown":1}"#,
        r#"{"key":"k""#,
        r#"[]"#,
        "",
        " ",
        "\u{0}",
    ] {
        let response = services.compare(&[&check_with("", text)]).await;
        statuses.push(response.split(' ').nth(1).map(str::to_owned));
    }
    statuses.sort();
    statuses.dedup();
    assert_eq!(statuses, ["200", "400"].map(|status| Some(status.to_owned())));
}

#[tokio::test]
async fn heads_have_equal_responses() {
    let services = Services::new().await;
    let json = "content-type: application/json\r\n";
    let (key, many) = (r#"{"key":"head"}"#, "a: b\r\n".repeat(40));
    for (number, headers) in [
        "connection: keep-alive\r\n",
        "Connection: Close\r\n",
        "connection: te, close\r\n",
        "connection: keep-alive\r\nconnection: close\r\n",
        "expect: 100-continue\r\n",
        "upgrade: h2c\r\nconnection: upgrade\r\n",
        "transfer-encoding: chunked\r\n",
        "content-length: 14\r\n",
        "content-length: 15\r\n",
        "content-type: application/json\r\n",
        "authorization: Bearer x\r\n",
        "x: \u{e9}\r\n",
        "x : y\r\n",
        " x: y\r\n",
        "x\r\n",
        ": y\r\n",
        "x: y\n",
        "x: \u{1}\r\n",
        "\r\n",
        &many,
        &many.repeat(2),
    ]
    .into_iter()
    .enumerate()
    {
        let text = key.replace("head", &format!("{number:04}"));
        let request = body("14", &format!("{json}{headers}"), &text);
        services.compare(&[&request, &check(&format!("next-{number}"))]).await;
    }
    for length in ["014", "+14", "14 ", "0x0e", "", "-1", "99999", "14,14", "18446744073709551616"]
    {
        services.compare(&[&body(length, json, r#"{"key":"leng"}"#)]).await;
    }
    for kind in ["text/plain", "Application/JSON", "application/json; charset=utf-8", "", "json"] {
        let headers = format!("content-type: {kind}\r\n");
        let text = format!(r#"{{"key":"kind-{kind}"}}"#);
        services.compare(&[&body(&text.len().to_string(), &headers, &text)]).await;
    }
    let request = String::from_utf8(check("line")).expect("text");
    for line in [
        "POST /check HTTP/1.0",
        "POST /check HTTP/2.0",
        "POST /check?x=1 HTTP/1.1",
        "POST http://t/check HTTP/1.1",
        "post /check HTTP/1.1",
        "PUT /check HTTP/1.1",
        "POST  /check HTTP/1.1",
        "POST /check/ HTTP/1.1",
        "POST /peek HTTP/1.1",
        "",
        "\r\nPOST /check HTTP/1.1",
    ] {
        let key = format!("line-{}", line.len());
        let changed = request
            .replace("POST /check HTTP/1.1", line)
            .replace("\"line\"", &format!("\"{key}\""));
        let changed =
            changed.replace("content-length: 14", &format!("content-length: {}", 10 + key.len()));
        services.compare(&[changed.as_bytes()]).await;
    }
}

/// A change of the bytes of a pipeline: position, and what happens there.
#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Truncate(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len().max(1);
        match *self {
            Self::Set(at, byte) => bytes[at % length] = byte,
            Self::Insert(at, byte) => bytes.insert(at % length, byte),
            Self::Remove(at) => drop(bytes.remove(at % length)),
            Self::Truncate(at) => bytes.truncate(1 + at % length),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let byte =
        prop_oneof![any::<u8>(), proptest::sample::select(&b"\r\n :,;\0\t/0129abPOST{}\"\\"[..]),];
    let at = any::<usize>();
    prop_oneof![
        4 => (at, byte.clone()).prop_map(|(at, byte)| Change::Set(at, byte)),
        2 => (at, byte).prop_map(|(at, byte)| Change::Insert(at, byte)),
        2 => at.prop_map(Change::Remove),
        1 => at.prop_map(Change::Truncate),
    ]
}

/// Keys that stay different when three of their bytes are changed.
fn keys(case: u32, count: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |number| {
        let digit = char::from_digit(u32::try_from(number % 10).expect("a digit"), 10);
        let digits: String = std::iter::repeat_n(digit.expect("a digit"), 8).collect();
        check(&format!("{case:08}{case:08}{case:08}{case:08}-{digits}"))
    })
}

#[test]
fn changed_and_divided_pipelines_have_equal_responses() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let services = runtime.block_on(Services::new());
    let case = std::cell::Cell::new(0);
    let input = (
        1..6_usize,
        proptest::collection::vec(change(), 0..4),
        proptest::collection::vec(any::<usize>(), 0..4),
    );
    let mut runner =
        TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let result = runner.run(&input, |(count, changes, cuts)| {
        case.set(case.get() + 1);
        let mut bytes = keys(case.get(), count).collect::<Vec<_>>().concat();
        for change in &changes {
            if !bytes.is_empty() {
                change.apply(&mut bytes);
            }
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        runtime.block_on(services.compare(&pieces));
        Ok(())
    });
    result.expect("the responses are equal");
}
