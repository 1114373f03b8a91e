//! Names that no tool call may write, in the workspace or anywhere else.
//!
//! Each of them is read later by a program outside the agent's control, which then runs what it
//! finds there, or switches a protection off. They hold at every level and over every grant.
//!
//! The class of a name decides. A name is protected if something acts on it without the user asking
//! for it: when they open or enter the directory, or start git, an agent, an editor, a shell, a
//! debugger or a package manager there. [`Acts`] says which of them a run may write until it is judged
//! at its end. What acts when the user runs the project's own build is in
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
    /// When it acts.
    pub acts: Acts,
    /// Whether it counts in a directory of dependencies too. Packages bring their authors'
    /// settings, which act on no one as long as no one works in the package.
    pub in_packages: bool,
    /// Who would act on it.
    pub why: &'static str,
}

/// When something acts on a protected name. The strictest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acts {
    /// At once, and version control keeps it for itself: it is no content of a project. A run cannot
    /// write it.
    Repository,
    /// At once, and it decides what a run may do. A run cannot write it, and neither can git.
    Rules,
    /// At once: a shell or an agent reads it the next time it does anything there. A run cannot write
    /// it, and git can check out what the user has committed.
    AtOnce,
    /// Later: only when the user opens an editor, starts a tool or commits. A run can write it, and
    /// what it wrote is judged at its end.
    Later,
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
const SOURCED: &str = "the start files of a shell read it";
const PYTHON: &str = "python runs it whenever it starts";
const SSH: &str = "ssh or its server acts on it at the next connection";
const TOOL: &str = "a tool that is started there runs what it names";
const SESSION: &str = "the session or a terminal runs it when it starts";

const fn tree(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { path, cover: Cover::Tree, acts: Acts::AtOnce, in_packages: true, why }
}

/// What version control keeps for itself.
const fn state(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { acts: Acts::Repository, ..tree(path, why) }
}

/// A name that acts on no one in a dependency.
const fn project(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { in_packages: false, ..tree(path, why) }
}

/// The same, if it acts only when the user does something with a tool.
const fn later(path: &'static [&'static str], why: &'static str) -> ProtectedName {
    ProtectedName { acts: Acts::Later, ..project(path, why) }
}

