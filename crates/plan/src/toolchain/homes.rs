//! The user's toolchains: what a run needs of each directory.
//!
//! Tools keep tokens beside what they build with, under names of their own and in files that any
//! version may add. So a row lists what is needed; of a directory with rows below it, everything
//! else is absent. Files that tools read on their own are never [`Use::Closed`], or the tool would
//! be stopped: they are shown without secrets, or empty.

use super::Use::{self, Closed, Empty, Frame, Layered, Only, Overlay, Read, Scratch};
use crate::without_secrets::Format::{Git, Ini, Toml, Xml};

/// One toolchain.
#[derive(Debug, Clone, Copy)]
pub struct Toolchain {
    /// Where it is below home.
    pub homes: &'static [&'static str],
    /// Variables that name its directory if it is elsewhere.
    pub variables: &'static [&'static str],
    /// What the directory itself is.
    pub itself: Use,
    /// What is needed of it, or treated differently. A `*` matches any part of one name.
    pub parts: &'static [(&'static str, Use)],
}

const INI: Use = Use::Settings(Ini);
const GIT: Use = Use::Settings(Git);
const TOML: Use = Use::Settings(Toml);
const XML: Use = Use::Settings(Xml);

const fn at(
    homes: &'static [&'static str],
    itself: Use,
    parts: &'static [(&'static str, Use)],
) -> Toolchain {
    Toolchain { homes, variables: &[], itself, parts }
}

impl Toolchain {
    const fn or(self, variables: &'static [&'static str]) -> Self {
        Self { variables, ..self }
    }
}

/// What virtualenvwrapper runs, and where pip and conda look, in each environment of a directory.
const ENVIRONMENTS: &[(&str, Use)] = &[
    ("*/pip.conf", INI),
    ("*/.env", Empty),
    ("*/bin/postactivate", Empty),
    ("*/bin/preactivate", Empty),
    ("*/bin/postdeactivate", Empty),
    ("*/bin/predeactivate", Empty),
    ("*/etc/conda/activate.d", Empty),
    ("*/etc/conda/deactivate.d", Empty),
    ("*/conda-meta/state", Empty),
    // virtualenvwrapper's own, beside the environments.
    ("get_env_details", Empty),
    ("initialize", Empty),
    ("postactivate", Empty),
    ("postdeactivate", Empty),
    ("postmkproject", Empty),
    ("postmkvirtualenv", Empty),
    ("postrmvirtualenv", Empty),
    ("preactivate", Empty),
    ("predeactivate", Empty),
    ("premkproject", Empty),
    ("premkvirtualenv", Empty),
    ("prermvirtualenv", Empty),
];

