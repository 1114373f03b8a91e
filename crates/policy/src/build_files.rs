//! Files that act when the user runs the project's own build: the project's code, which an agent is
//! there to write. They are not protected. A run says at its end which of them it changed, so that
//! the user can look before they run `make`.

use model::AbsPath;

use crate::protected::PACKAGES;

/// Files that one program acts on.
#[derive(Debug, Clone, Copy)]
pub struct BuildFiles {
    /// The program, or the kind of program.
    pub acts: &'static str,
    /// Names, or short paths of names. A leading `*` matches any beginning of a name that has no
    /// further period, and a trailing `/` stands for a directory with everything in it.
    pub names: &'static [&'static str],
}

/// A name that the user's own commands act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildFile {
    /// Who acts on it.
    pub acts: &'static str,
    /// Whether it is a directory that counts as a whole.
    pub whole: bool,
    /// How many names of directories belong to it.
    pub parents: usize,
    /// Whether only the ending of the name is given, so that there can be many in one directory.
    pub by_ending: bool,
}

const FILES: &[BuildFiles] = &[
    BuildFiles {
        acts: "make",
        names: &[
            "Makefile",
            "makefile",
            "GNUmakefile",
            "*.mk",
            "configure",
            "configure.ac",
            "Makefile.am",
            "CMakeLists.txt",
            "CMakePresets.json",
            "*.cmake",
            "meson.build",
            "SConstruct",
            "SConscript",
            "wscript",
            "premake5.lua",
            "xmake.lua",
            "build.ninja",
            "Makefile.PL",
            "Jakefile",
        ],
    },
    BuildFiles {
        acts: "just, task and other task runners",
        names: &[
            "justfile",
            "Justfile",
            ".justfile",
            "Taskfile.yml",
            "Taskfile.yaml",
            "Rakefile",
            "rakefile",
            "Procfile",
            "Tiltfile",
            "Snakefile",
            "Earthfile",
            "Vagrantfile",
            "Brewfile",
            "tasks.py",
            "fabfile.py",
            "noxfile.py",
            "tox.ini",
            "dodo.py",
            "bacon.toml",
            "process-compose.yaml",
            "Fastfile",
            "Dangerfile",
            "Guardfile",
            "nodemon.json",
        ],
    },
    BuildFiles {
        acts: "npm, pnpm, yarn, bun and deno",
        names: &[
            "package.json",
            ".npmrc",
            "bunfig.toml",
            "deno.json",
            "deno.jsonc",
            "pnpm-workspace.yaml",
            ".pnp.cjs",
            ".pnp.loader.mjs",
            "turbo.json",
            "nx.json",
            "gulpfile.js",
            "gulpfile.ts",
            "Gruntfile.js",
            "binding.gyp",
            "node_modules/.bin/",
            "node_modules/.package-lock.json",
            "node_modules/.modules.yaml",
            "gulpfile.mjs",
            "gulpfile.cjs",
            "Gruntfile.ts",
            ".bowerrc",
        ],
    },
    BuildFiles {
        acts: "a JavaScript tool, or an editor's extension in a trusted folder",
        names: &[
            "*.config.js",
            "*.config.cjs",
            "*.config.mjs",
            "*.config.ts",
            "*.config.mts",
            "*.config.cts",
            ".eslintrc.js",
            ".eslintrc.cjs",
            ".prettierrc.js",
            ".prettierrc.cjs",
            ".prettierrc.mjs",
            ".stylelintrc.js",
            ".stylelintrc.cjs",
            ".babelrc.js",
            ".babelrc.cjs",
            ".mocharc.js",
            ".mocharc.cjs",
            ".lintstagedrc",
            ".lintstagedrc.json",
            ".lintstagedrc.js",
            ".lintstagedrc.mjs",
            ".lintstagedrc.yml",
            ".eslintrc",
            ".eslintrc.json",
            ".eslintrc.yml",
            ".eslintrc.yaml",
            ".prettierrc",
            ".prettierrc.json",
            ".prettierrc.yml",
            ".prettierrc.yaml",
            ".prettierrc.toml",
            ".stylelintrc",
            ".stylelintrc.json",
            ".babelrc",
            ".babelrc.json",
            "babel.config.json",
            ".swcrc",
            ".mocharc.json",
            ".mocharc.yml",
            "jest.config.json",
            ".lintstagedrc.cjs",
            ".commitlintrc.js",
            ".commitlintrc.cjs",
            ".simple-git-hooks.json",
            ".simple-git-hooks.js",
            ".simple-git-hooks.cjs",
        ],
    },
    BuildFiles { acts: "cargo", names: &["Cargo.toml", "build.rs", ".config/nextest.toml"] },
    BuildFiles {
        acts: "python, pip, uv and pytest",
        names: &[
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "conftest.py",
            "pytest.ini",
            "manage.py",
            "sitecustomize.py",
            "usercustomize.py",
            ".venv/bin/",
            "venv/bin/",
            ".venv/pyvenv.cfg",
            "venv/pyvenv.cfg",
            "Pipfile",
            "requirements.txt",
            "mypy.ini",
            ".flake8",
            ".pylintrc",
            "pylintrc",
            "conanfile.py",
        ],
    },
    BuildFiles {
        acts: "go",
        names: &["go.mod", "go.work", ".golangci.yml", ".golangci.yaml", "magefile.go"],
    },
    BuildFiles {
        acts: "a build tool of the JVM",
        names: &[
            "gradlew",
            "mvnw",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "init.gradle",
            "gradle.properties",
            "gradle/wrapper/",
            "pom.xml",
            ".mvn/",
            "build.sbt",
            "build.sc",
            "build.mill",
            ".sbtopts",
            ".jvmopts",
            "project.clj",
            "deps.edn",
            "bb.edn",
            "build.xml",
            "*.gradle",
            "buildSrc/",
        ],
    },
    BuildFiles {
        acts: "ruby and bundler",
        names: &[
            "Gemfile",
            "gems.rb",
            "*.gemspec",
            ".bundle/config",
            "config.ru",
            ".rspec",
            ".rubocop.yml",
            ".solargraph.yml",
            "Podfile",
        ],
    },
    BuildFiles {
        acts: "a build tool of another language",
        names: &[
            "composer.json",
            "mix.exs",
            "rebar.config",
            "rebar.config.script",
            "build.zig",
            "Package.swift",
            "Setup.hs",
            "cabal.project",
            "stack.yaml",
            "dune-project",
            "dune",
            "Project.toml",
            "shard.yml",
            "*.nimble",
            "*.csproj",
            "*.fsproj",
            "*.vbproj",
            "*.sln",
            "Directory.Build.props",
            "Directory.Build.targets",
            "global.json",
            "nuget.config",
            "startup.m",
            "*.props",
            "*.targets",
            "*.vcxproj",
            ".formatter.exs",
            ".php-cs-fixer.php",
            ".php-cs-fixer.dist.php",
        ],
    },
    BuildFiles {
        acts: "bazel, buck and pants",
        names: &[
            "WORKSPACE",
            "WORKSPACE.bazel",
            "MODULE.bazel",
            "BUILD",
            "BUILD.bazel",
            ".bazelrc",
            ".bazeliskrc",
            ".bazelversion",
            "tools/bazel",
            ".buckconfig",
            "pants.toml",
            ".pants.rc",
            "*.bzl",
        ],
    },
    BuildFiles {
        acts: "docker, or another container tool",
        names: &[
            "Dockerfile",
            "Containerfile",
            "docker-compose.yml",
            "docker-compose.yaml",
            "docker-compose.override.yml",
            "compose.yml",
            "compose.yaml",
            "docker-bake.hcl",
            "skaffold.yaml",
            "docker-compose.dev.yml",
            "docker-compose.prod.yml",
            "docker-compose.test.yml",
            "Dockerfile.dev",
            "Dockerfile.prod",
        ],
    },
    BuildFiles {
        acts: "nix and its shells, also by way of direnv",
        names: &[
            "flake.nix",
            "shell.nix",
            "default.nix",
            "devenv.nix",
            "devenv.yaml",
            "devbox.json",
            ".flox/env/",
        ],
    },
    BuildFiles { acts: "git and its extensions", names: &[".gitmodules", ".lfsconfig"] },
    BuildFiles {
        acts: "a language server or an editor that opens the project",
        names: &[
            ".bsp/",
            "buildServer.json",
            "hie.yaml",
            ".luarc.json",
            ".luarc.jsonc",
            ".project",
            ".externalToolBuilders/",
        ],
    },
    BuildFiles {
        acts: "your continuous integration",
        names: &[
            ".github/workflows/",
            ".github/actions/",
            ".gitlab-ci.yml",
            ".circleci/",
            "Jenkinsfile",
            "azure-pipelines.yml",
            ".travis.yml",
            ".drone.yml",
            ".woodpecker.yml",
            ".woodpecker/",
            "bitbucket-pipelines.yml",
            ".buildkite/",
            ".gitea/workflows/",
            ".forgejo/workflows/",
            "cloudbuild.yaml",
            ".gitpod.yml",
            "action.yml",
        ],
    },
    BuildFiles {
        acts: "a tool that deploys",
        names: &["*.tf", "terragrunt.hcl", "Pulumi.yaml", "ansible.cfg", "Chart.yaml"],
    },
];

