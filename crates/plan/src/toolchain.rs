//! What every run can reach besides its workspace: the system's and the user's toolchains.
//!
//! Found by running real builds in the sandbox. A new toolchain is one new row in [`homes`].

pub mod homes;
pub(crate) mod variables;

use std::ffi::OsStr;
use std::path::Path;

use crate::without_secrets::Format;

/// What a place is for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To be read.
    Read,
    /// Can be read; what is written there is private and removed after the run. Also if nothing
    /// exists there yet.
    Overlay,
    /// The same, but only if it exists. For toolchain managers, which write to their directory on
    /// every call, and which must not appear to be installed if they are not.
    Layered,
    /// Empty and private.
    Scratch,
    /// The directory of a toolchain: private, with nothing of the host but what other rows show in
    /// it. Also if nothing exists there yet.
    Frame,
    /// The same, but only if it exists.
    Only,
    /// A file with settings: the run gets a copy without the values that may be secrets.
    Settings(Format),
    /// Not needed, although a directory around it is: shown as an empty file or directory, because
    /// tools look at it on their own.
    Empty,
    /// Credentials, which only someone who wants them reads: an attempt is a violation.
    Closed,
}

/// Directories and files of the system that can be read, below the root.
pub const SYSTEM: &[(&str, Use)] = &[
    ("bin", Use::Read),
    ("gnu", Use::Read),
    ("lib", Use::Read),
    ("lib32", Use::Read),
    ("lib64", Use::Read),
    ("libx32", Use::Read),
    ("nix", Use::Read),
    ("opt", Use::Read),
    ("run/current-system", Use::Read),
    ("sbin", Use::Read),
    ("snap", Use::Read),
    ("sys/devices/system", Use::Read),
    ("usr", Use::Read),
    ("var/cache/fontconfig", Use::Read),
    ("var/cache/man", Use::Read),
    ("var/lib/alternatives", Use::Read),
    ("var/lib/ca-certificates", Use::Read),
    ("var/lib/dpkg", Use::Read),
    ("var/lib/gems", Use::Read),
    ("etc/ImageMagick*", Use::Read),
    ("etc/OpenCL", Use::Read),
    ("etc/R", Use::Read),
    ("etc/alternatives", Use::Read),
    ("etc/chromium*", Use::Read),
    ("etc/crypto-policies", Use::Read),
    ("etc/fonts", Use::Read),
    ("etc/gdb", Use::Read),
    ("etc/gitattributes", Use::Read),
    ("etc/glvnd", Use::Read),
    ("etc/groff", Use::Read),
    ("etc/inputrc", Use::Read),
    ("etc/java*", Use::Read),
    ("etc/ld.so.cache", Use::Read),
    ("etc/ld.so.preload", Use::Read),
    ("etc/localtime", Use::Read),
    ("etc/man_db.conf", Use::Read),
    ("etc/manpath.config", Use::Read),
    ("etc/mime.types", Use::Read),
    ("etc/mtab", Use::Read),
    ("etc/openssl.cnf", Use::Read),
    ("etc/os-release", Use::Read),
    ("etc/pki/ca-trust", Use::Read),
    ("etc/pki/tls/cert.pem", Use::Read),
    ("etc/pki/tls/certs", Use::Read),
    ("etc/pki/tls/openssl.cnf", Use::Read),
    ("etc/protocols", Use::Read),
    ("etc/services", Use::Read),
    ("etc/ssl/cert.pem", Use::Read),
    ("etc/ssl/certs", Use::Read),
    ("etc/ssl/openssl.cnf", Use::Read),
    ("etc/static", Use::Read),
    ("etc/terminfo", Use::Read),
    ("etc/timezone", Use::Read),
    ("etc/vim", Use::Read),
];

/// What is different in the directories of the system. Any name may have a `*`.
pub const SYSTEM_PARTS: &[(&str, Use)] = &[
    ("etc/gitconfig", Use::Settings(Format::Git)),
    ("etc/java*/management/jmxremote.password", Use::Empty),
    ("etc/maven/logging", Use::Read),
    ("etc/maven/m2.conf", Use::Read),
    ("etc/maven/settings.xml", Use::Settings(Format::Xml)),
    ("etc/maven/toolchains.xml", Use::Read),
    ("etc/mercurial/hgrc", Use::Settings(Format::Ini)),
    ("etc/mercurial/hgrc.d/*.rc", Use::Settings(Format::Ini)),
    ("etc/npmrc", Use::Settings(Format::Ini)),
    ("etc/php/*/cli", Use::Read),
    ("etc/php/*/cli/php.ini", Use::Settings(Format::Ini)),
    ("etc/php/*/mods-available", Use::Read),
    ("etc/pip.conf", Use::Settings(Format::Ini)),
    ("etc/R/Renviron*", Use::Settings(Format::Ini)),
    ("opt/*/etc/npmrc", Use::Settings(Format::Ini)),
    ("opt/*/pip.conf", Use::Settings(Format::Ini)),
    ("usr/etc/npmrc", Use::Settings(Format::Ini)),
    ("usr/local/etc/gitconfig", Use::Settings(Format::Git)),
    ("usr/local/etc/npmrc", Use::Settings(Format::Ini)),
    ("usr/local/pip.conf", Use::Settings(Format::Ini)),
    ("usr/pip.conf", Use::Settings(Format::Ini)),
];

