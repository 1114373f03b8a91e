//! The command reference: every command with its arguments, as `--help` explains them.
//!
//! It depends only on the definition of the command line, not on the width of a terminal nor on the
//! commit that `--version` prints.

use std::fmt::Write;

use clap::Command;

use super::commands::{self, laid_out};

/// What is in the fenced block. The description of the command is above it, as prose.
const TEMPLATE: &str = "{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The whole page.
pub(super) fn page(command: Command) -> String {
    let mut command = laid_out(command);
    // Sets the full name of every command.
    command.build();
    let commands = commands::all(&command);

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

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::super::commands::WIDTH;
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
