//! Names that no tool call may write, in the workspace or anywhere else.
//!
//! Each of them is read later by a program outside the agent's control, which then runs what it
//! finds there, or switches a protection off. They hold at every level and over every grant.
//!
//! The class of a name decides. A name is protected if something acts on it without the user asking
//! for it: when they open or enter the directory, or start git, an agent, an editor, a shell, a
//! debugger or a package manager there. What acts when the user runs the project's own build is in
//! [`build_files`](crate::build_files), and what acts only with a certain content in
//! [`toolchain_files`](crate::toolchain_files). `docs/protected-names.md` lists all of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

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
    /// Whether it counts in a directory of installed packages too. Packages bring their authors'
    /// settings, which act on no one as long as no one works in the package.
    pub in_packages: bool,
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
const AGENT: &str = "an agent reads settings, hooks, commands or servers there";
const MCP: &str = "agents start the servers it names";
const GIT: &str = "git runs programs it names";
const EDITOR: &str = "an editor runs what it names";
const GIT_HOOKS: &str = "git runs it, or what it names, as hooks";
const REPOSITORY: &str = "a version control system runs programs it names";
const YARN: &str = "yarn runs it, or the program it names";
const PNPM: &str = "pnpm runs it before it installs anything";
const CARGO: &str = "cargo runs linkers, wrappers and runners it names";
const SHELL: &str = "a shell runs it on entering the directory";
const RC: &str = "a shell or tool reads it when it starts";
const CONSOLE: &str = "an interpreter or debugger runs it when it starts there";
const SESSION: &str = "the session or a terminal runs it when it starts";

const fn tree(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { path, cover: Cover::Tree, in_packages: true, why }
}