const NAMES: &[ProtectedName] = &[
    ProtectedName { acts: Acts::Rules, ..tree(&["ringwall.toml"], RINGWALL) },
    project(&[".claude", "settings.json"], CLAUDE),
    project(&[".claude", "settings.local.json"], CLAUDE),
    project(&[".claude", "managed-settings.json"], CLAUDE),
    project(&[".claude", "launch.json"], CLAUDE),
    project(&[".claude", "scheduled_tasks.json"], CLAUDE),
    project(&[".claude", "hooks"], CLAUDE),
    project(&[".claude", "agents"], CLAUDE),
    project(&[".claude", "commands"], CLAUDE),
    project(&[".claude", "skills"], CLAUDE),
    project(&[".claude", "plugins"], CLAUDE),
    project(&[".claude", "workflows"], CLAUDE),
    project(&[".claude", "output-styles"], CLAUDE),
    project(&[".claude.json"], CLAUDE),
    project(&[".claude-plugin"], CLAUDE),
    project(&["managed-settings.json"], CLAUDE),
    project(&[".mcp.json"], MCP),
    project(&[".codex"], CODEX),
    project(&[".agents"], CODEX),
    project(&[".gemini"], GEMINI),
    project(&[".copilot"], COPILOT),
    project(&[".github", "hooks"], COPILOT),
    project(&[".github", "copilot"], COPILOT),
    project(&[".opencode"], OPENCODE),
    project(&["opencode.json"], OPENCODE),
    project(&["opencode.jsonc"], OPENCODE),
    project(&[".config", "opencode"], OPENCODE),
    project(&[".pi"], PI),
    project(&[".github", "agents"], COPILOT),
    project(&[".github", "mcp.json"], COPILOT),
    project(&[".github", "skills"], COPILOT),
    project(&[".cursor"], CURSOR),
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
    ProtectedName { cover: Cover::Itself, ..state(&[".git"], GIT) },
    // Also `name.git`, as bare repositories are called.
    state(&["*.git", "hooks"], GIT),
    state(&["*.git", "config"], GIT),
    state(&[".git", "config.worktree"], GIT),
    state(&[".git", "commondir"], GIT),
    state(&[".git", "gitdir"], GIT),
    state(&[".git", "info", "attributes"], GIT),
    state(&[".git", "objects", "info", "alternates"], GIT),
    state(&[".git", "modules"], GIT),
    state(&[".git", "worktrees"], GIT),
    state(&[".gitconfig"], GIT),
    state(&[".config", "git"], GIT),
    ProtectedName { acts: Acts::Repository, ..project(&[".hg", "hgrc"], REPOSITORY) },
    ProtectedName { acts: Acts::Repository, ..project(&[".hg", "hgrc-not-shared"], REPOSITORY) },
    ProtectedName { acts: Acts::Repository, ..project(&[".hg", "sharedpath"], REPOSITORY) },
    ProtectedName {
        acts: Acts::Repository,
        ..project(&[".jj", "repo", "config.toml"], REPOSITORY)
    },
    ProtectedName {
        acts: Acts::Repository,
        ..project(&[".jj", "workspace-config.toml"], REPOSITORY)
    },
    ProtectedName {
        acts: Acts::Repository,
        ..project(&[".bzr", "branch", "branch.conf"], REPOSITORY)
    },
    later(&[".husky"], GIT_HOOKS),
    later(&[".huskyrc"], GIT_HOOKS),
    later(&[".huskyrc.json"], GIT_HOOKS),
    later(&[".huskyrc.js"], GIT_HOOKS),
    later(&[".huskyrc.yml"], GIT_HOOKS),
    later(&[".huskyrc.yaml"], GIT_HOOKS),
    later(&[".cargo-husky"], GIT_HOOKS),
    later(&[".rusty-hook.toml"], GIT_HOOKS),
    later(&[".pre-commit-config.yaml"], GIT_HOOKS),
    later(&[".pre-commit-config.yml"], GIT_HOOKS),
    later(&["prek.toml"], GIT_HOOKS),
    later(&["hk.pkl"], GIT_HOOKS),
    later(&["lefthook.yml"], GIT_HOOKS),
    later(&["lefthook.yaml"], GIT_HOOKS),
    later(&["lefthook.toml"], GIT_HOOKS),
    later(&["lefthook.json"], GIT_HOOKS),
    later(&["lefthook-local.yml"], GIT_HOOKS),
    later(&["lefthook-local.yaml"], GIT_HOOKS),
    later(&["lefthook-local.toml"], GIT_HOOKS),
    later(&["lefthook-local.json"], GIT_HOOKS),
    later(&[".lefthook.yml"], GIT_HOOKS),
    later(&[".lefthook.yaml"], GIT_HOOKS),
    later(&[".lefthook.toml"], GIT_HOOKS),
    later(&[".lefthook.json"], GIT_HOOKS),
    later(&[".lefthook-local.yml"], GIT_HOOKS),
    later(&[".lefthook-local.yaml"], GIT_HOOKS),
    later(&[".lefthook-local.toml"], GIT_HOOKS),
    later(&[".lefthook-local.json"], GIT_HOOKS),
    later(&[".lefthook"], GIT_HOOKS),
    later(&[".lefthook-local"], GIT_HOOKS),
    later(&[".config", "lefthook.yml"], GIT_HOOKS),
    later(&[".config", "lefthook.yaml"], GIT_HOOKS),
    later(&[".overcommit.yml"], GIT_HOOKS),
    later(&[".git-hooks"], GIT_HOOKS),
    later(&["captainhook.json"], GIT_HOOKS),
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
    project(&[".bashrc"], RC),
    project(&[".bash_profile"], RC),
    project(&[".bash_login"], RC),
    project(&[".profile"], RC),
    project(&[".zshrc"], RC),
    project(&[".zshenv"], RC),
    project(&[".zprofile"], RC),
    project(&[".zlogin"], RC),
    project(&[".ripgreprc"], RC),
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
    later(&[".rprofile"], CONSOLE),
    later(&[".renviron"], CONSOLE),
    later(&[".rdata"], CONSOLE),
    later(&[".ghci"], CONSOLE),
    later(&[".iex.exs"], CONSOLE),
    later(&[".pdbrc"], CONSOLE),
    later(&[".pdbrc.py"], CONSOLE),
    later(&[".irbrc"], CONSOLE),
    later(&["_irbrc"], CONSOLE),
    later(&[".pryrc"], CONSOLE),
    later(&[".byebugrc"], CONSOLE),
    later(&[".rdbgrc"], CONSOLE),
    later(&[".gdbinit"], CONSOLE),
    later(&[".gdbearlyinit"], CONSOLE),
    later(&[".lldbinit"], CONSOLE),
    later(&[".lldbinit-cli"], CONSOLE),
    later(&[".perldb"], CONSOLE),
    later(&[".ocamlinit"], CONSOLE),
    later(&[".octaverc"], CONSOLE),
    later(&[".erlang"], CONSOLE),
    later(&[".psqlrc"], CONSOLE),
    later(&[".sqliterc"], CONSOLE),
    later(&[".vscode", "tasks.json"], EDITOR),
    later(&[".vscode", "settings.json"], EDITOR),
    later(&[".vscode", "launch.json"], EDITOR),
    later(&[".vscode", "mcp.json"], EDITOR),
    later(&["*.code-workspace"], EDITOR),
    later(&[".devcontainer"], EDITOR),
    later(&[".devcontainer.json"], EDITOR),
    later(&[".idea"], EDITOR),
    later(&[".zed"], EDITOR),
    later(&[".exrc"], EDITOR),
    later(&[".vscode", "c_cpp_properties.json"], EDITOR),
    later(&[".vscode", "cmake-kits.json"], EDITOR),
    later(&[".vscode", "cody.json"], EDITOR),
    later(&["*.sublime-project"], EDITOR),
    later(&[".theia"], EDITOR),
    later(&[".fleet"], EDITOR),
    later(&[".nova"], EDITOR),
    later(&[".lapce"], EDITOR),
    later(&[".helix"], EDITOR),
    later(&[".vimrc"], EDITOR),
    later(&["_vimrc"], EDITOR),
    later(&[".gvimrc"], EDITOR),
    later(&["_exrc"], EDITOR),
    later(&[".lvimrc"], EDITOR),
    later(&[".local.vimrc"], EDITOR),
    later(&[".nvim"], EDITOR),
    later(&[".lazy.lua"], EDITOR),
    later(&[".neoconf.json"], EDITOR),
    later(&[".vim", "coc-settings.json"], EDITOR),
    later(&[".kakrc"], EDITOR),
    later(&[".kakrc.local"], EDITOR),
    later(&[".ycm_extra_conf.py"], EDITOR),
    later(&[".nvimrc"], EDITOR),
    later(&[".nvim.lua"], EDITOR),
    later(&[".dir-locals.el"], EDITOR),
    later(&[".dir-locals-2.el"], EDITOR),
    later(&[".yarnrc.yml"], YARN),
    later(&[".yarnrc"], YARN),
    later(&[".yarn", "plugins"], YARN),
    later(&[".yarn", "releases"], YARN),
    later(&[".yarn", "sdks"], YARN),
    later(&[".pnpmfile.cjs"], PNPM),
    later(&[".pnpmfile.mjs"], PNPM),
    later(&["pnpmfile.js"], PNPM),
    later(&[".cargo", "config.toml"], CARGO),
    later(&[".cargo", "config"], CARGO),
    project(&["codebuff.json"], AGENT),
    project(&[".amazonq", "agents"], AGENT),
    project(&[".amazonq", "cli-agents"], AGENT),
    project(&[".amazonq", "default.json"], AGENT),
    project(&[".amazonq", "mcp.json"], AGENT),
    project(&[".amazonq", "prompts"], AGENT),
    ProtectedName {
        acts: Acts::Repository,
        ..project(&["_darcs", "prefs", "defaults"], REPOSITORY)
    },
    ProtectedName { acts: Acts::Repository, ..project(&[".sl", "config"], REPOSITORY) },
    ProtectedName { acts: Acts::Repository, ..project(&[".git", "sl", "config"], REPOSITORY) },
    ProtectedName { acts: Acts::Repository, ..project(&[".pijul", "config"], REPOSITORY) },
    ProtectedName { acts: Acts::Repository, ..project(&[".git", "lazygit.yml"], REPOSITORY) },
    project(&[".bash_aliases"], RC),
    later(&[".cargo", "env"], SOURCED),
    later(&[".cargo", "env.fish"], SOURCED),
    project(&[".cshrc"], RC),
    project(&[".tcshrc"], RC),
    project(&[".kshrc"], RC),
    project(&[".mkshrc"], RC),
    project(&[".shrc"], RC),
    // Of the user's own packages. A project's `.venv` is for the project alone.
    tree(&[".local", "lib", "*", "site-packages", "*.pth"], PYTHON),
    tree(&[".local", "lib", "*", "site-packages", "usercustomize.py"], PYTHON),
    tree(&[".local", "lib", "*", "site-packages", "sitecustomize.py"], PYTHON),
    project(&[".ssh", "authorized_keys"], SSH),
    project(&[".ssh", "authorized_keys2"], SSH),
    project(&[".ssh", "config"], SSH),
    project(&[".ssh", "environment"], SSH),
    project(&[".ssh", "rc"], SSH),
    project(&[".xsessionrc"], SESSION),
    project(&[".gnomerc"], SESSION),
    project(&[".pam_environment"], SESSION),
    later(&[".emacs"], EDITOR),
    later(&[".emacs.el"], EDITOR),
    later(&[".emacs.d", "init.el"], EDITOR),
    later(&[".emacs.d", "early-init.el"], EDITOR),
    later(&[".config", "emacs"], EDITOR),
    later(&[".vim", "vimrc"], EDITOR),
    later(&[".vim", "gvimrc"], EDITOR),
    later(&[".vim", "plugin"], EDITOR),
    later(&[".vim", "autoload"], EDITOR),
    later(&[".vim", "ftplugin"], EDITOR),
    later(&[".vim", "after"], EDITOR),
    later(&[".vim", "pack"], EDITOR),
    later(&[".config", "nvim"], EDITOR),
    later(&[".config", "helix"], EDITOR),
    later(&[".vs", "*.vs.json"], EDITOR),
    later(&[".lazygit.yml"], TOOL),
];

