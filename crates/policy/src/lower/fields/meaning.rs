//! What a field holds, by its name. The last word decides: a `content_path` is a path, a
//! `file_type` is not.

use super::kind::Kind;
use super::words::{singular, words};

/// What the texts of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Paths, whatever they look like.
    Path,
    /// What a tool that moves things moves, or where to. Paths as well.
    End,
    /// One side of a transfer, mostly of files: a path where the text could be one.
    Side,
    /// As likely something else: `to`, `url`.
    Loose,
    /// Hardly ever a path: counts where it would lead out.
    Hint,
    /// Something below a path field, in a field whose own name says nothing.
    Inherited,
    /// A pattern of paths.
    Glob,
    /// A pattern of paths or of text.
    Pattern,
    /// Shell text.
    Command,
    /// Certainly no path.
    Plain,
    /// The name says nothing.
    Unknown,
}

const PATH: &[&str] = &["cwd", "notebook", "pwd", "root", "workspace"];
/// Endings that make any word a path: `file`, `filepath`, `workdir`, `pathname`.
const PATH_ENDINGS: &[&str] =
    &["dir", "directory", "dirname", "file", "filename", "folder", "path", "pathname"];
/// Endings that only look like those.
const NOT_PATH_ENDINGS: &[&str] = &["jmespath", "jsonpath", "nadir", "profile", "xpath"];
const SIDE: &[&str] =
    &["dest", "destination", "dockerfile", "makefile", "output", "source", "src", "target"];
const LOOSE: &[&str] = &["from", "href", "input", "link", "location", "to", "uri", "url"];
const HINT: &[&str] = &[
    "archive",
    "attachment",
    "binary",
    "config",
    "database",
    "db",
    "executable",
    "image",
    "module",
    "project",
    "repo",
    "repository",
    "upload",
];
const COMMAND: &[&str] = &["bash", "cmd", "cmdline", "command", "commandline", "shell"];
/// Words after which a path is not a path any more, and below which nothing is inherited.
const PLAIN: &[&str] = &[
    "body",
    "byte",
    "cause",
    "checksum",
    "code",
    "column",
    "comment",
    "content",
    "count",
    "data",
    "date",
    "delimiter",
    "depth",
    "description",
    "diff",
    "encoding",
    "exclude",
    "ext",
    "extension",
    "filter",
    "format",
    "hash",
    "id",
    "index",
    "kind",
    "label",
    "lang",
    "language",
    "length",
    "level",
    "limit",
    "max",
    "message",
    "mime",
    "min",
    "mode",
    "number",
    "offset",
    "patch",
    "permission",
    "position",
    "prompt",
    "reason",
    "regex",
    "replace",
    "search",
    "separator",
    "sha",
    "size",
    "status",
    "string",
    "summary",
    "text",
    "time",
    "timestamp",
    "title",
    "type",
    "version",
];
/// Last words that leave the meaning to the word before: `file_name`, `path_list`.
const TRANSPARENT: &[&str] = &["array", "list", "name"];
/// Names of fields that hold what the field above them is about: `path: {"value": …}`.
const NAMING: &[&str] = &["key", "name", "ref", "value"];
/// Words for the two ends of a move, besides [`SIDE`] and [`LOOSE`].
const ENDS: &[&str] = &["new", "old"];
/// Words that make a field something written, also in a tool that reads.
const WRITTEN: &[&str] = &[
    "dest",
    "destination",
    "download",
    "export",
    "out",
    "outdir",
    "outfile",
    "outpath",
    "output",
    "save",
    "write",
];