/// A name that installed packages bring with them.
const fn project(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { in_packages: false, ..tree(path, why) }
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
    tree(&[".github", "agents"], COPILOT),
    tree(&[".github", "mcp.json"], COPILOT),
    tree(&[".github", "skills"], COPILOT),
    tree(&[".cursor"], CURSOR),
    // Other agents. Where a directory also has texts that projects write, such as rules and
    // specifications, only the parts that start something are named.
    project(&[".qwen"], AGENT),
    project(&[".amp"], AGENT),
    project(&[".factory"], AGENT),
    project(&[".continue"], AGENT),
    project(&[".continuerc.json"], AGENT),
    project(&[".windsurf"], AGENT),
    project(&[".devin"], AGENT),
    project(&[".cline"], AGENT),
    project(&[".clinerules", "hooks"], AGENT),
    project(&[".roo", "mcp.json"], AGENT),
    project(&[".roo", "commands"], AGENT),
    project(&[".roo", "skills"], AGENT),
    project(&[".roomodes"], AGENT),
    project(&[".kilocode", "mcp.json"], AGENT),
    project(&[".kilocode", "skills"], AGENT),
    project(&[".kilocodemodes"], AGENT),
    project(&[".trae", "mcp.json"], AGENT),
    project(&[".trae", "skills"], AGENT),
    project(&[".augment", "settings.json"], AGENT),
    project(&[".augment", "settings.local.json"], AGENT),
    project(&[".augment", "commands"], AGENT),
    project(&[".augment", "agents"], AGENT),
    project(&[".augment", "skills"], AGENT),
    project(&[".junie", "mcp"], AGENT),
    project(&[".junie", "commands"], AGENT),
    project(&[".junie", "agents"], AGENT),
    project(&[".junie", "skills"], AGENT),
    project(&[".goose"], AGENT),
    project(&[".crush.json"], AGENT),
    project(&["crush.json"], AGENT),
    project(&[".crush", "commands"], AGENT),
    project(&[".crush", "skills"], AGENT),
    project(&[".opencode.json"], AGENT),
    project(&[".openhands", "setup.sh"], AGENT),
    project(&[".openhands", "pre-commit.sh"], AGENT),
    project(&[".openhands", "hooks.json"], AGENT),
    project(&[".openhands", "config.toml"], AGENT),
    project(&[".openhands", "skills"], AGENT),
    project(&[".kiro", "settings"], AGENT),
    project(&[".kiro", "hooks"], AGENT),
    project(&[".kiro", "agents"], AGENT),
    project(&[".kiro", "prompts"], AGENT),
    project(&[".kiro", "skills"], AGENT),
    project(&[".kiro", "powers"], AGENT),
    project(&[".zencoder"], AGENT),
    project(&[".tabnine"], AGENT),
    project(&[".codeium"], AGENT),
    project(&[".gptme.toml"], AGENT),
    project(&["gptme.toml"], AGENT),
    project(&[".forge"], AGENT),
    project(&[".grok"], AGENT),
    project(&[".kimi"], AGENT),
    project(&[".codebuddy"], AGENT),
    project(&[".letta"], AGENT),
    project(&[".rovodev"], AGENT),
    project(&[".qoder"], AGENT),
    project(&[".iflow"], AGENT),
    project(&[".aider.conf.yml"], AGENT),
    project(&[".aider.conf.yaml"], AGENT),
    project(&[".aider.model.settings.yml"], AGENT),
    project(&[".vibe"], AGENT),
    project(&[".agent", "hooks"], AGENT),
    project(&[".agent", "skills"], AGENT),
    project(&[".agent", "mcp.json"], AGENT),
    ProtectedName { cover: Cover::Itself, ..tree(&[".git"], GIT) },
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
    project(&[".hg", "hgrc"], REPOSITORY),
    project(&[".hg", "hgrc-not-shared"], REPOSITORY),
    project(&[".hg", "sharedpath"], REPOSITORY),
    project(&[".jj", "repo", "config.toml"], REPOSITORY),
    project(&[".jj", "workspace-config.toml"], REPOSITORY),
    project(&[".bzr", "branch", "branch.conf"], REPOSITORY),
    project(&[".husky"], GIT_HOOKS),
    project(&[".huskyrc"], GIT_HOOKS),
    project(&[".huskyrc.json"], GIT_HOOKS),
    project(&[".huskyrc.js"], GIT_HOOKS),
    project(&[".huskyrc.yml"], GIT_HOOKS),
    project(&[".huskyrc.yaml"], GIT_HOOKS),
    project(&[".cargo-husky"], GIT_HOOKS),
    project(&[".rusty-hook.toml"], GIT_HOOKS),
    project(&[".pre-commit-config.yaml"], GIT_HOOKS),
    project(&[".pre-commit-config.yml"], GIT_HOOKS),
    project(&["prek.toml"], GIT_HOOKS),
    project(&["hk.pkl"], GIT_HOOKS),
    project(&["lefthook.yml"], GIT_HOOKS),
    project(&["lefthook.yaml"], GIT_HOOKS),
    project(&["lefthook.toml"], GIT_HOOKS),
    project(&["lefthook.json"], GIT_HOOKS),
    project(&["lefthook-local.yml"], GIT_HOOKS),
    project(&["lefthook-local.yaml"], GIT_HOOKS),
    project(&["lefthook-local.toml"], GIT_HOOKS),
    project(&["lefthook-local.json"], GIT_HOOKS),
    project(&[".lefthook.yml"], GIT_HOOKS),
    project(&[".lefthook.yaml"], GIT_HOOKS),
    project(&[".lefthook.toml"], GIT_HOOKS),
    project(&[".lefthook.json"], GIT_HOOKS),
    project(&[".lefthook-local.yml"], GIT_HOOKS),
    project(&[".lefthook-local.yaml"], GIT_HOOKS),
    project(&[".lefthook-local.toml"], GIT_HOOKS),
    project(&[".lefthook-local.json"], GIT_HOOKS),
    project(&[".lefthook"], GIT_HOOKS),
    project(&[".lefthook-local"], GIT_HOOKS),
    project(&[".config", "lefthook.yml"], GIT_HOOKS),
    project(&[".config", "lefthook.yaml"], GIT_HOOKS),
    project(&[".overcommit.yml"], GIT_HOOKS),
    project(&[".git-hooks"], GIT_HOOKS),
    project(&["captainhook.json"], GIT_HOOKS),
    tree(&[".envrc"], SHELL),
    tree(&[".direnv"], SHELL),
    project(&[".autoenv"], SHELL),
    project(&[".autoenv.zsh"], SHELL),
    project(&[".autoenv_leave.zsh"], SHELL),
    project(&["mise.toml"], SHELL),
    project(&["mise.local.toml"], SHELL),
    project(&[".mise.toml"], SHELL),
    project(&[".mise.local.toml"], SHELL),
    project(&[".mise"], SHELL),
    project(&["mise", "config.toml"], SHELL),
    project(&[".config", "mise"], SHELL),
    project(&[".config", "mise.toml"], SHELL),
    project(&[".rtx.toml"], SHELL),
    tree(&[".bashrc"], RC),
    tree(&[".bash_profile"], RC),
    tree(&[".bash_login"], RC),
    tree(&[".profile"], RC),
    tree(&[".zshrc"], RC),
    tree(&[".zshenv"], RC),
    tree(&[".zprofile"], RC),
    tree(&[".zlogin"], RC),
    tree(&[".ripgreprc"], RC),
    project(&[".bash_logout"], SESSION),
    project(&[".zlogout"], SESSION),
    project(&[".inputrc"], SESSION),
    project(&[".tmux.conf"], SESSION),
    project(&[".screenrc"], SESSION),
    project(&[".wezterm.lua"], SESSION),
    project(&[".xinitrc"], SESSION),
    project(&[".xprofile"], SESSION),
    project(&[".xsession"], SESSION),
    project(&[".config", "fish"], SESSION),
    project(&[".config", "autostart"], SESSION),
    project(&[".config", "systemd"], SESSION),
    project(&[".config", "environment.d"], SESSION),
    project(&[".rprofile"], CONSOLE),
    project(&[".renviron"], CONSOLE),
    project(&[".rdata"], CONSOLE),
    project(&[".ghci"], CONSOLE),
    project(&[".iex.exs"], CONSOLE),
    project(&[".pdbrc"], CONSOLE),
    project(&[".pdbrc.py"], CONSOLE),
    project(&[".irbrc"], CONSOLE),
    project(&["_irbrc"], CONSOLE),
    project(&[".pryrc"], CONSOLE),
    project(&[".byebugrc"], CONSOLE),
    project(&[".rdbgrc"], CONSOLE),
    project(&[".gdbinit"], CONSOLE),
    project(&[".gdbearlyinit"], CONSOLE),
    project(&[".lldbinit"], CONSOLE),
    project(&[".lldbinit-cli"], CONSOLE),
    project(&[".perldb"], CONSOLE),
    project(&[".ocamlinit"], CONSOLE),
    project(&[".octaverc"], CONSOLE),
    project(&[".erlang"], CONSOLE),
    project(&[".psqlrc"], CONSOLE),
    project(&[".sqliterc"], CONSOLE),
    tree(&[".vscode", "tasks.json"], EDITOR),
    tree(&[".vscode", "settings.json"], EDITOR),
    tree(&[".vscode", "launch.json"], EDITOR),
    tree(&[".vscode", "mcp.json"], EDITOR),
    tree(&["*.code-workspace"], EDITOR),
    tree(&[".devcontainer"], EDITOR),
    tree(&[".devcontainer.json"], EDITOR),
    tree(&[".idea"], EDITOR),
    tree(&[".zed"], EDITOR),
    tree(&[".exrc"], EDITOR),
    project(&[".vscode", "c_cpp_properties.json"], EDITOR),
    project(&[".vscode", "cmake-kits.json"], EDITOR),
    project(&[".vscode", "cody.json"], EDITOR),
    project(&["*.sublime-project"], EDITOR),
    project(&[".theia"], EDITOR),
    project(&[".fleet"], EDITOR),
    project(&[".nova"], EDITOR),
    project(&[".lapce"], EDITOR),
    project(&[".helix"], EDITOR),
    project(&[".vimrc"], EDITOR),
    project(&["_vimrc"], EDITOR),
    project(&[".gvimrc"], EDITOR),
    project(&["_exrc"], EDITOR),
    project(&[".lvimrc"], EDITOR),
    project(&[".local.vimrc"], EDITOR),
    project(&[".nvim"], EDITOR),
    project(&[".lazy.lua"], EDITOR),
    project(&[".neoconf.json"], EDITOR),
    project(&[".vim", "coc-settings.json"], EDITOR),
    project(&[".kakrc"], EDITOR),
    project(&[".kakrc.local"], EDITOR),
    project(&[".ycm_extra_conf.py"], EDITOR),
    tree(&[".nvimrc"], EDITOR),
    tree(&[".nvim.lua"], EDITOR),
    tree(&[".dir-locals.el"], EDITOR),
    tree(&[".dir-locals-2.el"], EDITOR),
    tree(&[".yarnrc.yml"], YARN),
    tree(&[".yarnrc"], YARN),
    project(&[".yarn", "plugins"], YARN),
    project(&[".yarn", "releases"], YARN),
    project(&[".yarn", "sdks"], YARN),
    project(&[".pnpmfile.cjs"], PNPM),
    project(&[".pnpmfile.mjs"], PNPM),
    project(&["pnpmfile.js"], PNPM),
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
    spelt_from(&names, |protected, end| {
        let found = end.get(..protected.path.len());
        let whole = protected.cover == Cover::Tree || end.len() == protected.path.len();
        whole && found.is_some_and(|found| is_spelt(found, protected.path))
    })
}

