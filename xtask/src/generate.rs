//! `cargo xtask gen`: files that follow from the code, kept in the repository for their readers.
//!
//! `--check` writes nothing and names what has become stale. A new file is one row in `files`.

mod reference;

use std::fs;
use std::process::ExitCode;

use clap_complete::Shell;

use crate::failure::{Context, Failure};
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not what would be written
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let stale = stale(workspace)?;
    for file in &stale {
        if args.check {
            println!("{}", file.complaint());
        } else {
            let path = workspace.root.join(file.path);
            let parent = path.parent().unwrap_or(&workspace.root);
            fs::create_dir_all(parent).context(|| format!("cannot make `{}`", parent.display()))?;
            fs::write(&path, &file.text).context(|| format!("cannot write `{}`", file.path))?;
            println!("{} is written", file.path);
        }
    }
    if stale.is_empty() {
        println!("every generated file is up to date");
    }
    Ok(if args.check && !stale.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A generated file, and what belongs in it.
#[derive(Debug)]
pub(crate) struct Generated {
    path: &'static str,
    text: Vec<u8>,
}

impl Generated {
    /// What is wrong with a stale file, and the way out.
    pub(crate) fn complaint(&self) -> String {
        format!("{} is stale; `cargo xtask gen` writes it anew", self.path)
    }
}

/// The files whose content is not what it should be, or that are missing.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<Generated>, Failure> {
    let mut files = files()?;
    files.retain(|file| fs::read(workspace.root.join(file.path)).ok().as_ref() != Some(&file.text));
    Ok(files)
}

fn files() -> Result<Vec<Generated>, Failure> {
    Ok(vec![
        Generated { path: "schema/ringwall.schema.json", text: schema()? },
        Generated { path: "docs/cli.md", text: reference::page(ringwall::command()).into_bytes() },
        Generated { path: "completions/ringwall.bash", text: completions(Shell::Bash) },
        Generated { path: "completions/_ringwall", text: completions(Shell::Zsh) },
        Generated { path: "completions/ringwall.fish", text: completions(Shell::Fish) },
    ])
}

fn schema() -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec_pretty(&config::schema())
        .context(|| "the schema has no JSON form".into())?;
    text.push(b'\n');
    Ok(text)
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut ringwall::command(), "ringwall", &mut text);
    text
}