/// Every toolchain.
pub const TOOLCHAINS: &[Toolchain] = &[
    at(
        &[".asdf"],
        Only,
        &[
            ("asdf.*", Read),
            ("bin", Layered),
            ("completions", Read),
            ("defaults", Read),
            ("installs", Layered),
            ("installs/*/*/etc/npmrc", INI),
            ("installs/python/*/pip.conf", INI),
            ("internal", Read),
            ("lib", Read),
            ("libexec", Read),
            ("plugins", Layered),
            ("plugins/*/.git", Empty),
            ("shims", Layered),
            ("version.txt", Read),
        ],
    )
    .or(&["ASDF_DIR"]),
    at(&[".bun"], Only, &[("bin", Layered), ("install", Layered)]),
    at(
        &[".cache"],
        Scratch,
        &[
            ("Cypress", Layered),
            ("bazelisk", Layered),
            ("ccache", Layered),
            ("deno", Layered),
            ("electron", Layered),
            ("go-build", Layered),
            ("golangci-lint", Layered),
            // The user's tokens are beside these.
            ("huggingface/datasets", Layered),
            ("huggingface/hub", Layered),
            ("ms-playwright", Layered),
            ("ms-playwright-go", Layered),
            ("node", Layered),
            ("node-gyp", Layered),
            ("pip", Layered),
            ("pnpm", Layered),
            ("puppeteer", Layered),
            ("pypoetry", Layered),
            ("pypoetry/virtualenvs/*/pip.conf", INI),
            ("sccache", Layered),
            ("uv", Layered),
            ("yarn", Layered),
            ("zig", Layered),
        ],
    ),
    at(&[".ccache"], Layered, &[("ccache.conf", INI)]),
    // `config` names repositories, with a user and a password for uploads.
    at(
        &[".cabal"],
        Only,
        &[
            ("bin", Read),
            ("config", INI),
            ("lib", Read),
            ("libexec", Read),
            ("packages", Read),
            ("share", Read),
            ("store", Read),
        ],
    ),
    at(
        &[".cargo"],
        Frame,
        &[
            ("bin", Layered),
            ("config", TOML),
            ("config.toml", TOML),
            ("credentials", Closed),
            ("credentials.toml", Closed),
            ("git", Layered),
            ("registry", Layered),
        ],
    )
    .or(&["CARGO_HOME"]),
    at(&[".config/go"], Only, &[("env", INI)]),
    at(&[".config/htop", ".config/matplotlib", ".config/procps", ".node-gyp"], Layered, &[]),
    at(&[".config/pip/pip.conf", ".npmrc", ".pip/pip.conf"], INI, &[]),
    at(&[".deno"], Only, &[("bin", Layered), ("env*", Read)]),
    // Its certificate stores and telemetry are in the same directory.
    at(
        &[".dotnet"],
        Only,
        &[
            ("dotnet", Read),
            ("dnx", Read),
            ("host", Read),
            ("library-packs", Read),
            ("metadata", Read),
            ("packs", Read),
            ("sdk", Read),
            ("sdk-manifests", Read),
            ("shared", Read),
            ("store", Read),
            ("templates", Read),
            ("toolResolverCache", Layered),
            ("tools", Layered),
        ],
    ),
    at(
        &[".elan"],
        Only,
        &[
            ("bin", Layered),
            ("env", Read),
            ("settings.toml", Layered),
            ("toolchains", Layered),
            ("update-hashes", Layered),
        ],
    ),
    at(
        &[".fnm", ".local/share/fnm"],
        Only,
        &[
            ("aliases", Layered),
            ("fnm", Read),
            ("node-versions", Layered),
            ("node-versions/*/installation/etc/npmrc", INI),
        ],
    ),
    // A directory for each kind of Ruby.
    at(
        &[".gem"],
        Only,
        &[
            ("cache", Layered),
            ("credentials", Closed),
            ("jruby", Layered),
            ("ruby", Layered),
            ("specs", Layered),
            ("truffleruby", Layered),
        ],
    ),
    at(
        &[".ghcup"],
        Only,
        &[
            ("bin", Layered),
            ("cache", Layered),
            ("db", Read),
            ("env", Read),
            ("ghc", Layered),
            ("hls", Read),
            ("lib", Read),
            ("share", Read),
            ("tmp", Empty),
        ],
    ),
    at(&[".goenv", ".pyenv"], Only, VERSIONS).or(&["PYENV_ROOT"]),
    // Initialisation scripts and the keys of build servers are beside the caches.
    at(
        &[".gradle"],
        Frame,
        &[
            ("caches", Layered),
            ("gradle.properties", INI),
            ("jdks", Layered),
            ("native", Layered),
            ("notifications", Layered),
            ("wrapper", Layered),
            ("wrapper/dists/*/*/*/init.d", Empty),
        ],
    ),
    at(&[".ipython", ".local/state"], Scratch, &[]),
    at(
        &[".julia"],
        Only,
        &[
            ("artifacts", Layered),
            ("bin", Layered),
            ("compiled", Layered),
            ("conda", Layered),
            ("environments", Layered),
            ("juliaup", Layered),
            ("packages", Layered),
            ("prefs", Read),
            ("registries", Layered),
            ("registries/*/.git/config", GIT),
        ],
    ),
    at(
        &[".juliaup"],
        Only,
        &[
            ("bin", Layered),
            ("julia-*", Layered),
            ("juliaself.json", Layered),
            ("juliaup.json", Layered),
        ],
    ),
    // `pip install --user` and its like write there.
    at(&[".local/bin"], Overlay, &[]),
    at(&[".local/lib"], Overlay, &[]),
    at(
        &[".local/pipx", ".local/share/pipx"],
        Only,
        &[
            ("py", Layered),
            ("shared", Layered),
            ("shared/pip.conf", INI),
            ("venvs", Layered),
            ("venvs/*/pip.conf", INI),
            // The arguments of `pip install`, with the address of the index.
            ("venvs/*/pipx_metadata.json", Empty),
        ],
    ),
    at(
        &[".local/share/mise"],
        Only,
        &[
            ("bin", Layered),
            ("installs", Layered),
            ("installs/node/*/etc/npmrc", INI),
            ("installs/python/*/pip.conf", INI),
            ("plugins", Layered),
            ("plugins/*/.git", Empty),
            ("shims", Layered),
        ],
    ),
    // Programs that are installed for the user lie directly in it.
    at(
        &[".local/share/pnpm"],
        Layered,
        &[("auth.ini", INI), ("nodejs/*/etc/npmrc", INI), ("rc", INI)],
    ),
    at(
        &[".local/share/uv"],
        Only,
        &[
            ("credentials", Closed),
            ("python", Layered),
            ("python/*/pip.conf", INI),
            ("tools", Layered),
            ("tools/*/pip.conf", INI),
            ("tools/*/uv-receipt.toml", TOML),
        ],
    ),
    at(&[".local/share/virtualenv"], Layered, &[]),
    at(&[".local/share/virtualenvs", ".virtualenvs"], Layered, ENVIRONMENTS),
    at(&[".m2/repository"], Overlay, &[]),
    at(&[".m2/wrapper"], Layered, &[]),
    at(
        &[".mix"],
        Only,
        &[
            ("archives", Layered),
            ("elixir", Layered),
            ("escripts", Layered),
            ("rebar", Read),
            ("rebar3", Read),
        ],
    ),
    at(&[".nix-profile"], Read, &[]),
    at(&[".npm"], Frame, &[("_cacache", Layered), ("_npx", Layered), ("_prebuilds", Layered)]),
    at(
        &[".npm-global"],
        Only,
        &[
            ("bin", Layered),
            ("etc/npmrc", INI),
            ("include", Read),
            ("lib", Layered),
            ("share", Layered),
        ],
    ),
    at(&[".nuget"], Only, &[("NuGet/NuGet.Config", XML), ("packages", Layered)]),
    at(
        &[".nvm"],
        Only,
        &[
            (".cache", Layered),
            ("alias", Layered),
            ("bash_completion", Read),
            ("default-packages", Read),
            ("nvm-exec", Read),
            ("nvm.sh", Read),
            ("v*", Layered),
            ("versions/*/*/etc/npmrc", INI),
        ],
    )
    .or(&["NVM_DIR"]),
    // A switch is a directory of any name.
    at(
        &[".opam"],
        Layered,
        &[("plugins/*/*.token", Empty), ("plugins/opam-publish", Empty), ("repo/*/.git", Empty)],
    ),
    at(&[".rbenv"], Only, VERSIONS),
    at(&[".rustup"], Layered, &[]).or(&["RUSTUP_HOME"]),
    at(
        &[".rvm"],
        Only,
        &[
            ("VERSION", Read),
            ("RELEASE", Read),
            ("bin", Layered),
            ("config", Read),
            ("contrib", Read),
            ("environments", Read),
            ("gems", Layered),
            ("gemsets", Read),
            ("installed.at", Read),
            ("lib", Read),
            ("patches", Read),
            ("patchsets", Read),
            ("rubies", Layered),
            ("scripts", Read),
            ("wrappers", Layered),
        ],
    ),
    // What is in `1.0/*.sbt` and `1.0/plugins` runs in every build, and holds its credentials.
    at(
        &[".sbt"],
        Only,
        &[
            (".credentials", Closed),
            ("1.0/zinc", Layered),
            ("boot", Layered),
            ("launchers", Layered),
            ("preloaded", Read),
            ("repositories", INI),
        ],
    ),
    at(
        &[".sdkman"],
        Only,
        &[
            ("bin", Read),
            ("candidates", Layered),
            ("candidates/gradle/*/init.d", Empty),
            ("candidates/maven/*/conf/settings.xml", XML),
            ("contrib", Read),
            ("etc", Read),
            ("libexec", Read),
            ("src", Read),
            ("var", Layered),
        ],
    )
    .or(&["SDKMAN_DIR"]),
    at(
        &[".stack"],
        Only,
        &[
            ("global-project", Layered),
            ("pantry", Layered),
            ("programs", Layered),
            ("setup-exe-cache", Layered),
            ("setup-exe-src", Layered),
            ("snapshots", Layered),
            ("stack.sqlite3", Layered),
        ],
    ),
    at(
        &[".swiftly"],
        Only,
        &[("bin", Layered), ("config.json", Layered), ("env.*", Read), ("toolchains", Layered)],
    ),
    at(&[".terminfo"], Read, &[]),
    at(
        &[".volta"],
        Only,
        &[
            ("bin", Layered),
            ("cache", Layered),
            ("layout.*", Read),
            ("tools", Layered),
            ("tools/image/node/*/etc/npmrc", INI),
            ("volta", Read),
            ("volta-migrate", Read),
            ("volta-shim", Read),
        ],
    )
    .or(&["VOLTA_HOME"]),
    at(
        &[".yarn"],
        Frame,
        &[
            ("berry", Layered),
            ("bin", Layered),
            ("cache", Layered),
            ("releases", Layered),
            ("switch", Layered),
        ],
    ),
    at(&[".zig"], Read, &[]),
    // `src` is the user's own work; the clones of modules know the addresses they came from.
    at(
        &["go"],
        Frame,
        &[
            ("bin", Layered),
            ("pkg/mod", Layered),
            ("pkg/mod/cache/vcs", Empty),
            ("pkg/sumdb", Layered),
        ],
    )
    .or(&["GOPATH"]),
    at(&[], Read, &[]).or(&["GOROOT"]),
    at(
        &[],
        Read,
        &[
            ("conf/management/jmxremote.password", Empty),
            ("lib/management/jmxremote.password", Empty),
        ],
    )
    .or(&["JAVA_HOME"]),
    at(
        &[],
        Read,
        &[
            (".env", Empty),
            ("bin/postactivate", Empty),
            ("bin/postdeactivate", Empty),
            ("bin/preactivate", Empty),
            ("bin/predeactivate", Empty),
            ("pip.conf", INI),
        ],
    )
    .or(&["VIRTUAL_ENV"]),
];

/// What managers of versions in the manner of rbenv have.
const VERSIONS: &[(&str, Use)] = &[
    ("bin", Read),
    ("libexec", Read),
    ("plugins", Read),
    ("plugins/*/.git", Empty),
    ("pyenv.d", Read),
    ("rbenv.d", Read),
    ("shims", Layered),
    ("version", Layered),
    ("versions", Layered),
    ("versions/*/envs/*/bin/postactivate", Empty),
    ("versions/*/envs/*/pip.conf", INI),
    ("versions/*/pip.conf", INI),
];
