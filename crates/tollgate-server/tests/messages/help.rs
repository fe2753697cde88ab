//! The help texts of every command, as the binary prints them.

use std::process::Command;

/// Every command and subcommand with its `--help`.
pub(crate) fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    collect(&mut Vec::new(), &mut texts);
    texts
}

fn collect(command: &mut Vec<String>, texts: &mut Vec<(String, String)>) {
    let help = help(command);
    let subcommands = subcommands(&help);
    texts.push((format!("tollgate {} --help", command.join(" ")).replace("  ", " "), help));
    for subcommand in subcommands {
        command.push(subcommand);
        collect(command, texts);
        command.pop();
    }
}

fn help(command: &[String]) -> String {
    let mut process = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    // Defaults that help shows must not come from the environment of whoever runs the test.
    process.args(command).arg("--help").env_clear();
    let output = process.output().expect("the binary runs");
    assert!(output.status.success(), "tollgate {command:?} --help fails");
    String::from_utf8(output.stdout).unwrap()
}

/// The names under "Commands:", without `help`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Descriptions that wrap are indented deeper.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
