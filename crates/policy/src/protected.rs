//! Names that no tool call may write, in the workspace or anywhere else.
//!
//! Each of them is read later by a program outside the agent's control, which then runs what it
//! finds there, or switches a protection off. They hold at every level and over every grant.

use std::path::PathBuf;

use model::AbsPath;

use crate::pattern::fold;

/// A name, or a short path of names, protected wherever it occurs.
#[derive(Debug, Clone, Copy)]
pub struct ProtectedName {
    /// The components, in lower case. They match anywhere in a path; a leading `*` matches any
    /// beginning of a name, also for none.
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
const HUSKY: &str = "git runs the hooks in it";
const YARN: &str = "yarn runs the program it names";
const CARGO: &str = "cargo runs linkers, wrappers and runners it names";
const SHELL: &str = "a shell runs it on entering the directory";
const RC: &str = "a shell or tool reads it when it starts";

const fn tree(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { path, cover: Cover::Tree, why }
}

const NAMES: &[ProtectedName] = &[
    tree(&["ringwall.toml"], RINGWALL),
    tree(&[".claude", "settings.json"], CLAUDE),
    tree(&[".claude", "settings.local.json"], CLAUDE),
    tree(&[".claude", "managed-settings.json"], CLAUDE),
    tree(&[".claude", "launch.json"], CLAUDE),
    tree(&[".claude", "scheduled_tasks.json"], CLAUDE),
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
    // Also `name.git`, as bare repositories are called.
    tree(&["*.git", "hooks"], GIT),
    tree(&["*.git", "config"], GIT),
    tree(&[".git", "config.worktree"], GIT),
    tree(&[".git", "commondir"], GIT),
    tree(&[".git", "gitdir"], GIT),
    tree(&[".git", "info", "attributes"], GIT),
    tree(&[".git", "objects", "info", "alternates"], GIT),
    tree(&[".git", "modules"], GIT),
    tree(&[".git", "worktrees"], GIT),
    tree(&[".gitconfig"], GIT),
    tree(&[".config", "git"], GIT),
    tree(&[".husky", "_"], HUSKY),
    tree(&[".envrc"], SHELL),
    tree(&[".direnv"], SHELL),
    tree(&[".bashrc"], RC),
    tree(&[".bash_profile"], RC),
    tree(&[".bash_login"], RC),
    tree(&[".profile"], RC),
    tree(&[".zshrc"], RC),
    tree(&[".zshenv"], RC),
    tree(&[".zprofile"], RC),
    tree(&[".zlogin"], RC),
    tree(&[".ripgreprc"], RC),
    tree(&[".vscode", "tasks.json"], EDITOR),
    tree(&[".vscode", "settings.json"], EDITOR),
    tree(&[".vscode", "launch.json"], EDITOR),
    tree(&[".vscode", "mcp.json"], EDITOR),
    tree(&["*.code-workspace"], EDITOR),
    tree(&[".devcontainer"], EDITOR),
    tree(&[".devcontainer.json"], EDITOR),
    tree(&[".idea"], EDITOR),
    tree(&[".zed", "settings.json"], EDITOR),
    tree(&[".zed", "tasks.json"], EDITOR),
    tree(&[".exrc"], EDITOR),
    tree(&[".nvimrc"], EDITOR),
    tree(&[".nvim.lua"], EDITOR),
    tree(&[".dir-locals.el"], EDITOR),
    tree(&[".dir-locals-2.el"], EDITOR),
    tree(&[".yarnrc.yml"], YARN),
    tree(&[".yarnrc"], YARN),
    tree(&[".cargo", "config.toml"], CARGO),
    tree(&[".cargo", "config"], CARGO),
];

/// All protected names.
pub fn protected_names() -> &'static [ProtectedName] {
    NAMES
}

/// The protected name that covers a path, if one does.
pub fn protecting(path: &AbsPath) -> Option<&'static ProtectedName> {
    let names = folded(path);
    NAMES.iter().find(|protected| {
        let mut windows = names.windows(protected.path.len());
        match protected.cover {
            Cover::Tree => windows.any(|window| is_spelt(window, protected.path)),
            Cover::Itself => {
                windows.next_back().is_some_and(|window| is_spelt(window, protected.path))
            }
        }
    })
}

/// The protected name that a tree put at this path could hold, or that goes with the tree taken
/// from it: `.claude` is where `.claude/settings.json` would be.
pub fn shadows(path: &AbsPath) -> Option<&'static ProtectedName> {
    let names = folded(path);
    NAMES.iter().find(|protected| {
        let proper = 1..protected.path.len();
        proper.into_iter().any(|count| {
            let beginning = protected.path.get(..count).unwrap_or_default();
            let end = names.len().checked_sub(count).and_then(|from| names.get(from..));
            end.is_some_and(|end| is_spelt(end, beginning))
        })
    })
}