/// Directories below home in which tools install programs for the user.
pub const PROGRAM_DIRS: &[&str] = &[
    ".bun/bin",
    ".cabal/bin",
    ".cargo/bin",
    ".composer/vendor/bin",
    ".deno/bin",
    ".dotnet/tools",
    ".local/bin",
    ".local/share/pnpm",
    ".npm-global/bin",
    ".volta/bin",
    ".yarn/bin",
    "go/bin",
];

/// Names that programs commonly look for, wherever they are hidden: in every directory above the
/// workspace, or in the home directory. Hidden without counting as a violation.
pub const QUIET_NAMES: &[&str] = &[
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".hg",
    ".jj",
    ".svn",
    ".ignore",
    ".rgignore",
    ".fdignore",
    ".editorconfig",
    ".node-version",
    ".nvmrc",
    ".npmrc",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".cargo",
    ".clang-format",
    ".clang-tidy",
    ".prettierrc",
    ".eslintrc",
    ".eslintrc.js",
    ".eslintrc.json",
    ".browserslistrc",
    ".babelrc",
    "Cargo.lock",
    "Cargo.toml",
    "clippy.toml",
    ".clippy.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "rustfmt.toml",
    ".rustfmt.toml",
    "node_modules",
    "package.json",
    "package-lock.json",
    "pnpm-workspace.yaml",
    "lerna.json",
    "turbo.json",
    "nx.json",
    "tsconfig.json",
    "jsconfig.json",
    "go.mod",
    "go.work",
    "pyproject.toml",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "conftest.py",
    "ruff.toml",
    ".ruff.toml",
    "uv.toml",
    "mise.toml",
    ".mise.toml",
    "justfile",
    "WORKSPACE",
    "MODULE.bazel",
    "settings.gradle",
    "settings.gradle.kts",
    "pom.xml",
    "Gemfile",
    ".bundle",
    "mix.exs",
    "deno.json",
    "deno.jsonc",
    "bunfig.toml",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    ".claude",
    ".mcp.json",
];

/// Paths below home that ordinary programs open whether they need them or not.
pub const QUIET_HOME: &[&str] = &[
    ".ICEauthority",
    ".Xauthority",
    ".bash_aliases",
    ".bash_history",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bundle",
    ".cache",
    ".config",
    ".curlrc",
    ".dircolors",
    ".gdbinit",
    ".gitconfig",
    ".inputrc",
    ".lesshst",
    ".lesskey",
    ".local",
    ".m2",
    ".manpath",
    ".mavenrc",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".pip",
    ".profile",
    ".psqlrc",
    ".pydistutils.cfg",
    ".pythonrc",
    ".python_history",
    ".ripgreprc",
    ".rustfmt.toml",
    ".screenrc",
    ".sqliterc",
    ".subversion",
    ".toprc",
    ".tmux.conf",
    ".vim",
    ".viminfo",
    ".vimrc",
    ".wgetrc",
    ".wget-hsts",
    ".yarnrc",
    ".zlogin",
    ".zprofile",
    ".zsh_history",
    ".zshenv",
    ".zshrc",
];

/// Paths of the system that ordinary programs open whether they need them or not.
pub const QUIET_SYSTEM: &[&str] = &[
    // Every program looks for its own settings there. Its secrets are in `SECRET_SYSTEM`.
    "/etc",
    "/lost+found",
    "/run/nscd",
    "/run/systemd",
    "/run/utmp",
    "/sys",
    "/var/cache",
    "/var/lib",
    "/var/lib/apt",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/run/nscd",
    "/var/run/utmp",
    "/var/spool",
];

/// Directories below home in which ordinary programs create one for themselves whether they need it
/// or not, as they do with a dot in home itself. Creating one is denied, and does not stop the run.
pub const QUIET_PARENTS: &[&str] = &[".config", ".local", ".local/share"];

/// Directories that package managers create in every directory above the one they work in, from the root
/// down, to see which of them is on the same file system. Creating one is denied, and they try the next.
pub const QUIET_TRIES: &[&str] = &["_tmp_*"];

/// What ordinary programs write when they exit, or beside what they read. Writing it is denied, and
/// does not stop the run. Names at any depth.
pub const QUIET_WRITES: &[&str] = &[
    "__pycache__",
    ".bash_history",
    ".lesshst",
    ".node_repl_history",
    ".python_history",
    ".viminfo",
    ".wget-hsts",
    ".zsh_history",
    // Font caches, in whichever directory.
    "fontconfig",
];

/// Paths of the system that hold secrets: reading them is never quiet.
pub const SECRET_SYSTEM: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/docker",
    "/etc/gshadow",
    "/etc/ipsec.d",
    "/etc/ipsec.secrets",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/openvpn",
    "/etc/pki/tls/private",
    "/etc/ppp",
    "/etc/rancher",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/ssh/ssh_host_",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/wireguard",
    "/etc/wpa_supplicant",
];

/// Whether a path is one that a row names.
pub fn matches(row: &Path, path: &Path) -> bool {
    let mut names = path.components();
    let all = row.components().all(|part| {
        names.next().is_some_and(|name| matches_name(part.as_os_str(), name.as_os_str()))
    });
    all && names.next().is_none()
}

/// Whether a name is one that a part of a row stands for.
pub fn matches_name(part: &OsStr, name: &OsStr) -> bool {
    let (part, name) = (part.as_encoded_bytes(), name.as_encoded_bytes());
    let Some(star) = part.iter().position(|byte| *byte == b'*') else { return part == name };
    let (start, rest) = part.split_at(star);
    let end = rest.get(1..).unwrap_or_default();
    name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
}