/// All protected names.
pub fn protected_names() -> &'static [ProtectedName] {
    NAMES
}

/// The protected name that covers a path, if one does: one that acts at once, if there are several.
pub fn protecting(path: &AbsPath) -> Option<&'static ProtectedName> {
    Spelt::of(path).protecting()
}

/// The same in a workspace, where directories of dependencies are known by what tools call them.
pub fn protecting_in(path: &AbsPath, workspace: &AbsPath) -> Option<&'static ProtectedName> {
    Spelt::in_workspace(path, workspace).protecting()
}

/// The protected name that a tree put at this path could hold, or that goes with the tree taken
/// from it: `.claude` is where `.claude/settings.json` would be. One that acts at once, if there are
/// several.
pub fn shadows(path: &AbsPath) -> Option<&'static ProtectedName> {
    Spelt::of(path).shadows()
}

/// The same in a workspace.
pub fn shadows_in(path: &AbsPath, workspace: &AbsPath) -> Option<&'static ProtectedName> {
    Spelt::in_workspace(path, workspace).shadows()
}

/// The names in a path.
struct Spelt {
    /// As a file system that folds case would compare them.
    names: Vec<String>,
    /// Whether one of them is a directory of dependencies.
    in_package: bool,
}

impl Spelt {
    fn of(path: &AbsPath) -> Self {
        let names = folded(path);
        let in_package = names.iter().any(|name| PACKAGES.contains(&name.as_str()));
        Self { names, in_package }
    }

