//! Content from outside: which commands bring it, where it would land, and the edit that makes it
//! land in quarantine.
//!
//! The programs are a table ([`table`]). The exact strings follow seven rules:
//! R1 a clone without a directory gets one right behind its source; R2 an explicit destination keeps
//! its last name and its quotes; R3 option values are replaced in place; R4 curl, wget, aria2c and
//! yt-dlp get their option right behind the program; R5 gh, pip, npm and tar get it at their end;
//! R6 directories given as options become the quarantine itself; R7 everything else stays byte for
//! byte.

mod edits;
mod flow;
mod landing;
mod table;
mod unpack;

use std::path::Path;

use shell::{Command, Word, parse_options};

use self::edits::{edit_tail, named, push, whole};
pub(super) use self::flow::{inner_brings, is_fed_content, output_is_content};
use self::landing::Fetching;
pub(super) use self::unpack::unpack_dirs;
use super::Lower;
use super::place::Place;

/// The fetches of one command.
pub(super) fn lower(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    if let Some((row, arguments)) = table::find(command) {
        let fetch = Fetching { row, command, place, by: row.title() };
        fetch.lower(lower, arguments);
    }
    let fed = is_fed_content(lower.analysis, command);
    match program {
        "tar" | "bsdtar" | "gtar" | "cpio" | "unzip" | "7z" | "7za" if fed => {
            unpack::unpack(lower, command, place);
        }
        "tee" | "sponge" if fed => {
            let parsed = parse_options(command.arguments(), &shell::Grammar::PLAIN);
            for word in parsed.operands {
                to_file(lower, command, word, place);
            }
        }
        "dd" if fed => {
            for word in command.arguments() {
                if let Some(file) = word.value.known().and_then(|text| text.strip_prefix("of=")) {
                    let edit = edit_tail(lower, word, 3, &named(lower, Path::new(file)));
                    push(
                        lower,
                        command,
                        "dd",
                        place.known(file, false),
                        named(lower, Path::new(file)),
                        edit,
                    );
                }
            }
        }
        _ => {}
    }
}

/// A redirection or `tee` of content.
pub(super) fn to_file(lower: &mut Lower<'_>, command: &Command, word: &Word, place: &Place<'_>) {
    let by = command.program().unwrap_or("a redirection").to_owned();
    match word.value.known() {
        Some(text) => {
            let new = named(lower, Path::new(text));
            let edit = whole(word, &new);
            push(lower, command, &by, place.resolve(&word.value), new, edit);
        }
        None => lower.opaque(lower.shown(command), "cannot determine where the content is written"),
    }
}
