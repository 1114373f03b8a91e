//! Builds the fuzz targets with the stable compiler, and runs each of them for a short time.
//!
//! `cargo fuzz` would need a nightly compiler. Coverage alone does not: the compiler pass is an
//! LLVM pass like any other, and libFuzzer is C++ that the `libfuzzer-sys` crate brings along.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Outcome;
use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, fresh_dir, output, status};

/// What `cargo fuzz` passes, less the sanitizers.
const COVERAGE: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// How much of a failed run's log is shown.
const SHOWN_LINES: usize = 20;

/// The names of all targets.
pub(super) fn targets(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let dir = workspace.root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&dir).context(|| format!("cannot read `{}`", dir.display()))?;
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    if names.is_empty() {
        return Err(Failure::new(format!("no fuzz targets in `{}`", dir.display())));
    }
    names.sort();
    Ok(names)
}

/// The built targets.
#[derive(Debug)]
pub(super) struct Fuzz {
    /// The checkout's directory of targets, seeds and dictionaries.
    sources: PathBuf,
    /// Where logs and the inputs of one run are kept.
    scratch: PathBuf,
    programs: PathBuf,
}

impl Fuzz {
    /// Builds all targets; nothing where that failed or cannot be done.
    pub(super) fn build(workspace: &Workspace) -> Result<(Option<Self>, Outcome), Failure> {
        let Some(compiler) = cxx() else {
            let why = "libFuzzer needs a C++ compiler; install g++ or clang++, or set $CXX";
            return Ok((None, Outcome::skipped(why)));
        };
        let host = workspace.host()?;
        let target_dir = workspace.target.join("fuzz");
        let ended = status(
            workspace
                .cargo()
                .args(["build", "--release", "--locked", "--manifest-path=fuzz/Cargo.toml"])
                // With a target, the flags do not reach build scripts and macros.
                .args(["--target", &host, "--target-dir"])
                .arg(&target_dir)
                .env("CXX", compiler)
                .env("RUSTFLAGS", COVERAGE.join(" "))
                .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        )?;
        if !ended.success() {
            return Ok((None, Outcome::failed(format!("`cargo build` failed: {ended}"))));
        }
        let fuzz = Self {
            sources: workspace.root.join("fuzz"),
            scratch: target_dir.join("runs"),
            programs: target_dir.join(host).join("release"),
        };
        Ok((Some(fuzz), Outcome::PASSED))
    }

    /// Runs one target, from its seeds and with its dictionary.
    pub(super) fn run(&self, target: &str, seconds: u32) -> Result<Outcome, Failure> {
        let corpus = self.scratch.join(target);
        fresh_dir(&corpus)?;
        let artifacts = self.sources.join("artifacts").join(target);
        fs::create_dir_all(&artifacts)
            .context(|| format!("cannot create `{}`", artifacts.display()))?;
        let log = self.scratch.join(format!("{target}.log"));
        let log_file =
            File::create(&log).context(|| format!("cannot write `{}`", log.display()))?;

        let program = self.programs.join(target);
        let mut command = Command::new(&program);
        command.arg(corpus).arg(self.sources.join("seeds").join(target));
        let dictionary = self.sources.join("dictionaries").join(format!("{target}.dict"));
        if dictionary.exists() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        command
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1"])
            // A target sees the same machine wherever it runs.
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file);
        let ended = status(&mut command)?;

        let text = fs::read(&log).context(|| format!("cannot read `{}`", log.display()))?;
        let text = String::from_utf8_lossy(&text);
        let executions = after(&text, "stat::number_of_executed_units:").unwrap_or("no");
        println!("{target}: {executions} executions");
        if ended.success() {
            return Ok(Outcome::PASSED);
        }
        let lines: Vec<_> = text.lines().collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        println!("{}", shown.join("\n"));
        let why = match after(&text, "Test unit written to ") {
            Some(artifact) => format!(
                "the input is in {artifact}; to reproduce: {} {artifact}",
                program.display()
            ),
            None => format!("the target failed: {ended}; the log is {}", log.display()),
        };
        Ok(Outcome::failed(why))
    }
}

/// The first C++ compiler that starts.
fn cxx() -> Option<String> {
    let given = std::env::var("CXX").ok();
    let candidates = given.into_iter().chain(["c++", "g++", "clang++"].map(String::from));
    candidates.into_iter().find(|name| output(Command::new(name).arg("--version")).is_ok())
}

/// What follows these words in the first line that contains them.
fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.split_once(words)?.1.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_log() {
        let log = "Done 7 runs in 1 second(s)\nstat::number_of_executed_units: 7\n\
            artifact_prefix='/a/'; Test unit written to /a/crash-1\n";
        assert_eq!(after(log, "stat::number_of_executed_units:"), Some("7"));
        assert_eq!(after(log, "Test unit written to "), Some("/a/crash-1"));
        assert_eq!(after(log, "stat::peak_rss_mb:"), None);
    }
}
