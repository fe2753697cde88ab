//! The commands in README.md and docs/*.md work as shown, or are marked with the test that runs them or the reason why
//! none does.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{TOKEN, start_with_admin};
use crate::doc_blocks::{Block, Tested, blocks, root};
use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, tollgate};

const README: &str = include_str!("../../../../README.md");

/// The longest time of one command, in seconds.
const MAX_SECONDS: &str = "20";

/// A directory with the files that the commands read, a service for `localhost:8080`, and the variables of the commands.
struct Workshop {
    scratch: Scratch,
    service: Service,
    variables: Vec<(&'static str, String)>,
}

impl Workshop {
    fn new() -> Self {
        let scratch = Scratch::new();
        scratch.write("policy.yaml", readme_policy());
        let envoy = "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 2 }\n";
        fs::create_dir(scratch.path().join("config")).unwrap();
        scratch.write("config/edge.yaml", envoy);
        scratch.write(
            "limits.yaml",
            "- { namespace: shop, max_value: 2, seconds: 60, variables: [user] }\n",
        );
        let request = |second: u32, ip: &str| {
            format!(
                "{ip} - - [10/Oct/2026:13:55:{second:02} +0000] \"GET /search HTTP/1.1\" 200 12\n"
            )
        };
        scratch.write("access.log", &request(30, "203.0.113.7"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(request(10, "203.0.113.8").as_bytes()).unwrap();
        fs::write(scratch.path().join("access.log.1.gz"), gzip.finish().unwrap()).unwrap();
        Self { scratch, service: Service::start(&[]), variables: Vec::new() }
    }

    /// Returns a workshop whose service has the policy of the README, for the commands of an operator.
    fn of_operator() -> Self {
        let scratch = Scratch::new();
        let service =
            start_with_admin(&["--policy", &scratch.write("policy.yaml", readme_policy())]);
        let variables =
            vec![("TOLLGATE_SERVER", service.url()), ("TOLLGATE_ADMIN_TOKEN", TOKEN.to_owned())];
        Self { scratch, service, variables }
    }

    /// Runs the commands of a block, and compares their output with the page.
    fn run(&self, block: &Block) {
        let mut exports = String::new();
        for (command, expected) in block.commands() {
            if command.starts_with("export ") {
                exports += &format!("{command}\n");
                continue;
            }
            let (is_success, printed) = match command.strip_prefix("curl --json '") {
                Some(rest) => (true, self.post(rest)),
                None => self.shell(&format!("{exports}{command}")),
            };
            if expected.is_empty() {
                assert!(is_success, "{}: {command}\n{printed}", block.place);
            } else if command.starts_with("curl") {
                // Long responses are wrapped.
                assert_eq!(printed, expected.lines().collect::<String>(), "{}", block.place);
            } else {
                assert_eq!(printed, expected, "{}: {command}", block.place);
            }
        }
    }

    /// Sends what curl would send, because old versions of curl do not know `--json`.
    fn post(&self, rest: &str) -> String {
        let (body, path) = rest.split_once("' localhost:8080").expect("an address of the pages");
        self.service.post(path.trim(), body).body
    }

    /// Runs a command in the directory. Returns whether it succeeded, and its output.
    fn shell(&self, command: &str) -> (bool, String) {
        let command = command.replace("localhost:8080", &self.service.address().to_string());
        // Without settings of the environment, as in the other tests.
        let binary = tollgate(&[]);
        let directory = Path::new(binary.get_program()).parent().unwrap();
        let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("timeout");
        shell.args([
            MAX_SECONDS,
            "bash",
            "-euo",
            "pipefail",
            "-c",
            &format!("exec 2>&1\n{command}"),
        ]);
        shell.current_dir(self.scratch.path()).stdin(Stdio::null()).env_clear();
        shell.env("PATH", path).envs(self.variables.iter().cloned());
        let output = shell.output().expect("bash runs");
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }
}

fn readme_policy() -> &'static str {
    let (_, rest) = README.split_once("```yaml\n").expect("the README has a policy");
    let (text, _) = rest.split_once("```").expect("the block ends");
    assert_eq!(text.lines().count(), 10, "the policy in ten lines");
    text
}

#[test]
fn unmarked_commands_work_as_shown() {
    let workshop = Workshop::new();
    let blocks = blocks();
    let run: Vec<_> = blocks.iter().filter(|block| block.tested == Tested::Here).collect();
    run.iter().for_each(|block| workshop.run(block));
    assert!(run.len() >= 8, "only {} blocks are run", run.len());
}

#[test]
fn override_commands_work_as_shown() {
    let workshop = Workshop::of_operator();
    let this_file = Tested::By("crates/tollgate-server/tests/it/documentation.rs".to_owned());
    let blocks = blocks();
    let run: Vec<_> = blocks
        .iter()
        .filter(|block| block.tested == this_file && block.place.starts_with("OPERATING.md:"))
        .collect();
    run.iter().for_each(|block| workshop.run(block));
    assert_eq!(run.len(), 2);
}

#[test]
fn marks_name_a_test_or_a_reason() {
    for Block { place, tested, .. } in blocks() {
        match tested {
            Tested::Here => {}
            Tested::By(file) => {
                let is_test = file.contains("/tests/") && root().join(&file).is_file();
                assert!(is_test, "{place}: {file} is not a test");
            }
            Tested::Not(reason) => assert!(reason.len() >= 10, "{place}: {reason:?} is no reason"),
        }
    }
}

#[test]
fn example_nodes_share_redis() {
    let server = Server::start(Flavor::Redis);
    let blocks = blocks();
    let pages = blocks.iter().filter(|block| block.place.starts_with("SERVING.md:"));
    let commands = pages.flat_map(Block::commands).map(|(command, _)| command);
    let nodes: Vec<Service> = commands
        .filter(|command| command.starts_with("tollgate serve --redis"))
        .map(|command| {
            let url = server.url();
            let args = command.split(' ').skip(1).map(|arg| match arg {
                "redis://localhost:6379" => &url,
                "127.0.0.1:8080" | "127.0.0.1:8081" => "127.0.0.1:0",
                other => other,
            });
            Service::start_as(tollgate(&args.collect::<Vec<_>>()).args(LONG_TIMEOUT))
        })
        .collect();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0].check("k")["remaining"], 99);
    assert_eq!(nodes[1].check("k")["remaining"], 98);
}
