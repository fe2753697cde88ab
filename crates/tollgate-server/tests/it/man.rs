//! Man pages: one per command, accepted by man(1) without warnings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::service::{Scratch, run, tollgate};

/// Returns the names below `Commands:` in the `--help` of a command, without `help`.
fn subcommands(command: &[&str]) -> Vec<String> {
    let help = run(&[command, &["--help"]].concat()).stdout;
    let Some((_, after)) = help.split_once("Commands:\n") else { return Vec::new() };
    let block = after.split("\n\n").next().unwrap();
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let is_first = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    block.lines().filter(is_first).filter_map(name).filter(|name| name != "help").collect()
}

/// Returns a command and all its subcommands, each as its words.
fn commands(command: &[&str]) -> Vec<Vec<String>> {
    let mut all = vec![command.iter().map(ToString::to_string).collect()];
    for name in subcommands(command) {
        all.extend(commands(&[command, &[&name]].concat()));
    }
    all
}

fn pages(scratch: &Scratch) -> BTreeMap<String, String> {
    let out = scratch.path().join("new").join("man");
    let ended = run(&["man", "--out", out.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    let entries = fs::read_dir(out).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn every_command_has_one_page() {
    let scratch = Scratch::new();
    let pages = pages(&scratch);
    let commands = commands(&[]);
    assert!(commands.len() >= 14, "{commands:?}");
    let name = |words: &Vec<String>| {
        let words: Vec<&str> = ["tollgate"].into_iter().chain(words.iter().map(|w| &**w)).collect();
        format!("{}.1", words.join("-"))
    };
    let expected: BTreeSet<String> = commands.iter().map(name).collect();
    assert_eq!(pages.keys().cloned().collect::<BTreeSet<_>>(), expected);
    for (file, page) in &pages {
        for section in [".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"] {
            assert!(page.contains(section), "{file}: {section}");
        }
    }
    assert!(pages["tollgate-serve.1"].contains("TOLLGATE_MAX_KEYS"), "variables are documented");
}

#[test]
fn pages_do_not_depend_on_the_environment() {
    let scratch = Scratch::new();
    let plain = pages(&scratch);
    let other = scratch.path().join("other");
    let mut command = tollgate(&["man", "--out", other.to_str().unwrap()]);
    command.env("TOLLGATE_SERVER", "http://hunter2:1").env("TOLLGATE_HTTP", "hunter2");
    assert!(command.status().unwrap().success());
    for (file, page) in plain {
        assert!(!page.contains("hunter2"), "{file}");
        assert_eq!(fs::read_to_string(other.join(&file)).unwrap(), page, "{file}");
    }
}

#[test]
fn man_accepts_pages_without_warnings() {
    // Without man(1) this cannot be checked.
    if Command::new("man").arg("--version").output().is_err() {
        return;
    }
    let scratch = Scratch::new();
    for file in pages(&scratch).keys() {
        let page = scratch.path().join("new").join("man").join(file);
        let mut man = Command::new("man");
        man.args(["--warnings", "--encoding=UTF-8", "--local-file"]).arg(page);
        let ended = man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").output().unwrap();
        let warnings = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && warnings.is_empty(), "{file}: {warnings}");
        assert!(ended.stdout.len() > 200, "{file}: the page is not empty");
    }
}

#[test]
fn unwritable_directory_is_named() {
    let ended = run(&["man", "--out", "/dev/null/man"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("--out: /dev/null/man: "), "{}", ended.stderr);
    assert_eq!(run(&["man"]).code, 2);
}