/// What a field of this name holds in a tool of this kind.
pub(super) fn of(key: &str, kind: Kind) -> Meaning {
    let mut words = words(key);
    words.retain(|word| !word.chars().all(char::is_numeric));
    while words.len() > 1 && words.last().is_some_and(|word| is_transparent(word)) {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else { return Meaning::Unknown };
    let said_before = |wanted: Meaning| before.iter().any(|word| of_word(word) == wanted);
    match of_word(last) {
        // XPath in camel case.
        Meaning::Path if last == "path" && before.last().is_some_and(|word| word == "x") => {
            Meaning::Plain
        }
        Meaning::Glob | Meaning::Pattern if before.iter().any(|word| is_excluding(word)) => {
            Meaning::Plain
        }
        Meaning::Side | Meaning::Loose if kind == Kind::Moves => Meaning::End,
        Meaning::Unknown if kind == Kind::Moves && is_in(ENDS, last) => Meaning::End,
        Meaning::Loose | Meaning::Hint | Meaning::Unknown if said_before(Meaning::Path) => {
            Meaning::Side
        }
        Meaning::Unknown if said_before(Meaning::Command) => Meaning::Command,
        Meaning::Unknown if said_before(Meaning::Side) || said_before(Meaning::Loose) => {
            Meaning::Hint
        }
        meaning => meaning,
    }
}

/// Whether a word alone names a path.
pub(super) fn is_path_word(word: &str) -> bool {
    of_word(word) == Meaning::Path
}

/// Whether a field holds what the field above it is about.
pub(super) fn is_naming(key: &str) -> bool {
    matches!(words(key).as_slice(), [word] if is_in(NAMING, word))
}

/// Whether a field says that something is written to it.
pub(super) fn is_destination(key: &str) -> bool {
    words(key).iter().any(|word| is_in(WRITTEN, word))
}

/// Whether a number makes sense in a field that is called after paths: `files: 3`, `max_file: 1`.
pub(super) fn may_be_number(key: &str) -> bool {
    let words = words(key);
    words.iter().any(|word| matches!(word.as_str(), "max" | "min" | "num" | "root" | "total"))
        || words.last().is_some_and(|word| word.ends_with('s'))
}

fn of_word(word: &str) -> Meaning {
    let one = singular(word);
    let ends = |endings: &[&str]| endings.iter().any(|ending| one.ends_with(ending));
    if is_in(SIDE, word) {
        Meaning::Side
    } else if is_in(PATH, word) || (ends(PATH_ENDINGS) && !ends(NOT_PATH_ENDINGS)) {
        Meaning::Path
    } else if is_in(LOOSE, word) {
        Meaning::Loose
    } else if is_in(COMMAND, word) {
        Meaning::Command
    } else if is_in(HINT, word) {
        Meaning::Hint
    } else if matches!(one.as_str(), "glob" | "wildcard") {
        Meaning::Glob
    } else if matches!(one.as_str(), "include" | "pattern") {
        Meaning::Pattern
    } else if is_in(PLAIN, word) {
        Meaning::Plain
    } else {
        Meaning::Unknown
    }
}

fn is_transparent(word: &str) -> bool {
    is_in(TRANSPARENT, word) || word.chars().count() == 1
}

fn is_excluding(word: &str) -> bool {
    matches!(word, "exclude" | "excluded" | "ignore" | "ignored" | "skip")
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.contains(&word) || list.contains(&singular(word).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides() {
        for (meaning, keys) in [
            (
                Meaning::Path,
                &[
                    "path",
                    "paths",
                    "file",
                    "file1",
                    "path1",
                    "PDFPath",
                    "content_path",
                    "textFile",
                    "pathname",
                    "dirpath",
                    "basedir",
                    "workdir",
                    "rootdir",
                    "file_name",
                    "fileNames",
                    "filename",
                    "path_list",
                    "fileA",
                    "directories",
                    "cwd",
                    "outputDir",
                    "path_b",
                    "urlPath",
                ][..],
            ),
            (
                Meaning::Side,
                &["source", "sources", "destination", "path_to", "file_to_read", "file_url"],
            ),
            (Meaning::Loose, &["from", "to", "url", "image_url"]),
            (Meaning::Hint, &["attachments", "repo", "target_branch", "url_slug"]),
            (Meaning::Command, &["command", "cmd", "shell_command", "command_line", "commands"]),
            (Meaning::Glob, &["glob", "globs", "file_glob"]),
            (Meaning::Pattern, &["pattern", "include", "file_pattern"]),
            (
                Meaning::Plain,
                &[
                    "file_type",
                    "path_count",
                    "directory_depth",
                    "file_index",
                    "root_cause",
                    "content",
                    "contents",
                    "xPath",
                    "excludePatterns",
                    "file_id",
                    "old_string",
                    "path_separator",
                ],
            ),
            (Meaning::Unknown, &["name", "profile", "xpath", "query", "user_name", "", "1", "_"]),
        ] {
            for key in keys {
                assert_eq!(of(key, Kind::Unclear), meaning, "{key}");
            }
        }
    }

    #[test]
    fn a_tool_that_moves_things_has_two_ends() {
        for key in ["source", "destination", "from", "to", "old", "newName", "target"] {
            assert_eq!(of(key, Kind::Moves), Meaning::End, "{key}");
        }
        assert_eq!(of("path", Kind::Moves), Meaning::Path);
        assert_eq!(of("newText", Kind::Moves), Meaning::Plain);
    }
}
