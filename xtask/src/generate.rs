//! `cargo xtask gen`: files that are generated from the code and committed for their readers.
//!
//! `--check` writes nothing and lists the files that are out of date. A new file is one row in
//! `files`.

mod commands;
mod man;
mod reference;

use std::fs;
use std::process::ExitCode;

use clap_complete::Shell;

use crate::failure::{Context, Failure};
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is out of date
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let stale = stale(workspace)?;
    for file in &stale {
        if args.check {
            println!("{}", file.complaint());
        } else {
            println!("{}", file.write(workspace)?);
        }
    }
    if stale.is_empty() {
        println!("all generated files are up to date");
    }
    Ok(if args.check && !stale.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A path in the checkout, and what belongs there: a file with this content, or nothing.
#[derive(Debug)]
pub(crate) struct Generated {
    path: String,
    text: Option<Vec<u8>>,
}

impl Generated {
    fn new(path: impl Into<String>, text: Vec<u8>) -> Self {
        Self { path: path.into(), text: Some(text) }
    }

    /// What is wrong with a stale file, and how to fix it.
    pub(crate) fn complaint(&self) -> String {
        let problem = if self.text.is_some() { "out of date" } else { "no longer generated" };
        format!("{} is {problem}; run `cargo xtask gen`", self.path)
    }

    /// Writes or removes the file, and returns what was done.
    fn write(&self, workspace: &Workspace) -> Result<String, Failure> {
        let path = workspace.root.join(&self.path);
        let Some(text) = &self.text else {
            fs::remove_file(&path).context(|| format!("cannot remove `{}`", self.path))?;
            return Ok(format!("removed {}", self.path));
        };
        let parent = path.parent().unwrap_or(&workspace.root);
        fs::create_dir_all(parent).context(|| format!("cannot create `{}`", parent.display()))?;
        fs::write(&path, text).context(|| format!("cannot write `{}`", self.path))?;
        Ok(format!("wrote {}", self.path))
    }
}

/// The files that are missing or differ from what would be written, and manual pages of commands
/// that no longer exist.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<Generated>, Failure> {
    let mut files = files()?;
    let obsolete: Vec<_> = fs::read_dir(workspace.root.join("man"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| format!("man/{name}"))
        .filter(|path| files.iter().all(|file| file.path != *path))
        .collect();
    files.retain(|file| fs::read(workspace.root.join(&file.path)).ok() != file.text);
    files.extend(obsolete.into_iter().map(|path| Generated { path, text: None }));
    Ok(files)
}

fn files() -> Result<Vec<Generated>, Failure> {
    let mut files = vec![
        Generated::new("schema/ringwall.schema.json", schema()?),
        Generated::new("docs/cli.md", reference::page(ringwall::command()).into_bytes()),
        Generated::new("completions/ringwall.bash", completions(Shell::Bash)),
        Generated::new("completions/_ringwall", completions(Shell::Zsh)),
        Generated::new("completions/ringwall.fish", completions(Shell::Fish)),
    ];
    let pages = man::pages(ringwall::command())?;
    files.extend(pages.into_iter().map(|(name, text)| Generated::new(format!("man/{name}"), text)));
    Ok(files)
}

fn schema() -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec_pretty(&config::schema())
        .context(|| "cannot write the schema as JSON".into())?;
    text.push(b'\n');
    Ok(text)
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut ringwall::command(), "ringwall", &mut text);
    text
}
