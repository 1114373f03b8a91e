//! Option grammars of the programs in the tables.

use shell::Grammar;

/// Options in the GNU manner: abbreviated, clustered, anywhere.
pub(super) const fn gnu(short: &'static str, long: &'static [&'static str]) -> Grammar {
    Grammar { short, long, flags: &[], abbreviates: true, stops_at_operand: false }
}

/// Long options are whole words.
pub(super) const fn exact(short: &'static str, long: &'static [&'static str]) -> Grammar {
    Grammar { short, long, flags: &[], abbreviates: false, stops_at_operand: false }
}
