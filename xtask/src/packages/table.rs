//! The packages: small, without dependencies on services, and with their tests in what is published.

use super::Package;
use super::ecosystem::Ecosystem::{self, Crates, Npm, Pypi};

const fn package(ecosystem: Ecosystem, name: &'static str, version: &'static str) -> Package {
    Package { ecosystem, name, version, quick: false }
}

const fn quick(ecosystem: Ecosystem, name: &'static str, version: &'static str) -> Package {
    Package { ecosystem, name, version, quick: true }
}

pub(super) const PACKAGES: &[Package] = &[
    quick(Npm, "minimist", "1.2.8"),
    package(Npm, "concat-map", "0.0.2"),
    package(Npm, "defined", "1.0.1"),
    package(Npm, "function-bind", "1.1.2"),
    package(Npm, "has-symbols", "1.0.3"),
    package(Npm, "hasown", "2.0.2"),
    package(Npm, "is-core-module", "2.13.1"),
    package(Npm, "mkdirp", "0.5.6"),
    package(Npm, "path-parse", "1.0.7"),
    package(Npm, "shell-quote", "1.8.1"),
    package(Npm, "wordwrap", "1.0.0"),
    quick(Pypi, "xmltodict", "0.13.0"),
    package(Pypi, "cachetools", "5.3.3"),
    package(Pypi, "click", "8.1.7"),
    package(Pypi, "inflection", "0.5.1"),
    package(Pypi, "pyasn1", "0.6.0"),
    package(Pypi, "toolz", "0.12.1"),
    package(Pypi, "webcolors", "1.13"),
    quick(Crates, "fnv", "1.0.7"),
    package(Crates, "dunce", "1.0.4"),
    package(Crates, "either", "1.13.0"),
    package(Crates, "heck", "0.5.0"),
    package(Crates, "matches", "0.1.10"),
    package(Crates, "percent-encoding", "2.3.1"),
    package(Crates, "scopeguard", "1.2.0"),
    package(Crates, "shlex", "1.3.0"),
    package(Crates, "static_assertions", "1.1.0"),
    package(Crates, "strsim", "0.11.1"),
];
