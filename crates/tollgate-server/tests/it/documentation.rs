//! The examples in README.md and docs/SERVING.md work as shown.

use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, run, tollgate};

const README: &str = include_str!("../../../../README.md");
const SERVING: &str = include_str!("../../../../docs/SERVING.md");

/// Returns the code blocks of a language.
fn blocks(page: &'static str, language: &str) -> impl Iterator<Item = &'static str> {
    let opening = format!("```{language}\n");
    let parts: Vec<&'static str> = page.split(&opening).skip(1).collect();
    parts.into_iter().map(|part| part.split("```").next().expect("a block ends"))
}

/// Returns the commands of console blocks with their output.
fn commands(page: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    blocks(page, "console").flat_map(|block| {
        block.split("$ ").skip(1).map(|example| {
            let (command, printed) = example.split_once('\n').expect("a command line");
            (command, printed.to_owned())
        })
    })
}

#[test]
fn responses_in_examples_are_exact() {
    let service = Service::start(&[]);
    let mut examples = 0;
    for (command, printed) in commands(README).chain(commands(SERVING)) {
        let Some(rest) = command.strip_prefix("curl --json '") else { continue };
        let (body, path) = rest.split_once("' localhost:8080").expect("an address of the pages");
        // Long responses are wrapped.
        assert_eq!(service.post(path, body).body, printed.lines().collect::<String>(), "{command}");
        examples += 1;
    }
    assert!(examples >= 3, "only {examples} examples found");
}

#[test]
fn readme_policy_explains_as_shown() {
    let scratch = Scratch::new();
    let text = blocks(README, "yaml").next().expect("the README has a policy");
    assert_eq!(text.lines().count(), 10, "the policy in ten lines");
    let file = scratch.write("policy.yaml", text);
    let (command, printed) = commands(README)
        .find(|(command, _)| command.starts_with("tollgate policy explain"))
        .expect("the README explains it");
    let args: Vec<&str> = command
        .split(' ')
        .skip(1)
        .map(|arg| if arg == "policy.yaml" { file.as_str() } else { arg })
        .collect();
    assert_eq!(run(&args).stdout, printed);
}

#[test]
fn example_nodes_share_redis() {
    let server = Server::start(Flavor::Redis);
    let serving = commands(SERVING).filter(|(command, _)| command.starts_with("tollgate serve"));
    let nodes: Vec<Service> = serving
        .map(|(command, _)| {
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
