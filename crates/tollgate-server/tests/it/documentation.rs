//! What the README shows is what happens.

use crate::service::{Scratch, Service, run};

const README: &str = include_str!("../../../../README.md");

/// The blocks of a language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let opening = format!("```{language}\n");
    let parts: Vec<&'static str> = README.split(&opening).skip(1).collect();
    parts.into_iter().map(|part| part.split("```").next().expect("a block ends"))
}

/// Commands and what they print.
fn commands() -> impl Iterator<Item = (&'static str, String)> {
    blocks("console").flat_map(|block| {
        block.split("$ ").skip(1).map(|one| {
            let (command, printed) = one.split_once('\n').expect("a command ends its line");
            (command, printed.to_owned())
        })
    })
}

#[test]
fn the_readme_shows_what_the_service_answers() {
    let service = Service::start(&[]);
    let mut asked = 0;
    for (command, printed) in commands() {
        let Some(rest) = command.strip_prefix("curl --json '") else { continue };
        let (body, path) = rest.split_once("' localhost:8080").expect("an address of the README");
        assert_eq!(service.post(path, body).body, printed.trim_end(), "{command}");
        asked += 1;
    }
    assert!(asked >= 3, "the README has its examples");
}

#[test]
fn the_readme_shows_what_its_policy_does() {
    let scratch = Scratch::new();
    let text = blocks("yaml").next().expect("the README has a policy");
    assert_eq!(text.lines().count(), 10, "the policy in ten lines");
    let file = scratch.write("policy.yaml", text);
    let (command, printed) = commands()
        .find(|(command, _)| command.starts_with("tollgate policy explain"))
        .expect("the README explains it");
    let args: Vec<&str> = command
        .split(' ')
        .skip(1)
        .map(|arg| if arg == "policy.yaml" { file.as_str() } else { arg })
        .collect();
    assert_eq!(run(&args).stdout, printed);
}