/// The protected name that a tree put at this path could hold, or that goes with the tree taken
/// from it: `.claude` is where `.claude/settings.json` would be.
pub fn shadows(path: &AbsPath) -> Option<&'static ProtectedName> {
    let names = folded(path);
    spelt_from(&names, |protected, end| {
        let beginning = protected.path.get(..end.len());
        end.len() < protected.path.len() && beginning.is_some_and(|parts| is_spelt(end, parts))
    })
}

/// The first protected name that begins somewhere in a path: `is` gets the names from there to the
/// end of the path.
fn spelt_from(
    names: &[String],
    is: impl Fn(&ProtectedName, &[String]) -> bool,
) -> Option<&'static ProtectedName> {
    let package = packages(names);
    let first = (0..names.len()).filter_map(|from| {
        let end = names.get(from..)?;
        let rows = BEGINNINGS.of(end.first()?).filter(|row| {
            NAMES.get(*row).is_some_and(|name| (name.in_packages || !package) && is(name, end))
        });
        rows.min()
    });
    NAMES.get(first.min()?)
}

/// The protected names by their first part: every call of a run that changes something asks for them,
/// and almost no name of a path begins one.
struct Beginnings {
    spelt: HashMap<&'static str, Vec<usize>>,
    /// Those whose first part is any name with a certain ending.
    ending: Vec<usize>,
}

