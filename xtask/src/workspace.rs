//! The checkout that this program was built from, and how it starts other programs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::failure::{Context, Failure};

/// The checkout.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Its top directory.
    pub(crate) root: PathBuf,
    /// Cargo's target directory, which the environment can change.
    pub(crate) target: PathBuf,
    cargo: OsString,
    rustc: OsString,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or_else(|| Failure::new("this program was not built in a checkout"))?;
        let program = |variable, name: &str| std::env::var_os(variable).unwrap_or(name.into());
        let mut workspace = Self {
            root: root.into(),
            target: root.join("target"),
            cargo: program("CARGO", "cargo"),
            rustc: program("RUSTC", "rustc"),
        };
        let metadata =
            output(workspace.cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
        let metadata: Value = serde_json::from_str(&metadata)
            .context(|| "cannot parse the output of `cargo metadata`".into())?;
        if let Some(target) = metadata.get("target_directory").and_then(Value::as_str) {
            workspace.target = target.into();
        }
        Ok(workspace)
    }

    /// The cargo that started this program, at the top of the checkout.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    pub(crate) fn rustc(&self) -> Command {
        let mut command = Command::new(&self.rustc);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// The triple of this machine.
    pub(crate) fn host(&self) -> Result<String, Failure> {
        let text = output(self.rustc().arg("-vV"))?;
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned)
            .ok_or_else(|| Failure::new("cannot find the host in the output of `rustc -vV`"))
    }
}

/// Prints a command, and runs it on this terminal.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, Failure> {
    announce(command);
    command.status().context(|| format!("cannot start `{}`", shown(command)))
}

/// The same for a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    match status(command)? {
        status if status.success() => Ok(()),
        status => Err(Failure::new(format!("`{}` ended with {status}", shown(command)))),
    }
}

/// The standard output of a command that must succeed, without the last line break.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.trim_end().lines().last().unwrap_or("it printed no error").to_owned();
        return Err(Failure::new(format!(
            "`{}` ended with {}: {last}",
            shown(command),
            output.status
        )));
    }
    let text = String::from_utf8(output.stdout);
    Ok(text
        .context(|| format!("`{}` printed text that is not UTF-8", shown(command)))?
        .trim_end()
        .to_owned())
}

/// Prints a command before it runs.
pub(crate) fn announce(command: &Command) {
    println!("$ {}", shown(command));
}

/// Creates an empty directory, and removes what was there.
pub(crate) fn fresh_dir(path: &Path) -> Result<(), Failure> {
    if path.exists() {
        fs::remove_dir_all(path).context(|| format!("cannot remove `{}`", path.display()))?;
    }
    fs::create_dir_all(path).context(|| format!("cannot create `{}`", path.display()))
}

/// A command as it would be typed.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