/// All of them, by the program that acts on them.
pub fn build_files() -> &'static [BuildFiles] {
    FILES
}

/// The table, prepared for looking up many paths.
pub struct BuildFileTable {
    /// Each name with its last component, or with an ending and its period, in the order of these.
    /// It is built for every run, so nothing is allocated for a row.
    rows: Vec<(&'static str, &'static str, BuildFile)>,
}

impl Default for BuildFileTable {
    fn default() -> Self {
        let mut rows = Vec::with_capacity(FILES.iter().map(|files| files.names.len()).sum());
        for BuildFiles { acts, names } in FILES {
            for name in *names {
                let (whole, by_ending) = (name.ends_with('/'), name.starts_with('*'));
                let name = name.trim_end_matches('/');
                let last = name.rsplit('/').next().unwrap_or_default().trim_start_matches('*');
                let parents = name.split('/').count() - 1;
                rows.push((last, name, BuildFile { acts, whole, parents, by_ending }));
            }
        }
        // Stable: of two rows, the first one counts.
        rows.sort_by_key(|(last, ..)| *last);
        Self { rows }
    }
}

impl BuildFileTable {
    /// Who acts on what exists at a path, if it is such a file or directory.
    pub fn find(&self, path: &AbsPath) -> Option<BuildFile> {
        let name = path.as_path().file_name()?.to_str()?;
        // Only one of them fits: an ending begins with a period that is not the first character.
        let first = name.char_indices().skip(1).find(|(_, c)| *c == '.');
        let last = name.rfind('.').filter(|at| *at > 0);
        let endings = first.map(|(at, _)| at).into_iter().chain(last);
        let endings = endings.filter_map(|at| name.get(at..)).map(|ending| (ending, true));
        let found = [(name, false)].into_iter().chain(endings).find_map(|(text, by_ending)| {
            let from = self.rows.partition_point(|(last, ..)| *last < text);
            let rows = self.rows.iter().skip(from).take_while(|(last, ..)| *last == text);
            let above = || path.as_path().components().rev().skip(1);
            let fits = |(_, name, file): &&(_, &str, BuildFile)| {
                let mut pairs = name.rsplit('/').skip(1).zip(above());
                file.by_ending == by_ending
                    && above().count() >= file.parents
                    && pairs.all(|(parent, part)| part.as_os_str() == parent)
            };
            rows.filter(|row| fits(row)).map(|(.., file)| *file).next()
        });
        let file = found?;
        // What packages bring with them acts when they are installed, and that shows elsewhere.
        let mut around = path.as_path().components().rev().skip(1 + file.parents);
        let packed = around.any(|part| PACKAGES.iter().any(|dir| part.as_os_str() == *dir));
        (!packed).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Acts, protected_names};

