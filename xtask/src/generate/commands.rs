//! The commands of a command line, in the form that generated pages show them.

use clap::Command;

/// Help is formatted for this many columns.
pub(super) const WIDTH: usize = 100;

/// Fixes the width of a command and of its subcommands, and removes what is the same in all of them.
pub(super) fn laid_out(command: Command) -> Command {
    command
        .term_width(WIDTH)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .mut_subcommands(laid_out)
}

/// A command and its subcommands at every depth, without the hidden ones.
pub(super) fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    std::iter::once(command).chain(below.flat_map(all)).collect()
}
