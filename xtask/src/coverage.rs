//! `cargo xtask coverage`: the share of lines that the tests execute, crate by crate.
//!
//! The processes of a sandbox end by `execve`, by `_exit` or by a signal, and a profile that is written
//! at exit would have none of what they did. So the counters are mapped into a shared file, which
//! every process of a test updates as it runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, output, status};

/// The crates on which the sandbox depends. Each must reach the limit.
const ENFORCING: &[&str] = &["facts", "plan", "policy", "proxy", "run", "sandbox"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the report of the last measurement again, without running the tests
    #[arg(long)]
    report: bool,
    /// The least share of lines in each crate that enforces something, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 90.0)]
    least: f64,
    /// Run only the tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let tools = llvm(workspace)?;
    let llvm_cov = |words: &[&str]| {
        let mut command = workspace.cargo();
        command.arg("llvm-cov").args(words).envs(tools.iter().cloned());
        command
    };
    output(&mut llvm_cov(&["--version"]))
        .context(|| "install it with `cargo install cargo-llvm-cov --locked`".into())?;
    let summary = workspace.target.join("coverage.json");
    if !args.report {
        let profiles = workspace.target.join("llvm-cov-target");
        fs::create_dir_all(&profiles).context(|| "cannot create a directory".into())?;
        // The tests also run the program as another user.
        fs::set_permissions(&profiles, Permissions::from_mode(0o777))
            .context(|| format!("cannot open `{}` to all users", profiles.display()))?;
        let words = ["--no-report", "test", "--workspace", "--no-fail-fast"];
        let mut tests = llvm_cov(&words);
        tests.args(["--features=ringwall/test-hooks", "--"]).args(args.filter.as_deref());
        tests.env("LLVM_PROFILE_FILE_NAME", "ringwall-%m%c.profraw");
        tests.env(
            "RUSTFLAGS",
            "--cfg sha2_256_backend=\"soft\" -Cllvm-args=-runtime-counter-relocation",
        );
        let ended = status(&mut tests)?;
        if !ended.success() {
            println!("note: some tests failed; what they executed is counted all the same");
        }
    }
    let path = summary.to_string_lossy();
    let words =
        ["report", "--json", "--summary-only", "--failure-mode=all", "--output-path", &path];
    match status(&mut llvm_cov(&words))? {
        ended if ended.success() => print(workspace, &summary, args.least),
        ended => Err(Failure::new(format!("`cargo llvm-cov report` ended with {ended}"))),
    }
}

/// Where LLVM's own tools are, if rustup did not install them. The system's are best of the compiler's
/// version; the format of profiles changes so rarely that some older ones read them, too.
fn llvm(workspace: &Workspace) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let sysroot = output(workspace.rustc().args(["--print", "sysroot"]))?;
    let own = Path::new(sysroot.trim()).join("lib/rustlib").join(workspace.host()?).join("bin");
    if own.join("llvm-cov").exists() {
        return Ok(Vec::new());
    }
    let version = output(workspace.rustc().arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let major = line.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let major = major.ok_or_else(|| Failure::new("`rustc -vV` names no version of LLVM"))?;
    let found = |variable: &'static str, tool: &str| {
        let mut names =
            (major.saturating_sub(OLDER)..=major).rev().map(|at| format!("{tool}-{at}"));
        let name = names.find(|name| Command::new(name).arg("--version").output().is_ok());
        let name = name.ok_or_else(|| {
            Failure::new(format!(
                "cannot find `{tool}` of LLVM {major}; install it with `rustup component add \
                 llvm-tools` or from your system's package `llvm-{major}` (one of the {OLDER} \
                 versions before it may do), or set {variable}"
            ))
        });
        Ok::<_, Failure>((variable, OsString::from(name?)))
    };
    let tools = [("LLVM_COV", "llvm-cov"), ("LLVM_PROFDATA", "llvm-profdata")];
    let unset = tools.into_iter().filter(|(variable, _)| std::env::var_os(variable).is_none());
    unset.map(|(variable, tool)| found(variable, tool)).collect()
}

/// How many versions of LLVM before the compiler's are tried.
const OLDER: u32 = 4;

/// Prints the share of each crate. Tests are left out.
fn print(workspace: &Workspace, summary: &Path, least: f64) -> Result<ExitCode, Failure> {
    let text = fs::read_to_string(summary).context(|| "cannot read the summary".into())?;
    let summary: Value = serde_json::from_str(&text).context(|| "invalid summary".into())?;
    let files = summary.pointer("/data/0/files").and_then(Value::as_array);
    let mut crates = BTreeMap::<String, (u64, u64)>::new();
    for file in files.into_iter().flatten() {
        let name = file.get("filename").and_then(Value::as_str).unwrap_or_default();
        let Ok(below) = Path::new(name).strip_prefix(workspace.root.join("crates")) else {
            continue;
        };
        let mut parts = below.iter().map(|part| part.to_string_lossy());
        let (Some(name), Some(directory)) = (parts.next(), parts.next()) else { continue };
        let is_test = parts.any(|part| part.trim_end_matches(".rs") == "tests");
        if directory != "src" || is_test {
            continue;
        }
        let number = |key: &str| {
            file.pointer(&format!("/summary/lines/{key}")).and_then(Value::as_u64).unwrap_or(0)
        };
        let entry = crates.entry(name.into_owned()).or_default();
        *entry = (entry.0 + number("covered"), entry.1 + number("count"));
    }
    let mut short = Vec::new();
    for (name, (covered, count)) in &crates {
        #[expect(clippy::cast_precision_loss, reason = "lines are not that many")]
        let share = *covered as f64 * 100.0 / (*count).max(1) as f64;
        println!("{name:8} {covered:>6} of {count:>6} lines  {share:5.1} %");
        if ENFORCING.contains(&name.as_str()) && share < least {
            short.push(name.as_str());
        }
    }
    if short.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::new(format!("less than {least} % of the lines of: {}", short.join(", "))))
}
