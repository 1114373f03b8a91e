//! The command reference: every command with its words, as `--help` explains them.
//!
//! Depends on the definition alone: neither on the width of a terminal nor on the commit that
//! `--version` names.

use std::fmt::Write;

use clap::Command;

/// Help is laid out for this many columns.
const WIDTH: usize = 100;
/// What stands in the fenced block; what the command is for stands above it, as prose.
const TEMPLATE: &str = "{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The whole page.
pub(super) fn page(command: Command) -> String {
    let mut command = laid_out(command);
    // Gives every command its full name.
    command.build();
    let mut commands = Vec::new();
    collect(&command, &mut commands);

    let mut page = String::from(
        "<!-- Written by `cargo xtask gen` from crates/cli/src/args.rs. Edit that file. -->\n\n\
         # Command reference\n\n\
         Every command takes `--help`.\n\n",
    );
    for command in &commands {
        let name = name(command);
        let link = name.replace(' ', "-");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "- [`{name}`](#{link}): {about}");
    }
    for command in commands {
        page.push_str(&section(command));
    }
    page
}

/// A command and all those below it.
fn collect<'a>(command: &'a Command, into: &mut Vec<&'a Command>) {
    into.push(command);
    for below in command.get_subcommands() {
        if !below.is_hide_set() {
            collect(below, into);
        }
    }
}

fn section(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let help = command.clone().help_template(TEMPLATE).render_long_help().to_string();
    let lines: Vec<_> = help.trim().lines().map(str::trim_end).collect();
    format!("\n## {}\n\n{}\n\n```text\n{}\n```\n", name(command), about.trim(), lines.join("\n"))
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

/// Fixes the width of a command and of all those below it, and leaves out what is the same in all.
fn laid_out(command: Command) -> Command {
    command
        .term_width(WIDTH)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .mut_subcommands(laid_out)
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn every_command_has_a_section_under_its_full_name() {
        let below = Command::new("read").about("Reads").long_about("Reads.\n\nSlowly.");
        let middle = Command::new("grant").about("Grants").subcommand(below);
        let hidden = Command::new("secret").hide(true);
        let page = page(Command::new("tool").version("1 (abc123)").subcommands([middle, hidden]));
        for expected in [
            "- [`tool grant read`](#tool-grant-read): Reads\n",
            "## tool grant read\n\nReads.\n\nSlowly.\n\n```text\nUsage: tool grant read\n",
        ] {
            assert!(page.contains(expected), "{expected:?} is not in:\n{page}");
        }
        for unexpected in ["secret", "abc123", "## tool help"] {
            assert!(!page.contains(unexpected), "{unexpected:?} is in:\n{page}");
        }
    }

    #[test]
    fn long_help_is_wrapped_at_a_fixed_width() {
        let arg = Arg::new("x").long("x").help("many words ".repeat(30));
        let page = page(Command::new("tool").arg(arg));
        assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
    }
}
