//! `ringwall install|uninstall AGENT`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use agents::{Agent, Form, HookCommand, Scope};
use facts::Places;
use model::FileText;

use super::refuse_agents;
use crate::args::{InstallArgs, ScopeName};
use crate::failure::Failure;
use crate::files;
use crate::installs::{Install, Installs};
use crate::setup::settings_file;
use crate::terminal;

pub(super) fn install(args: &InstallArgs) -> Result<ExitCode, Failure> {
    refuse_agents("install")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let agent = known(&args.agent)?;
    terminal::print(&install_hook(agent, &places, args.scope)?);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn uninstall(args: &InstallArgs) -> Result<ExitCode, Failure> {
    refuse_agents("uninstall")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let agent = known(&args.agent)?;
    let path = path_of(agent, &places, args.scope);
    let Some(text) = read(&path)? else {
        terminal::print(&format!("{} does not exist\n", path.display()));
        return Ok(ExitCode::SUCCESS);
    };
    let mut installs = read_installs(&places)?;
    let known = installs.take(agent.name, &path);
    let said = match known {
        // Nobody touched the file since: put back exactly what was there.
        Some(Install { before: None, ref path, .. })
            if known.as_ref().is_some_and(|k| k.left_as(&text)) =>
        {
            std::fs::remove_file(path).map_err(|error| cannot("remove", path, &error))?;
            format!("removed {}, which did not exist before\n", path.display())
        }
        Some(Install { before: Some(ref before), .. })
            if known.as_ref().is_some_and(|k| k.left_as(&text)) =>
        {
            files::replace(&path, before).map_err(|error| cannot("write", &path, &error))?;
            format!("{} is as it was before\n", path.display())
        }
        _ => match agents::uninstall(agent, &text).map_err(Failure::new)? {
            Some(edited) => {
                files::replace(&path, &edited).map_err(|error| cannot("write", &path, &error))?;
                format!("took the hook out of {}\n", path.display())
            }
            None => format!("the hook is not in {}\n", path.display()),
        },
    };
    installs.write(&places.state_dir).map_err(Failure::new)?;
    terminal::print(&said);
    Ok(ExitCode::SUCCESS)
}

/// Puts the hook into one settings file, and says so.
pub(super) fn install_hook(
    agent: &'static Agent,
    places: &Places,
    scope: ScopeName,
) -> Result<String, Failure> {
    let path = path_of(agent, places, scope);
    let before = read(&path)?;
    let hook = HookCommand {
        program: own_path()?,
        args: vec!["hook".into(), agent.name.into()],
        form: form(agent),
    };
    let text = before.as_deref().unwrap_or_default();
    let after = agents::install(agent, text, &hook)
        .map_err(|error| Failure::config(format!("{}: {error}", path.display())))?;
    // The backup is noted first: a crash in between leaves a backup too many, not one too few.
    let mut installs = read_installs(places)?;
    let install = Install::new(agent.name, &path, hook.command_field(), before, &after);
    installs.add(install);
    installs.write(&places.state_dir).map_err(Failure::new)?;
    files::replace(&path, &after).map_err(|error| cannot("write", &path, &error))?;
    Ok(format!("{} now asks Ringwall before every tool call ({})\n", agent.title, path.display()))
}

/// The version of the agent's program, as it says itself.
pub(super) fn version_of(agent: &Agent) -> Option<(String, [u32; 3])> {
    let output = Command::new(agent.program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let word = text.split_whitespace().next()?.to_owned();
    let mut numbers = word.split('.').map(|part| part.parse().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    Some((word, version))
}

/// Without a shell where the agent is known to manage that; every version can start a shell.
fn form(agent: &Agent) -> Form {
    match (agent.exec_form_since, version_of(agent)) {
        (Some(since), Some((_, version))) if version >= since => Form::Exec,
        _ => Form::Shell,
    }
}

fn own_path() -> Result<String, Failure> {
    let path = std::env::current_exe().map_err(Failure::new)?;
    path.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("the path of this program is not text: {}", path.display()))
    })
}

fn path_of(agent: &Agent, places: &Places, scope: ScopeName) -> PathBuf {
    let workspace = facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone());
    let scope = match scope {
        ScopeName::User => Scope::User,
        ScopeName::Project => Scope::Project,
        ScopeName::Local => Scope::Local,
    };
    settings_file(agent, places, &workspace, scope)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match facts::read_small(path) {
        FileText::Text(text) => Ok(Some(text)),
        FileText::Missing => Ok(None),
        FileText::Unreadable(why) => {
            Err(Failure::config(format!("cannot read {}: {why}", path.display())))
        }
    }
}

fn read_installs(places: &Places) -> Result<Installs, Failure> {
    Installs::read(&places.state_dir)
        .map_err(|error| Failure::new(format!("the list of installs cannot be read: {error}")))
}

fn known(name: &str) -> Result<&'static Agent, Failure> {
    agents::find(name).ok_or_else(|| Failure::usage(format!("there is no agent `{name}`")))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}: {error}", path.display()))
}
