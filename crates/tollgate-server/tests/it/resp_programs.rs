//! RESP with the programs of Redis: `redis-cli` and `redis-benchmark` unmodified, and the error texts of `redis-server`.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use tollgate_testkit::server::{Certificates, Flavor, Identity, Server};

use crate::resp_client::{RespClient, encode, readable, resp_address, start, start_with};
use crate::service::Service;

const TOKEN: &str = "a-token-for-checks-0123456789abcdef";

fn program(name: &str, address: SocketAddr, arguments: &[&str]) -> Output {
    let mut command = Command::new(name);
    command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{name}: {error}; run scripts/servers"))
}

fn cli(address: SocketAddr, arguments: &[&str]) -> String {
    let output = program("redis-cli", address, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim_end().replace('\n', " ")
}

#[test]
fn redis_cli_works_unmodified() {
    let (_service, address) = start(&[]);
    let throttle = ["CL.THROTTLE", "user123", "15", "30", "60"];
    assert_eq!(cli(address, &throttle), "0 16 15 -1 2");
    assert_eq!(cli(address, &["-3", "PING"]), "PONG");
    assert_eq!(cli(address, &["-n", "0", "PING"]), "PONG");
    assert!(cli(address, &["-3", "TOLLGATE.CHECK", "client=a b"]).starts_with("1 100 99 -1 "));
    assert!(cli(address, &["COMMAND", "DOCS"]).contains("cl.throttle"));
    assert!(cli(address, &["INFO"]).contains("redis_version:7."));
    assert_eq!(
        cli(address, &["-r", "3", "CL.THROTTLE", "r", "15", "1", "86400"])
            .split(' ')
            .filter(|word| *word == "16")
            .count(),
        3
    );
}

#[test]
fn redis_cli_authenticates() {
    let (_service, address) = start_with(&[], &[("TOLLGATE_CHECK_TOKEN", TOKEN)]);
    assert_eq!(cli(address, &["PING"]), "NOAUTH Authentication required.");
    for login in [&["-a", TOKEN][..], &["--user", "default", "--pass", TOKEN], &["-3", "-a", TOKEN]]
    {
        let arguments = [login, &["--no-auth-warning", "PING"]].concat();
        assert_eq!(cli(address, &arguments), "PONG", "{login:?}");
    }
}

#[test]
fn redis_cli_works_over_tls() {
    let certificates = Certificates::new();
    let Identity { certificate, key, .. } = &certificates.server;
    let [certificate, key, ca] =
        [certificate, key, &certificates.ca].map(|path| path.to_str().expect("UTF-8"));
    let args = ["--resp", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
    let service = Service::start(&args);
    let address = resp_address(&service, "resps");
    let throttle = ["--tls", "--cacert", ca, "CL.THROTTLE", "user123", "15", "30", "60"];
    assert_eq!(cli(address, &throttle), "0 16 15 -1 2");
}

#[test]
fn redis_benchmark_works_unmodified() {
    let (_service, address) = start(&[]);
    for pipeline in ["1", "16", "64"] {
        let options = ["-n", "2000", "-c", "10", "-P", pipeline, "-r", "100", "--csv", "-q"];
        let command = ["CL.THROTTLE", "key:__rand_int__", "15", "30", "60"];
        let output = program("redis-benchmark", address, &[&options[..], &command].concat());
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.concat();
        assert!(
            output.status.success() && !text.contains("WARNING") && !text.contains("rror"),
            "{text}"
        );
        assert!(text.contains("CL.THROTTLE"), "{text}");
    }
}

/// Sends the same bytes to both servers and returns their replies.
fn both(ours: SocketAddr, redis: u16, input: &[u8], replies: usize) -> [String; 2] {
    [ours, SocketAddr::from(([127, 0, 0, 1], redis))].map(|address| {
        let mut client = RespClient::connect(address);
        client.send(input).unwrap();
        let texts: Vec<String> = (0..replies).map(|_| readable(&client.reply().unwrap())).collect();
        texts.join("\n")
    })
}

#[test]
fn replies_equal_those_of_redis() {
    let (_service, address) = start(&[]);
    let redis = Server::start(Flavor::Redis);
    let commands: [&[&str]; 40] = [
        &["PING"],
        &["PING", "a b"],
        &["PING", "a", "b"],
        &["ECHO"],
        &["ECHO", "a", "b"],
        &["ECHO", ""],
        &["SELECT", "0"],
        &["SELECT", "99"],
        &["SELECT", "x"],
        &["SELECT"],
        &["UNKNOWN"],
        &["unknown", "a", "b c", "d\r\ne"],
        &["UNKNOWN", "x\0y", ""],
        &["", "a"],
        &["CLIENT"],
        &["CLIENT", "NOTHING"],
        &["CLIENT", "SETNAME"],
        &["CLIENT", "SETNAME", "a b"],
        &["CLIENT", "SETNAME", "ok"],
        &["CLIENT", "SETNAME", ""],
        &["CLIENT", "GETNAME"],
        &["CLIENT", "GETNAME", "x"],
        &["CLIENT", "ID", "x"],
        &["CLIENT", "NO-EVICT", "on"],
        &["CLIENT", "NO-EVICT", "x"],
        &["CLIENT", "NO-EVICT"],
        &["CONFIG"],
        &["CONFIG", "NOTHING"],
        &["CONFIG", "GET"],
        &["CONFIG", "GET", "nothing"],
        &["COMMAND", "NOTHING"],
        &["COMMAND", "INFO", "nothing"],
        &["HELLO", "1"],
        &["HELLO", "x"],
        &["HELLO", "2", "AUTH", "x"],
        &["HELLO", "3", "nothing"],
        &["HELLO", "3", "SETNAME", "a b"],
        &["AUTH"],
        &["AUTH", "x"],
        &["AUTH", "a", "b", "c"],
    ];
    for command in commands {
        let [ours, theirs] = both(address, redis.port(), &encode(command), 1);
        assert_eq!(ours, theirs, "{command:?}");
    }
    let long = ["x".repeat(200), "y".repeat(200)];
    let [ours, theirs] = both(address, redis.port(), &encode(&long), 1);
    assert_eq!(ours, theirs);
    let inputs: [&[u8]; 14] = [
        b"*a\r\n",
        b"*99999999999999999999\r\n",
        b"*1\r\nPING\r\n",
        b"*1\r\n$a\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$99999999999999999999\r\n",
        b"PING \"\r\n",
        b"PING 'a'b\r\n",
        b"*-7\r\n*0\r\n\r\nPING\r\n",
        b"ECHO \"\\x41\\n\\\"\" \r\n",
        b"echo 'it\\'s'\r\n",
        b"RESET\r\n",
        b"*1\r\n$4\r\nQUIT\r\n",
        b"*3\r\n$4\r\nPING\r\n$1\r\na\r\n:1\r\n",
    ];
    for input in inputs {
        let [ours, theirs] = both(address, redis.port(), input, 1);
        assert_eq!(ours, theirs, "{:?}", input.escape_ascii().to_string());
    }
    // HELLO and CLIENT INFO differ in their values, not in their form.
    for input in [encode(&["HELLO", "3"]), encode(&["HELLO", "2"]), encode(&["HELLO"])] {
        let [ours, theirs] = both(address, redis.port(), &input, 1).map(|text| {
            let words = text
                .split(' ')
                .map(|word| {
                    if word.contains(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
                        "N"
                    } else {
                        word
                    }
                })
                .collect::<Vec<_>>();
            words.join(" ")
        });
        assert_eq!(ours, theirs);
    }
}