    #[test]
    fn names_are_found_with_who_acts_on_them() {
        let table = BuildFileTable::default();
        let acts = |path: &str| {
            table.find(&AbsPath::lexical(Path::new(path)).unwrap()).map(|file| file.acts)
        };
        for (path, who) in [
            ("/p/Makefile", "make"),
            ("/p/sub/rules.mk", "make"),
            ("/p/package.json", "npm, pnpm, yarn, bun and deno"),
            ("/p/node_modules/.bin", "npm, pnpm, yarn, bun and deno"),
            (
                "/p/web/vite.config.ts",
                "a JavaScript tool, or an editor's extension in a trusted folder",
            ),
            ("/p/crates/x/build.rs", "cargo"),
            ("/p/.venv/bin", "python, pip, uv and pytest"),
            ("/p/.github/workflows", "your continuous integration"),
            ("/p/a.b.gemspec", "ruby and bundler"),
        ] {
            assert_eq!(acts(path), Some(who), "{path}");
        }
        for path in [
            "/p/README.md",
            "/p/bin",
            "/p/workflows",
            "/p/.mk",
            "/p/node_modules/x/package.json",
            "/p/node_modules/x/node_modules/.bin",
            "/p/.venv/lib/python3/site-packages/x/setup.py",
            "/",
        ] {
            assert_eq!(acts(path), None, "{path}");
        }
    }

    #[test]
    fn a_name_is_in_one_class_and_in_the_documentation() {
        let text = include_str!("../../../docs/protected-names.md");
        let (protected, rest) = text.split_once("\n## Read with a certain content").unwrap();
        let (judged, own) = rest.split_once("\n## The project's own build").unwrap();
        let is_in = |text: &str, name: &str| text.contains(&format!("`{name}`"));
        for name in protected_names().iter().map(|name| name.path.join("/")) {
            let row = protected.lines().find(|line| line.starts_with("| ") && is_in(line, &name));
            assert!(row.is_some(), "`{name}` is not documented as protected");
            assert!(!is_in(judged, &name) && !is_in(own, &name), "`{name}` has two classes");
        }
        for name in protected_names() {
            let (path, row) = (format!("`{}`", name.path.join("/")), format!("| {} |", name.why));
            let line = protected.lines().find(|line| line.starts_with(&row)).unwrap();
            let acts = match name.acts {
                Acts::Repository => "at once, its own",
                Acts::Rules => "at once, rules",
                Acts::AtOnce => "at once",
                Acts::Later => "later",
            };
            assert!(line.starts_with(&format!("{row} {acts} |")), "{line}: {acts}");
            let mark = if name.in_packages { path } else { format!("{path}+") };
            assert!(
                line.contains(&mark) && (!name.in_packages || !line.contains(&format!("{mark}+")))
            );
        }
        for name in crate::toolchain_files() {
            assert!(is_in(judged, name), "`{name}` is not documented");
        }
        for name in FILES.iter().flat_map(|files| files.names) {
            assert!(is_in(own, name), "`{name}` is not documented as part of a build");
            assert!(!is_in(protected, name), "`{name}` has two classes");
        }
    }
}
