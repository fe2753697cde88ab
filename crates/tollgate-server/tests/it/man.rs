//! Man pages: one for every command, and man(1) has nothing to say against them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::service::{Scratch, run, tollgate};

/// Names below `Commands:` in what `--help` of a command says, without `help` itself.
fn subcommands(of: &[&str]) -> Vec<String> {
    let told = run(&[of, &["--help"]].concat()).stdout;
    let Some((_, after)) = told.split_once("Commands:\n") else { return Vec::new() };
    let block = after.split("\n\n").next().unwrap();
    let name = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let is_first = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    block.lines().filter(is_first).filter_map(name).filter(|name| name != "help").collect()
}

/// Every command as its words.
fn commands(of: &[&str]) -> Vec<Vec<String>> {
    let mut all = vec![of.iter().map(ToString::to_string).collect()];
    for name in subcommands(of) {
        all.extend(commands(&[of, &[&name]].concat()));
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
fn every_command_has_a_page_and_nothing_else_has() {
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
    assert!(pages["tollgate-serve.1"].contains("TOLLGATE_MAX_KEYS"), "variables are told too");
}

#[test]
fn pages_are_the_same_whatever_the_environment() {
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
fn man_has_nothing_to_say_against_them() {
    // A machine without man(1) has no use for the pages either.
    if Command::new("man").arg("--version").output().is_err() {
        return;
    }
    let scratch = Scratch::new();
    for file in pages(&scratch).keys() {
        let page = scratch.path().join("new").join("man").join(file);
        let mut man = Command::new("man");
        man.args(["--warnings", "--encoding=UTF-8", "--local-file"]).arg(page);
        let ended = man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && told.is_empty(), "{file}: {told}");
        assert!(ended.stdout.len() > 200, "{file}: it has text");
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let ended = run(&["man", "--out", "/dev/null/man"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("--out: /dev/null/man: "), "{}", ended.stderr);
    assert_eq!(run(&["man"]).code, 2);
}