    /// Whoever works in `vendor/x` works in no dependency, so only the names below the workspace say
    /// that something is one.
    fn in_workspace(path: &AbsPath, workspace: &AbsPath) -> Self {
        if !path.is_within(workspace) {
            return Self::of(path);
        }
        let names = folded(path);
        let above = workspace.as_path().components().count().saturating_sub(1);
        let dependency = |name: &str| PACKAGES.contains(&name) || DEPENDENCIES.contains(&name);
        let in_package = names.iter().skip(above).any(|name| dependency(name));
        Self { names, in_package }
    }

    fn protecting(&self) -> Option<&'static ProtectedName> {
        self.first(|protected, end| {
            let found = end.get(..protected.path.len());
            let whole = protected.cover == Cover::Tree || end.len() == protected.path.len();
            whole && found.is_some_and(|found| is_spelt(found, protected.path))
        })
    }

    fn shadows(&self) -> Option<&'static ProtectedName> {
        self.first(|protected, end| {
            let beginning = protected.path.get(..end.len());
            end.len() < protected.path.len() && beginning.is_some_and(|parts| is_spelt(end, parts))
        })
    }

    /// The first protected name that begins somewhere in the path, of those that act at once before
    /// the others: `is` gets the names from there to the end of the path.
    fn first(
        &self,
        is: impl Fn(&ProtectedName, &[String]) -> bool,
    ) -> Option<&'static ProtectedName> {
        let begins = (0..self.names.len()).flat_map(|from| {
            let end = self.names.get(from..).unwrap_or_default();
            let first = end.first().map_or("", String::as_str);
            BEGINNINGS.of(first).map(move |row| (row, end))
        });
        let rows = begins.filter_map(|(row, end)| {
            let name = NAMES.get(row)?;
            let counts = name.in_packages || !self.in_package;
            (counts && is(name, end)).then_some((name.acts, row))
        });
        NAMES.get(rows.min()?.1)
    }
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
    let package = names.iter().any(|name| PACKAGES.contains(&name.as_str()));
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

