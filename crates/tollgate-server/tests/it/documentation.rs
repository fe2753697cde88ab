//! What the README and the pages beside it show is what happens.

use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, run, tollgate};

const README: &str = include_str!("../../../../README.md");
const SERVING: &str = include_str!("../../../../docs/SERVING.md");

/// The blocks of a language.
fn blocks(page: &'static str, language: &str) -> impl Iterator<Item = &'static str> {
    let opening = format!("```{language}\n");
    let parts: Vec<&'static str> = page.split(&opening).skip(1).collect();
    parts.into_iter().map(|part| part.split("```").next().expect("a block ends"))
}

/// Commands and what they print.
fn commands(page: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    blocks(page, "console").flat_map(|block| {
        block.split("$ ").skip(1).map(|one| {
            let (command, printed) = one.split_once('\n').expect("a command ends its line");
            (command, printed.to_owned())
        })
    })
}

#[test]
fn the_pages_show_what_the_service_answers() {
    let service = Service::start(&[]);
    let mut asked = 0;
    for (command, printed) in commands(README).chain(commands(SERVING)) {
        let Some(rest) = command.strip_prefix("curl --json '") else { continue };
        let (body, path) = rest.split_once("' localhost:8080").expect("an address of the pages");
        // Long answers are shown on several lines.
        assert_eq!(service.post(path, body).body, printed.lines().collect::<String>(), "{command}");
        asked += 1;
    }
    assert!(asked >= 3, "the pages have their examples");
}

#[test]
fn the_readme_shows_what_its_policy_does() {
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
fn the_two_commands_that_share_a_redis_do() {
    let server = Server::start(Flavor::Redis);
    let serving = commands(SERVING).filter(|(command, _)| command.starts_with("tollgate serve"));
    let nodes: Vec<Service> = serving
        .map(|(command, _)| {
            let own = server.url();
            let args = command.split(' ').skip(1).map(|arg| match arg {
                "redis://localhost:6379" => &own,
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