static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(|| {
    let mut beginnings = Beginnings { spelt: HashMap::new(), ending: Vec::new() };
    for (row, name) in NAMES.iter().enumerate() {
        match name.path.first() {
            Some(part) if part.starts_with('*') => beginnings.ending.push(row),
            Some(part) => beginnings.spelt.entry(*part).or_default().push(row),
            None => {}
        }
    }
    beginnings
});

impl Beginnings {
    /// The rows of the names that a name of a path can begin.
    fn of(&self, name: &str) -> impl Iterator<Item = usize> {
        let spelt = self.spelt.get(name).into_iter().flatten();
        spelt.chain(&self.ending).copied()
    }
}

/// Where protected names would be in a tree put at this path, below it.
pub fn held_by(path: &AbsPath) -> Vec<PathBuf> {
    let names = folded(path);
    let mut held = Vec::new();
    let package = packages(&names);
    for protected in NAMES.iter().filter(|protected| protected.in_packages || !package) {
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

/// Whether a path is in a directory of installed packages.
fn packages(names: &[String]) -> bool {
    names.iter().any(|name| PACKAGES.contains(&name.as_str()))
}

/// Directories of installed packages, which no one works in.
pub(crate) const PACKAGES: &[&str] = &["node_modules", "bower_components", "site-packages"];

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

/// What secrets are below a path of the home directory, if there are any.
pub(crate) fn holds_secrets(path: &AbsPath, home: &AbsPath) -> Option<&'static str> {
    let below = path.as_path().strip_prefix(home.as_path()).ok()?;
    let below = fold(&below.to_string_lossy()).into_owned();
    let holds = |place: &str| std::path::Path::new(place).starts_with(&below) && place != below;
    SECRETS.iter().find(|(place, _)| holds(place)).map(|(_, what)| *what)
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
            "/p/.husky/pre-commit",
            "/p/.hg/hgrc",
            "/p/.jj/repo/config.toml",
            "/p/.helix/languages.toml",
            "/p/.pre-commit-config.yaml",
            "/p/lefthook.yml",
            "/p/.lefthook-local.toml",
            "/p/.pnpmfile.cjs",
            "/p/.yarn/releases/yarn-4.0.0.cjs",
            "/p/sub/.Rprofile",
            "/p/.rprofile",
            "/p/.RData",
            "/p/.ghci",
            "/p/.iex.exs",
            "/p/.pdbrc",
            "/p/.qwen/settings.json",
            "/p/.kiro/settings/mcp.json",
            "/p/.kiro/hooks/save.kiro.hook",
            "/p/.amp/settings.json",
            "/p/.factory/droids/x.md",
            "/p/.clinerules/hooks/TaskStart",
            "/p/.zed/debug.json",
            "/p/web.sublime-project",
            "/p/mise.toml",
            "/p/node_modules/x/.mcp.json",
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
            "/p/code-workspace",
            // What the project's own build runs, and texts.
            "/p/Makefile",
            "/p/package.json",
            "/p/.npmrc",
            "/p/rust-toolchain.toml",
            "/p/.tool-versions",
            "/p/.env",
            "/p/AGENTS.md",
            "/p/.kiro/specs/x/design.md",
            "/p/.roo/rules/style.md",
            "/p/.clinerules/style.md",
            "/p/.jj/repo/store/type",
            "/p/.hg/dirstate",
            "/p/.yarn/cache/x.zip",
            // Packages bring the settings of their authors.
            "/p/node_modules/x/.husky/pre-commit",
            "/p/.venv/lib/python3/site-packages/x/.pre-commit-config.yaml",
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