/// Directories of installed packages, which no one works in.
pub(crate) const PACKAGES: &[&str] = &["node_modules", "bower_components", "site-packages"];

/// Directories of dependencies and of what is built from them, if they are in a workspace. Elsewhere
/// people may call anything by these names.
const DEPENDENCIES: &[&str] = &["vendor", ".venv", "venv", "target"];

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
pub fn holds_secrets(path: &AbsPath, home: &AbsPath) -> Option<&'static str> {
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
            "/p/node_modules/x/.git/config",
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
            "/home/u/.bash_aliases",
            "/home/u/.cargo/env",
            "/home/u/.ssh/authorized_keys",
            "/home/u/.ssh/rc",
            "/home/u/.local/lib/python3.11/site-packages/a.pth",
            "/home/u/.emacs.d/init.el",
            "/home/u/.config/nvim/lua/x.lua",
            "/home/u/.vim/plugin/x.vim",
            "/p/.git/lazygit.yml",
            "/p/_darcs/prefs/defaults",
            "/p/.vs/tasks.vs.json",
            "/p/.amazonq/mcp.json",
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
            "/p/.amazonq/rules/style.md",
            "/p/.ssh/known_hosts",
            "/p/.venv/lib/python3.11/site-packages/a.pth",
            "/home/u/.local/lib/python3.11/site-packages/a/a.py",
            "/p/.emacs.d/notes.org",
            "/p/.vs/slnx.sqlite",
            "/p/.clinerules/style.md",
            "/p/.jj/repo/store/type",
            "/p/.hg/dirstate",
            "/p/.yarn/cache/x.zip",
            // Packages bring the settings of their authors.
            "/p/node_modules/x/.husky/pre-commit",
            "/p/node_modules/x/.mcp.json",
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
    fn what_acts_at_once_counts_first() {
        let acts = |path: &str| {
            protecting(&AbsPath::lexical(Path::new(path)).unwrap()).map(|name| name.acts)
        };
        for (path, expected) in [
            ("/p/.vscode/settings.json", Some(Acts::Later)),
            ("/p/.husky/_/pre-commit", Some(Acts::Later)),
            ("/p/.husky/.envrc", Some(Acts::AtOnce)),
            ("/p/.idea/.git/config", Some(Acts::Repository)),
            ("/p/.hg/hgrc", Some(Acts::Repository)),
            ("/p/.claude/settings.json", Some(Acts::AtOnce)),
            ("/p/.cargo/config.toml", Some(Acts::Later)),
            ("/p/ringwall.toml", Some(Acts::Rules)),
            ("/p/.bashrc", Some(Acts::AtOnce)),
            ("/p/src/main.rs", None),
        ] {
            assert_eq!(acts(path), expected, "{path}");
        }
    }

    #[test]
    fn dependencies_are_what_is_called_so_in_a_workspace() {
        let at = |path: &str| AbsPath::lexical(Path::new(path)).unwrap();
        for (path, workspace, expected) in [
            ("/w/vendor/x/.vscode/settings.json", "/w", false),
            ("/w/target/package/x/.mcp.json", "/w", false),
            ("/w/.venv/x/.claude/settings.json", "/w", false),
            ("/w/vendor/x/.git/hooks/post-checkout", "/w", true),
            ("/w/target/x/.envrc", "/w", true),
            ("/target/vendor/w/.mcp.json", "/target/vendor/w", true),
            ("/target/vendor/w/.mcp.json", "/elsewhere", true),
        ] {
            let found = protecting_in(&at(path), &at(workspace)).is_some();
            assert_eq!(found, expected, "{path}");
        }
        assert!(shadows_in(&at("/w/vendor/x/.claude"), &at("/w")).is_none());
        assert!(shadows_in(&at("/vendor/w/.claude"), &at("/vendor/w")).is_some());
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
