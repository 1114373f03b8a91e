//! `cargo xtask packages`: the test suites of real packages, outside and inside, with equal results.
//!
//! Packages are downloaded outside, with the ordinary clients and whatever registries they are set up
//! for, into `target/packages`. Each is then copied twice and its tests are run: without the sandbox, and
//! with `ringwall run` and the built-in rules. Status and counts must be the same, and the run must report
//! nothing. What cannot be downloaded, or fails outside, is skipped and counted.

mod ecosystem;
mod table;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use self::ecosystem::Ecosystem;
use self::table::PACKAGES;
use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, fresh_dir, succeed};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only packages whose kind, name and version contain this text, such as `npm ` or `pypi click`
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// A package with a test suite.
struct Package {
    ecosystem: Ecosystem,
    name: &'static str,
    version: &'static str,
    /// Whether it is one of those that `cargo xtask test` tries.
    quick: bool,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.ecosystem, self.name, self.version)
    }
}

/// What became of one package.
pub(crate) enum Tried {
    /// The same outside and inside.
    Equal,
    /// Not, and how.
    Different(String),
    /// It could not be compared, and why.
    Skipped(String),
}

/// What a test suite did.
#[derive(Debug, PartialEq, Eq)]
struct Suite {
    code: Option<i32>,
    counts: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let (mut equal, mut different, mut skipped) = (0, 0, 0);
    for (name, tried) in compare(workspace, |package| package.to_string().contains(filter))? {
        match tried {
            Tried::Equal => equal += 1,
            Tried::Different(how) => {
                different += 1;
                println!("{name}: {how}");
            }
            Tried::Skipped(why) => {
                skipped += 1;
                println!("{name}: skipped: {why}");
            }
        }
    }
    println!("\n{equal} equal, {different} different, {skipped} skipped");
    Ok(if different == 0 && equal > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The few packages that are tried with every change.
pub(crate) fn quick(workspace: &Workspace) -> Result<Vec<(String, Tried)>, Failure> {
    compare(workspace, |package| package.quick)
}

fn compare(
    workspace: &Workspace,
    wanted: impl Fn(&Package) -> bool,
) -> Result<Vec<(String, Tried)>, Failure> {
    succeed(workspace.cargo().args(["build", "--locked", "--package=ringwall"]))?;
    let bench = Bench {
        dir: workspace.target.join("packages"),
        binary: workspace.target.join("debug/ringwall"),
    };
    let chosen = PACKAGES.iter().filter(|package| wanted(package));
    let tried = chosen.map(|package| {
        let name = package.to_string();
        println!("$ {name}");
        let tried = bench.try_package(package)?;
        Ok((name, tried))
    });
    tried.collect()
}

/// Where packages are kept, and what runs them.
struct Bench {
    dir: PathBuf,
    binary: PathBuf,
}

impl Bench {
    fn try_package(&self, package: &Package) -> Result<Tried, Failure> {
        let ecosystem = package.ecosystem;
        if !ecosystem.is_installed() {
            return Ok(Tried::Skipped(format!("`{}` is not installed", ecosystem.client())));
        }
        let kept = self.dir.join(format!("{ecosystem}-{}-{}", package.name, package.version));
        if let Err(why) = self.download(package, &kept) {
            return Ok(Tried::Skipped(why.to_string()));
        }
        // One for each kind, so that several kinds can be tried at once.
        let place = self.dir.join(format!("work-{ecosystem}"));
        let script = ecosystem.tests();
        let mut outside = shell(&place);
        let outside = Self::suite(package, &kept, &place, outside.args(["-c", script]))?;
        let Ok((outside, _)) = outside else { return Ok(skip_for_time()) };
        if outside.code != Some(0) || outside.counts.is_empty() {
            return Ok(Tried::Skipped(format!("its tests fail outside: {outside:?}")));
        }
        let mut inside = Command::new(&self.binary);
        inside.current_dir(&place).env("XDG_STATE_HOME", self.dir.join("state"));
        inside.args(["run", "--workspace"]).arg(&place).args(["--", "sh", "-c", script]);
        match Self::suite(package, &kept, &place, &mut inside)? {
            Ok((inside, errors)) if inside != outside || has_report(&errors) => {
                Ok(Tried::Different(format!("outside {outside:?}, inside {inside:?}\n{errors}")))
            }
            Ok(_) => Ok(Tried::Equal),
            Err(TooSlow) => Ok(Tried::Different("its tests did not end inside".into())),
        }
    }

    /// Downloads a package unless it is there. The directory appears when it is complete.
    fn download(&self, package: &Package, kept: &Path) -> Result<(), Failure> {
        if kept.exists() {
            return Ok(());
        }
        // Not in this checkout: cargo would add what it creates there to the workspace.
        let place = tempfile::tempdir().context(|| "cannot create a directory".into())?;
        let place = place.path();
        let script = package.ecosystem.download();
        let mut command = shell(place);
        command.args(["-c", script, "sh", package.name, package.version]);
        let output = within(&mut command)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().next_back().unwrap_or_default().to_owned();
            return Err(Failure::new(format!("cannot be downloaded: {last}")));
        }
        let new = self.dir.join(format!("new-{}", package.ecosystem));
        fresh_dir(&new)?;
        copy(&place.join("package"), &new)?;
        std::fs::rename(new, kept).context(|| "cannot keep the package".into())
    }

    /// Runs the tests of a fresh copy.
    fn suite(
        package: &Package,
        kept: &Path,
        place: &Path,
        command: &mut Command,
    ) -> Result<Result<(Suite, String), TooSlow>, Failure> {
        fresh_dir(place)?;
        copy(kept, place)?;
        let output = within(command)?;
        if output.status.code() == Some(TIMED_OUT) {
            return Ok(Err(TooSlow));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let counts = package.ecosystem.counts(&text);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Ok((Suite { code: output.status.code(), counts }, errors)))
    }
}

/// Copies what is in one directory to another.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(from.join(".")).arg(to);
    let copied = copy.status().context(|| "cannot start `cp`".into())?;
    if !copied.success() {
        return Err(Failure::new(format!("`cp` ended with {copied}")));
    }
    Ok(())
}

/// A test suite did not end.
struct TooSlow;

fn skip_for_time() -> Tried {
    Tried::Skipped("its tests did not end outside".into())
}

/// The status of `timeout` when it has ended its command.
const TIMED_OUT: i32 = 124;

/// Runs a command that is ended after three minutes.
fn within(command: &mut Command) -> Result<std::process::Output, Failure> {
    let mut limited = Command::new("timeout");
    limited.arg("180").arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        limited.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stdin(Stdio::null());
    limited.output().context(|| "cannot start `timeout`".into())
}

/// A shell in a directory. The variables that cargo sets for this program are not those of a user.
fn shell(place: &Path) -> Command {
    let mut command = Command::new("sh");
    command.current_dir(place);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG") || text.starts_with("CARGO_MANIFEST") {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a run reported that something was denied.
fn has_report(errors: &str) -> bool {
    errors
        .lines()
        .any(|line| line.starts_with("error: stopped") || line.starts_with("warning: denied"))
}
