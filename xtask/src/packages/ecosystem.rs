//! How packages of a kind are downloaded and tested, with the ordinary clients.

use std::fmt;
use std::process::{Command, Stdio};

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ecosystem {
    Npm,
    Pypi,
    Crates,
}

/// What the packages of npm are tested with, at fixed versions.
const NPM: &str = "set -e; npm pack --silent \"$1@$2\" > packed; tar xzf \"$(cat packed)\"; cd package; \
    npm pkg delete devDependencies scripts; \
    npm install --silent --no-audit --no-fund --no-update-notifier --no-save --ignore-scripts --omit=dev \
    tape@5.8.1 for-each@0.3.3 has-tostringtag@1.0.2 core-js@2.6.12 mock-property@1.0.3";

/// The tools are beside the package, so that the tests find them wherever it is copied to.
const PYPI: &str = "set -e; \
    python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --target tools \
    pytest==8.2.2 setuptools==70.3.0 wheel==0.43.0; export PYTHONPATH=$PWD/tools; \
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation \
    \"$1==$2\"; mkdir unpacked; tar xzf *.tar.gz -C unpacked; mv unpacked/* package; mv tools package/.tools";

/// `cargo vendor` gives the files of a package as they were published.
const CRATES: &str = "set -e; cargo init -q --vcs none --name download project; cd project; \
    cargo add -q \"$1@=$2\"; cargo vendor -q ../vendor > /dev/null; cd ..; mv \"vendor/$1\" package; \
    printf '\\n[workspace]\\n' >> package/Cargo.toml";

impl Ecosystem {
    /// The program that downloads.
    pub(super) fn client(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "python3",
            Self::Crates => "cargo",
        }
    }

    pub(super) fn is_installed(self) -> bool {
        let mut command = Command::new(self.client());
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// A script that makes the directory `package`, from a name and a version.
    pub(super) fn download(self) -> &'static str {
        match self {
            Self::Npm => NPM,
            Self::Pypi => PYPI,
            Self::Crates => CRATES,
        }
    }

    /// A script that runs the tests of the package it is in.
    pub(super) fn tests(self) -> &'static str {
        match self {
            Self::Npm => "node node_modules/tape/bin/tape $(ls test/*.js test.js 2> /dev/null)",
            Self::Pypi => {
                "[ -d src ] && PYTHONPATH=$PWD/src || PYTHONPATH=$PWD; \
                 PYTHONPATH=$PYTHONPATH:$PWD/.tools python3 -m pytest -q -p no:cacheprovider"
            }
            Self::Crates => "cargo test --quiet --offline",
        }
    }

    /// The lines of the output that say how many tests there were, without times.
    pub(super) fn counts(self, output: &str) -> Vec<String> {
        let mut lines = output.lines();
        match self {
            Self::Npm => {
                let is_count = |line: &&str| {
                    ["# tests ", "# pass ", "# fail "].iter().any(|start| line.starts_with(start))
                };
                lines.filter(is_count).map(|line| line.trim_end().to_owned()).collect()
            }
            Self::Pypi => {
                let last = lines.rfind(|line| line.contains(" passed"));
                last.and_then(|line| line.split(" in ").next())
                    .map(str::to_owned)
                    .into_iter()
                    .collect()
            }
            Self::Crates => {
                let results = lines.filter(|line| line.starts_with("test result: "));
                results
                    .filter_map(|line| line.split("; finished").next())
                    .map(str::to_owned)
                    .collect()
            }
        }
    }
}

impl fmt::Display for Ecosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Crates => "crates",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_no_times() {
        let table = [
            (Ecosystem::Npm, "ok 1 a\n# tests 3\n# pass  3\n\n", vec!["# tests 3", "# pass  3"]),
            (Ecosystem::Pypi, "....\n4 passed, 1 skipped in 0.05s\n", vec!["4 passed, 1 skipped"]),
            (
                Ecosystem::Crates,
                "running 1 test\ntest result: ok. 1 passed; 0 failed; finished in 0.00s\n",
                vec!["test result: ok. 1 passed; 0 failed"],
            ),
        ];
        for (ecosystem, output, expected) in table {
            assert_eq!(ecosystem.counts(output), expected, "{ecosystem}");
            assert!(ecosystem.counts("nothing\n").is_empty(), "{ecosystem}");
        }
    }
}
