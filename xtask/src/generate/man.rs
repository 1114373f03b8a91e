//! Manual pages: one for the program and one for each of its commands.
//!
//! Like the command reference, a page depends only on the definition of the command line. It does
//! not contain the commit that `--version` prints, nor a date.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::commands::{self, laid_out};
use crate::failure::{Context, Failure};

const SECTION: &str = "1";
const SOURCE: &str = concat!("ringwall ", env!("CARGO_PKG_VERSION"));
const MANUAL: &str = "Ringwall manual";

/// The file name and the text of every page.
pub(super) fn pages(command: Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut command = laid_out(command);
    // Sets the full name of every command.
    command.build();
    commands::all(&command).into_iter().map(page).collect()
}

fn page(command: &Command) -> Result<(String, Vec<u8>), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man = Man::new(in_full(command)).section(SECTION).source(SOURCE).manual(MANUAL);
    let mut text = Vec::new();
    render(&man, command, &name, &mut text)
        .context(|| format!("cannot write the page of {name}"))?;
    Ok((man.get_filename(), text))
}

/// The sections of a page. `Man::render` would add a section with the commit of this build.
fn render(man: &Man, command: &Command, name: &str, text: &mut Vec<u8>) -> std::io::Result<()> {
    man.render_title(text)?;
    man.render_name_section(text)?;
    man.render_synopsis_section(text)?;
    man.render_description_section(text)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(text)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(text)?;
    }
    let mut roff = Roff::new();
    if let Some(notes) = command.get_after_long_help().or(command.get_after_help()) {
        roff.control("SH", ["NOTES"]);
        notes.to_string().lines().for_each(|line| {
            roff.text([roman(line)]);
        });
    }
    // `ringwall-grant-read` belongs to `ringwall-grant`.
    if let Some((parent, _)) = name.rsplit_once('-') {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(parent), roman(format!("({SECTION})"))]);
    }
    roff.to_writer(text)
}

/// A command as a manual page should show it.
fn in_full(command: &Command) -> Command {
    // The usage line of `--help`: the one that `clap_mangen` derives from the arguments lacks the
    // `--` before the command of `ringwall run`.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    // `clap_mangen` prints no text for an option that `-h` does not list.
    command.clone().override_usage(usage).mut_args(|arg| arg.hide_short_help(false))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn every_command_has_a_page_of_its_own() {
        let word = Arg::new("word").last(true).required(true).value_name("WORD");
        let rare = Arg::new("rare").long("rare").help("Rarely used").hide_short_help(true);
        let below = Command::new("read").about("Reads").args([word, rare]);
        let middle = Command::new("grant").about("Grants").subcommand(below);
        let hidden = Command::new("secret").hide(true);
        let tool = Command::new("tool").version("1 (abc123)").subcommands([middle, hidden]);
        let pages = pages(tool).unwrap();
        let names: Vec<_> = pages.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["tool.1", "tool-grant.1", "tool-grant-read.1"]);
        let text = |index: usize| String::from_utf8(pages[index].1.clone()).unwrap();
        assert!(text(2).contains("\\fBtool grant read\\fR [OPTIONS] \\-\\- <WORD>"), "{}", text(2));
        assert!(text(2).contains("Rarely used"), "{}", text(2));
        assert!(text(2).contains("\\fBtool\\-grant\\fR(1)"), "{}", text(2));
        for index in 0..pages.len() {
            assert!(!text(index).contains("abc123"), "{}", text(index));
            assert!(!text(index).contains("secret"), "{}", text(index));
        }
    }
}
