//! Two processes share a quota: the example, run twice. The example is compiled into this test binary, so that the test
//! runs the current code.

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tollgate_testkit::server::{Flavor, Server};

use crate::outbound_fixture::SECOND;

#[path = "../../examples/outbound_igdb.rs"]
#[allow(dead_code, reason = "its main is unused")]
mod outbound_igdb;

/// Environment variable with the number of calls to make.
const CALLS: &str = "TOLLGATE_CALLS";

/// Runs the example if this process was started for it.
fn run_if_example() -> bool {
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

/// Returns the output of a process, stderr last.
fn output_of(process: Child) -> String {
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn calls(output: &str) -> Vec<&str> {
    // The test runner may have written the start of the line.
    output.lines().filter_map(|line| line.find("call ").map(|at| &line[at..])).collect()
}

/// Five calls at 4 per second from two processes take at least a second on any machine: either all fall into one window
/// and the fifth waits until the oldest leaves it, or the calls themselves were slower.
#[test]
fn fifth_call_of_two_processes_waits_for_the_window() {
    if run_if_example() {
        return;
    }
    let test = "outbound_processes::\
                fifth_call_of_two_processes_waits_for_the_window";
    let is_one_window = || {
        let server = Server::start(Flavor::Redis);
        let (start_time, url) = (Instant::now(), server.url());
        let both = [start(test, "3", Some(&url)), start(test, "2", Some(&url))].map(output_of);
        let took = start_time.elapsed();
        assert_eq!(both.iter().map(|output| calls(output).len()).collect::<Vec<_>>(), [3, 2]);
        assert!(took >= SECOND, "{took:?}: {both:?}");
        let made = both.iter().flat_map(|output| calls(output)).map(wait_and_remaining);
        let (waited, immediate): (Vec<_>, Vec<_>) = made.partition(|(waited, _)| *waited > 0.0);
        let mut remaining: Vec<u64> =
            immediate.into_iter().map(|(_, remaining)| remaining).collect();
        remaining.sort_unstable();
        match waited[..] {
            [] => false,
            // The other four calls took the quota, in either process.
            [(wait, _)] => {
                assert!(wait <= took.as_secs_f64(), "{both:?}");
                assert_eq!(remaining, [0, 1, 2, 3], "{both:?}");
                true
            }
            _ => panic!("the limit is four: {both:?}"),
        }
    };
    assert!((0..20).any(|_| is_one_window()), "two processes were never started within a second");
}

/// Returns the wait of a call in seconds, and the remaining quota.
fn wait_and_remaining(call: &str) -> (f64, u64) {
    let (_, rest) = call.split_once("waited ").unwrap();
    let (waited, rest) = rest.split_once("s, ").unwrap();
    (waited.parse().unwrap(), rest.strip_suffix(" left").unwrap().parse().unwrap())
}

#[test]
fn example_prints_calls_and_input_errors() {
    if run_if_example() {
        return;
    }
    let test = "outbound_processes::example_prints_calls_and_input_errors";
    let output = output_of(start(test, "1", None));
    let lines = calls(&output);
    assert!(lines[0].starts_with("call 1 at +0."), "{output}");
    assert!(lines[0].ends_with("s waited 0.000s, 3 left"), "{output}");
    for (calls, url, reason) in [
        ("five", None, "invalid number of calls \"five\": must be a whole number"),
        ("1", Some("http://x"), "REDIS_URL: "),
    ] {
        let output = output_of(start(test, calls, url));
        assert!(
            output.contains(reason) && output.contains("exit ExitCode(unix_exit_status(2))"),
            "{output}"
        );
    }
}
