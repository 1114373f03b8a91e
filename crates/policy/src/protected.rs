//! Names that no tool call may write, in the workspace or anywhere else.
//!
//! Each of them is read later by a program outside the agent's control, which then runs what it
//! finds there, or switches a protection off. They hold at every level and over every grant.

use model::AbsPath;

use crate::pattern::fold;

/// A name, or a short path of names, protected wherever it occurs.
#[derive(Debug, Clone, Copy)]
pub struct ProtectedName {
    /// The components, in lower case. They match anywhere in a path.
    pub path: &'static [&'static str],
    /// Whether everything below is protected too.
    pub cover: Cover,
    /// Who would act on it.
    pub why: &'static str,
}

/// How much of a protected name is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// The name and everything below it.
    Tree,
    /// The name itself.
    Itself,
}

const RINGWALL: &str = "Ringwall itself reads it";
const CLAUDE: &str = "Claude Code reads settings, hooks and commands there";
const CODEX: &str = "Codex reads settings and hooks there";
const GEMINI: &str = "Gemini CLI reads settings and hooks there";
const COPILOT: &str = "Copilot reads settings and hooks there";
const OPENCODE: &str = "opencode loads settings and plugins from it";
const PI: &str = "pi loads settings and extensions from it";
const CURSOR: &str = "Cursor reads settings, hooks and servers there";
const MCP: &str = "agents start the servers it names";
const GIT: &str = "git runs programs it names";
const EDITOR: &str = "an editor runs what it names";
const SHELL: &str = "a shell runs it on entering the directory";

const fn tree(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { path, cover: Cover::Tree, why }
}

const NAMES: &[ProtectedName] = &[
    tree(&["ringwall.toml"], RINGWALL),
    tree(&[".claude", "settings.json"], CLAUDE),
    tree(&[".claude", "settings.local.json"], CLAUDE),
    tree(&[".claude", "managed-settings.json"], CLAUDE),
    tree(&[".claude", "hooks"], CLAUDE),
    tree(&[".claude", "agents"], CLAUDE),
    tree(&[".claude", "commands"], CLAUDE),
    tree(&[".claude", "skills"], CLAUDE),
    tree(&[".claude", "plugins"], CLAUDE),
    tree(&[".claude", "workflows"], CLAUDE),
    tree(&[".claude", "output-styles"], CLAUDE),
    tree(&[".claude.json"], CLAUDE),
    tree(&[".claude-plugin"], CLAUDE),
    tree(&["managed-settings.json"], CLAUDE),
    tree(&[".mcp.json"], MCP),
    tree(&[".codex"], CODEX),
    tree(&[".agents"], CODEX),
    tree(&[".gemini"], GEMINI),
    tree(&[".copilot"], COPILOT),
    tree(&[".github", "hooks"], COPILOT),
    tree(&[".github", "copilot"], COPILOT),
    tree(&[".opencode"], OPENCODE),
    tree(&["opencode.json"], OPENCODE),
    tree(&["opencode.jsonc"], OPENCODE),
    tree(&[".config", "opencode"], OPENCODE),
    tree(&[".pi"], PI),
    tree(&[".cursor"], CURSOR),
    ProtectedName { path: &[".git"], cover: Cover::Itself, why: GIT },
    tree(&[".git", "hooks"], GIT),
    tree(&[".git", "config"], GIT),
    tree(&[".git", "config.worktree"], GIT),
    tree(&[".git", "commondir"], GIT),
    tree(&[".git", "gitdir"], GIT),
    tree(&[".git", "info", "attributes"], GIT),
    tree(&[".git", "objects", "info", "alternates"], GIT),
    tree(&[".git", "modules"], GIT),
    tree(&[".git", "worktrees"], GIT),
    tree(&[".gitconfig"], GIT),
    tree(&[".config", "git"], GIT),
    tree(&[".envrc"], SHELL),
    tree(&[".direnv"], SHELL),
    tree(&[".vscode", "tasks.json"], EDITOR),
    tree(&[".vscode", "settings.json"], EDITOR),
    tree(&[".vscode", "launch.json"], EDITOR),
    tree(&[".vscode", "mcp.json"], EDITOR),
    tree(&[".idea"], EDITOR),
    tree(&[".zed", "settings.json"], EDITOR),
    tree(&[".zed", "tasks.json"], EDITOR),
    tree(&[".exrc"], EDITOR),
    tree(&[".nvimrc"], EDITOR),
    tree(&[".nvim.lua"], EDITOR),
];

/// All protected names.
pub fn protected_names() -> &'static [ProtectedName] {
    NAMES
}

/// The protected name that covers a path, if one does.
pub(crate) fn protecting(path: &AbsPath) -> Option<&'static ProtectedName> {
    let names: Vec<_> = path
        .as_path()
        .components()
        .skip(1)
        .map(|component| fold(&component.as_os_str().to_string_lossy()).into_owned())
        .collect();
    NAMES.iter().find(|protected| match protected.cover {
        Cover::Tree => names
            .windows(protected.path.len())
            .any(|window| window.iter().zip(protected.path).all(|(name, part)| name == part)),
        Cover::Itself => {
            names.iter().rev().zip(protected.path.iter().rev()).all(|(name, part)| name == part)
                && names.len() >= protected.path.len()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn is_protected(path: &str) -> bool {
        protecting(&AbsPath::lexical(Path::new(path)).unwrap()).is_some()
    }

    #[test]
    fn names_are_protected_at_any_depth_in_any_case() {
        for path in [
            "/p/ringwall.toml",
            "/p/sub/ringwall.toml",
            "/p/.claude/settings.local.json",
            "/p/.Claude/Settings.json",
            "/p/.claude/hooks/pre.sh",
            "/p/.git",
            "/p/.git/config",
            "/p/.GIT/hooks/pre-commit",
            "/p/.g\u{200c}it/config",
            "/p/vendor/lib/.git/hooks/post-checkout",
            "/p/.cursor/mcp.json",
            "/home/u/.codex/config.toml",
            "/p/.vscode/tasks.json",
            "/p/.envrc",
        ] {
            assert!(is_protected(path), "{path}");
        }
    }

    #[test]
    fn ordinary_neighbours_are_not() {
        for path in [
            "/p/README.md",
            "/p/ringwall.toml.md",
            "/p/.claude/worktrees/a/src/main.rs",
            "/p/.gitignore",
            "/p/.github/workflows/ci.yml",
            "/p/.git/COMMIT_EDITMSG",
            "/p/config",
            "/p/hooks/pre.sh",
            "/p/.vscode/snippets.code-snippets",
            "/",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }
}