/// Where protected names would be in a tree put at this path, below it.
pub fn held_by(path: &AbsPath) -> Vec<PathBuf> {
    let names = folded(path);
    let mut held = Vec::new();
    for protected in NAMES {
        for count in 1..protected.path.len() {
            let (beginning, rest) = protected.path.split_at(count);
            let end = names.len().checked_sub(count).and_then(|from| names.get(from..));
            if end.is_some_and(|end| is_spelt(end, beginning)) {
                held.push(rest.iter().collect());
            }
        }
    }
    held
}

/// The names in a path, as a file system that folds case would compare them.
fn folded(path: &AbsPath) -> Vec<String> {
    let names = path.as_path().components().skip(1);
    names.map(|name| fold(&name.as_os_str().to_string_lossy()).into_owned()).collect()
}

/// Whether names are spelt as the parts of a protected name, of which there are as many.
fn is_spelt(names: &[String], parts: &[&str]) -> bool {
    names.iter().zip(parts).all(|(name, part)| match part.strip_prefix('*') {
        Some(ending) => name.ends_with(ending),
        None => name == part,
    })
}

/// Places below home that hold secrets or other agents' state.
const SECRETS: &[(&str, &str)] = &[
    (".ssh", "SSH keys"),
    (".gnupg", "keys"),
    (".aws", "cloud credentials"),
    (".azure", "cloud credentials"),
    (".config/gcloud", "cloud credentials"),
    (".config/doctl", "cloud credentials"),
    (".kube", "cluster credentials"),
    (".docker/config.json", "registry credentials"),
    (".netrc", "passwords"),
    (".npmrc", "registry credentials"),
    (".pypirc", "registry credentials"),
    (".cargo/credentials.toml", "registry credentials"),
    (".git-credentials", "passwords"),
    (".config/git/credentials", "passwords"),
    (".config/gh", "tokens"),
    (".config/op", "tokens"),
    (".password-store", "passwords"),
    (".local/share/keyrings", "passwords"),
    (".mozilla", "browser data"),
    (".config/google-chrome", "browser data"),
    (".config/chromium", "browser data"),
    (".claude/.credentials.json", "an agent's credentials"),
    (".claude/projects", "an agent's conversations"),
    (".claude.json", "an agent's state"),
    (".codex", "an agent's state"),
    (".gemini", "an agent's state"),
    (".copilot", "an agent's state"),
    (".pi", "an agent's state"),
    (".local/share/opencode", "an agent's state"),
    (".config/github-copilot", "tokens"),
    (".bash_history", "typed commands"),
    (".zsh_history", "typed commands"),
];

/// What secret a path is part of, if it is.
pub fn secret(path: &AbsPath, home: &AbsPath) -> Option<&'static str> {
    if path.as_path().starts_with("/etc/shadow") || path.as_path().starts_with("/etc/sudoers") {
        return Some("passwords");
    }
    let below = path.as_path().strip_prefix(home.as_path()).ok()?;
    let below = fold(&below.to_string_lossy()).into_owned();
    let below = std::path::Path::new(&below);
    SECRETS.iter().find(|(place, _)| below.starts_with(place)).map(|(_, what)| *what)
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
            "/p/.claude/scheduled_tasks.json",
            "/p/.claude/launch.json",
            "/p/.devcontainer/devcontainer.json",
            "/p/.devcontainer.json",
            "/p/.husky/_/pre-commit",
            "/p/sub/.dir-locals.el",
            "/p/.yarnrc.yml",
            "/p/.cargo/config.toml",
            "/p/.cargo/config",
            "/p/all.code-workspace",
            "/p/All.Code-Workspace",
            "/p/repo.git/hooks/update",
            "/p/repo.git/config",
            "/p/.con\u{fb01}g/git/config",
            "/p/.claude/\u{17f}ettings.json",
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
            "/p/.claude",
            "/p/.cargo/audit.toml",
            "/p/.husky/pre-commit",
            "/p/code-workspace",
            "/p/repo.git",
            "/p/repo.git/description",
            "/p/git/hooks/pre.sh",
            "/",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn a_tree_shadows_the_protected_names_that_it_could_hold() {
        let shadowed = |path: &str| {
            let name = shadows(&AbsPath::lexical(Path::new(path)).unwrap());
            name.map(|name| name.path.join("/"))
        };
        for (path, expected) in [
            ("/p/.claude", Some(".claude/settings.json")),
            ("/p/.Claude", Some(".claude/settings.json")),
            ("/p/sub/.vscode", Some(".vscode/tasks.json")),
            ("/p/.github", Some(".github/hooks")),
            ("/p/.git", Some("*.git/hooks")),
            ("/p/repo.git", Some("*.git/hooks")),
            ("/p/.git/info", Some(".git/info/attributes")),
            ("/p/.git/objects/info", Some(".git/objects/info/alternates")),
            ("/p/.cargo", Some(".cargo/config.toml")),
            ("/p/.claude/worktrees", None),
            ("/p/.github/workflows", None),
            ("/p/info", None),
            ("/p/src", None),
            ("/p", None),
            ("/", None),
        ] {
            assert_eq!(shadowed(path).as_deref(), expected, "{path}");
        }
    }
}
