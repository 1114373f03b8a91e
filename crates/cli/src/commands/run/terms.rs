//! The terms of a run: what must be settled before it, and what its command line gives it.

use std::path::{Path, PathBuf};

use model::{AbsPath, DomainRule, Origin, Sourced};
use plan::Interest;
use policy::PathRule;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::setup::Setup;
use crate::terminal::{self, plain};

/// Not every directory is ground to stand on, unless somebody says so.
pub(super) fn check_workspace(setup: &Setup, confirmed: bool) -> Result<(), Failure> {
    match &setup.context.unfit {
        Some(why) if !confirmed => {
            Err(Failure::usage(why)
                .hint("work in a project directory, or give --workspace DIR --yes"))
        }
        _ => Ok(()),
    }
}

/// Behind the wall nothing would be left of a workspace that a rule denies.
pub(super) fn check_denials(setup: &Setup) -> Result<(), Failure> {
    let workspace = &setup.context.workspace;
    let leads = |path: &AbsPath| setup.resolver.borrow_mut().resolve(path.as_path()).ok();
    let interest = Interest::new(&setup.loaded.policy, &setup.context, leads);
    let Some(rule) = interest.hidden_by(workspace) else { return Ok(()) };
    let (text, origin) = (rule.value.text(), &rule.origin);
    let why = format!("`{text}` in deny_read ({origin}) denies the workspace {workspace}");
    Err(Failure::config(why).hint("remove that entry, or narrow it; deny beats allow"))
}

/// What an untrusted file would widen is shown, and asked about once where somebody is there.
pub(super) fn check_trust(setup: &Setup) -> Result<(), Failure> {
    let untrusted: Vec<_> = setup.loaded.untrusted().collect();
    if untrusted.is_empty() {
        return Ok(());
    }
    let lines: String =
        untrusted.iter().map(|line| format!("  {}\n", plain(&line.to_string()))).collect();
    terminal::error_line(&format!("this project asks for more than it may have yet:\n{lines}"));
    if terminal::is_attended() && terminal::confirm("Run without these lines?") {
        return Ok(());
    }
    Err(Failure::config("lines of the project's ringwall.toml are not trusted")
        .hint("if they are right: `ringwall trust`, then run again; if not, take them out"))
}

pub(super) fn grant_by_flags(setup: &mut Setup, args: &RunArgs) -> Result<(), Failure> {
    let flag = |name: &str| Origin::Flag(name.into());
    let base = setup.places.cwd.clone();
    let home = setup.context.home.clone();
    let path = |text: &String, name: &str| {
        let value = PathRule::parse(text, &base, &home).map_err(Failure::usage)?;
        Ok::<_, Failure>(Sourced { value, origin: flag(name) })
    };
    let files = &mut setup.loaded.policy.filesystem;
    for text in &args.allow_read {
        files.allow_read.push(path(text, "--allow-read")?);
    }
    for text in &args.allow_write {
        files.allow_write.push(path(text, "--allow-write")?);
    }
    for text in &args.allow_domain {
        let value = DomainRule::parse(text).map_err(Failure::usage)?;
        let rule = Sourced { value, origin: flag("--allow-domain") };
        setup.loaded.policy.network.allowed_domains.push(rule);
    }
    Ok(())
}

/// The command itself, and this program: what the user typed can be read, and hooks inside call us.
pub(super) fn grant_programs(setup: &mut Setup, args: &RunArgs) {
    let typed = args.command.first().map(PathBuf::from).unwrap_or_default();
    let command = if typed.components().count() > 1 {
        Some(setup.places.cwd.join(&typed))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|dir| dir.join(&typed)).find(|path| is_program(path))
    };
    for path in command.into_iter().chain(std::env::current_exe().ok()) {
        let Some(program) = program(setup, &path) else { continue };
        let value = PathRule::literal(&program);
        let origin = Origin::Flag("the command itself".into());
        setup.loaded.policy.filesystem.allow_read.push(Sourced { value, origin });
    }
}

/// What a path leads to, if that can be run. A link in the workspace leads nowhere else: an earlier
/// run can have put it there, under any name that is looked for.
fn program(setup: &Setup, path: &Path) -> Option<AbsPath> {
    let mut resolver = setup.resolver.borrow_mut();
    let workspace = &setup.context.workspace;
    let directory = resolver.resolve(path.parent()?).ok()?;
    let program = resolver.resolve(path).ok()?;
    let stays = !directory.is_within(workspace) || program.is_within(workspace);
    (stays && is_program(program.as_path())).then_some(program)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
