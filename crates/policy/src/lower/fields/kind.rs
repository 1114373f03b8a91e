//! What a tool does to its paths, by its own name.

use model::Access;

use super::meaning;
use super::words::words;

/// What a name says about its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It looks at things, and does nothing else.
    Reads,
    /// It changes things.
    Writes,
    /// It moves, copies or unpacks whole trees: everything below is written without being named.
    Moves,
    /// It removes whole trees.
    Removes,
    /// Nothing. It may well write.
    Unclear,
}

impl Kind {
    pub(super) fn access(self) -> Access {
        if self == Self::Reads { Access::Read } else { Access::Write }
    }

    pub(super) fn says_it_writes(self) -> bool {
        !matches!(self, Self::Reads | Self::Unclear)
    }

    pub(super) fn carries_trees(self) -> bool {
        matches!(self, Self::Moves | Self::Removes)
    }
}

/// First words of tools that only look. Words that are also something else have no place here:
/// `tree`, `head`, `open`, `fetch`, `load`, `check`.
const READING: &[&str] = &[
    "cat", "count", "describe", "diff", "find", "get", "glob", "grep", "inspect", "list", "lookup",
    "ls", "query", "read", "search", "show", "stat", "status", "tail", "view",
];
/// The same for a client's own tools, whose names no one else chooses.
const CLIENT_READING: &[&str] = &["lsp", "report", "structured"];
/// Whole names of tools that only look.
const READING_NAMES: &[&str] = &["directory tree", "file info", "head", "info", "tree"];
/// Words that say that looking is not all.
const JOINING: &[&str] = &["and", "into", "onto", "or", "then", "to"];
/// Words that say a tool changes something, wherever they are.
const WRITING: &[&str] = &[
    "append",
    "apply",
    "chmod",
    "chown",
    "compress",
    "convert",
    "create",
    "download",
    "dump",
    "edit",
    "export",
    "generate",
    "insert",
    "install",
    "make",
    "mkdir",
    "modify",
    "mutate",
    "overwrite",
    "patch",
    "persist",
    "put",
    "replace",
    "reset",
    "revert",
    "rewrite",
    "save",
    "set",
    "store",
    "touch",
    "truncate",
    "update",
    "upload",
    "write",
    "zip",
];
const MOVING: &[&str] = &[
    "clone",
    "copy",
    "cp",
    "deploy",
    "duplicate",
    "extract",
    "hardlink",
    "ln",
    "migrate",
    "mirror",
    "move",
    "mv",
    "relocate",
    "rename",
    "restore",
    "swap",
    "symlink",
    "sync",
    "transfer",
    "unpack",
    "untar",
    "unzip",
];
const REMOVING: &[&str] = &[
    "clean", "clear", "delete", "destroy", "drop", "erase", "prune", "purge", "remove", "rm",
    "rmdir", "trash", "unlink", "wipe",
];

/// The kind of the tool with this name.
pub(super) fn of(tool: &str) -> Kind {
    let words = own_words(tool);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let begins = |list: &[&str]| words.first().is_some_and(|word| list.contains(&word.as_str()));
    let looks = (begins(READING) && !any(JOINING))
        || (begins(CLIENT_READING) && server(tool).is_none())
        || READING_NAMES.contains(&words.join(" ").as_str());
    if any(MOVING) {
        Kind::Moves
    } else if any(REMOVING) {
        Kind::Removes
    } else if any(WRITING) {
        Kind::Writes
    } else if looks {
        Kind::Reads
    } else {
        Kind::Unclear
    }
}

/// Whether a tool's name speaks of files.
pub(super) fn is_about_files(tool: &str) -> bool {
    own_words(tool).iter().any(|word| word == "glob" || meaning::is_path_word(word))
}

/// The words of a tool's own name: the server's says nothing about the tool, also not where the
/// tool repeats it, as in `mcp__git__git_diff`.
fn own_words(tool: &str) -> Vec<String> {
    let (server, name) = server(tool).unwrap_or(("", tool));
    let mut own = words(name);
    if own.len() > 1 && own.first() == words(server).first() {
        own.remove(0);
    }
    own
}

/// The server and the tool in `mcp__server__tool`.
fn server(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__")?.split_once("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_reads_only_where_its_name_says_nothing_else() {
        for (kind, tools) in [
            (
                Kind::Reads,
                &[
                    "mcp__fs__read_file",
                    "mcp__fs__list_directory_with_sizes",
                    "mcp__fs__directory_tree",
                    "mcp__git__git_diff",
                    "mcp__github__get_file_contents",
                    "ReadSettings",
                    "ReportFindings",
                    "LSP",
                ][..],
            ),
            (
                Kind::Unclear,
                &[
                    "FileRead",
                    "mcp__fs__fetch_into",
                    "mcp__fs__find_and_keep",
                    "mcp__fs__open_file",
                    "mcp__x__tree_file",
                    "mcp__x__report",
                    "mcp__read__go",
                    "mcp__a__b__read_file",
                    "mcp__read",
                    "",
                ],
            ),
            (
                Kind::Writes,
                &[
                    "mcp__fs__open_overwrite",
                    "mcp__fs__find_and_store",
                    "mcp__x__write__get",
                    "mcp__fs__create_directory",
                    "getAndSet",
                ],
            ),
            (Kind::Moves, &["mcp__fs__move_file", "rename", "list_then_copy", "unzip_get"]),
            (Kind::Removes, &["mcp__fs__purge_directory", "clean_tree", "get_rm"]),
        ] {
            for tool in tools {
                assert_eq!(of(tool), kind, "{tool}");
            }
        }
    }
}
