//! Two processes share a quota: the example, run twice. It is part of this program, so that what is run is
//! what was built.

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tollgate_testkit::server::{Flavor, Server};

use crate::outbound_fixture::SECOND;

#[path = "../../examples/outbound_igdb.rs"]
#[allow(dead_code, reason = "its main is not ours")]
mod outbound_igdb;

/// Where a process finds how many calls to make.
const CALLS: &str = "TOLLGATE_CALLS";

/// The example, if this process is to be it.
fn is_example() -> bool {
    let Ok(calls) = env::var(CALLS) else { return false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let code = runtime.block_on(outbound_igdb::run(Some(calls)));
    println!("\nexit {code:?}");
    true
}

fn start(test: &str, calls: &str, url: Option<&str>) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CALLS, calls).env_remove("REDIS_URL");
    command.envs(url.map(|url| ("REDIS_URL", url)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What a process printed, errors last.
fn printed(process: Child) -> String {
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn calls(printed: &str) -> Vec<&str> {
    // The test runner may have begun the line.
    printed.lines().filter_map(|line| line.find("call ").map(|at| &line[at..])).collect()
}

/// Five calls at four a second from two processes take a second, on any machine: either they all fall into
/// one window, and the fifth waits until the oldest has left it, or they were slower by themselves.
#[test]
fn of_five_calls_of_two_processes_the_fifth_waits_for_the_first_to_leave() {
    if is_example() {
        return;
    }
    let test = "outbound_processes::\
                of_five_calls_of_two_processes_the_fifth_waits_for_the_first_to_leave";
    let is_one_window = || {
        let server = Server::start(Flavor::Redis);
        let (began, url) = (Instant::now(), server.url());
        let both = [start(test, "3", Some(&url)), start(test, "2", Some(&url))].map(printed);
        let took = began.elapsed();
        assert_eq!(both.iter().map(|printed| calls(printed).len()).collect::<Vec<_>>(), [3, 2]);
        assert!(took >= SECOND, "{took:?}: {both:?}");
        let made = both.iter().flat_map(|printed| calls(printed)).map(waited_and_left);
        let (waited, at_once): (Vec<_>, Vec<_>) = made.partition(|(waited, _)| *waited > 0.0);
        let mut left: Vec<u64> = at_once.into_iter().map(|(_, left)| left).collect();
        left.sort_unstable();
        match waited[..] {
            [] => false,
            // The others had the four, whichever of the two they were in.
            [(wait, _)] => {
                assert!(wait <= took.as_secs_f64(), "{both:?}");
                assert_eq!(left, [0, 1, 2, 3], "{both:?}");
                true
            }
            _ => panic!("there was room for four: {both:?}"),
        }
    };
    assert!((0..20).any(|_| is_one_window()), "two processes were never started within a second");
}

/// How long a call waited, in seconds, and what it left.
fn waited_and_left(call: &str) -> (f64, u64) {
    let (_, rest) = call.split_once("waited ").unwrap();
    let (waited, rest) = rest.split_once("s, ").unwrap();
    (waited.parse().unwrap(), rest.strip_suffix(" left").unwrap().parse().unwrap())
}

#[test]
fn the_example_tells_each_call_and_what_is_wrong() {
    if is_example() {
        return;
    }
    let test = "outbound_processes::the_example_tells_each_call_and_what_is_wrong";
    let alone = printed(start(test, "1", None));
    let lines = calls(&alone);
    assert!(lines[0].starts_with("call 1 at +0."), "{alone}");
    assert!(lines[0].ends_with("s waited 0.000s, 3 left"), "{alone}");
    for (calls, url, reason) in [
        ("five", None, "how many calls? \"five\" is not a whole number"),
        ("1", Some("http://x"), "REDIS_URL: "),
    ] {
        let told = printed(start(test, calls, url));
        assert!(
            told.contains(reason) && told.contains("exit ExitCode(unix_exit_status(2))"),
            "{told}"
        );
    }
}
