//! `tollgate man`: writes the help of every command as man pages.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;

use super::Exit;

pub(super) fn run(command: Command, out: &Path) -> Exit {
    match write(command, out) {
        Ok(()) => Exit::Success,
        Err(error) => {
            eprintln!("tollgate: --out: {}: {error}", out.display());
            Exit::Usage
        }
    }
}

fn write(command: Command, out: &Path) -> io::Result<()> {
    fs::create_dir_all(out)?;
    clap_mangen::generate_to(without_help(command), out)
}

/// Removes the `help` subcommands, which would be written as redundant pages.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}
