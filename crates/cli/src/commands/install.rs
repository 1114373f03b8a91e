//! `ringwall install` and `ringwall uninstall`: add the hook to an agent's settings, and remove it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agents::{Agent, Form, HookCommand, Installed, Scope};
use facts::Places;
use model::FileText;

use super::refuse_agents;
use crate::args::{InstallArgs, ScopeName};
use crate::client::{self, Opinion};
use crate::failure::Failure;
use crate::files;
use crate::installs::{Install, LockedInstalls};
use crate::setup::settings_file;
use crate::terminal::{self, plain};

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
    let mut installs = open_installs(&places)?;
    let programs = installs.list.programs(agent.name);
    let known = installs.take(agent.name, &path);
    let Some(text) = read(&path)? else {
        installs.write().map_err(Failure::new)?;
        terminal::print(&format!("{} does not exist\n", path.display()));
        return Ok(ExitCode::SUCCESS);
    };
    // The file was not edited since, so exactly the old text can be restored.
    let before = known.filter(|known| known.left_as(&text)).map(|known| known.before);
    let before = before.map(|hash| hash.map(|hash| installs.list.backup(&hash)).transpose());
    let said = match before {
        Some(Ok(None)) => {
            files::remove(&path).map_err(|error| cannot("remove", &path, &error))?;
            format!("removed {}, which did not exist before the install\n", path.display())
        }
        Some(Ok(Some(before))) => {
            files::replace(&path, &before).map_err(|error| cannot("write", &path, &error))?;
            format!("restored {} as it was before the install\n", path.display())
        }
        Some(Err(_)) | None => match agents::uninstall(agent, &text, &programs)
            .map_err(Failure::new)?
        {
            Some(edited) => {
                files::replace(&path, &edited).map_err(|error| cannot("write", &path, &error))?;
                format!("removed the hook from {}\n", path.display())
            }
            None => format!("the hook is not in {}\n", path.display()),
        },
    };
    installs.write().map_err(Failure::new)?;
    terminal::print(&said);
    Ok(ExitCode::SUCCESS)
}

/// Adds the hook to one settings file, and returns what to print.
pub(super) fn install_hook(
    agent: &'static Agent,
    places: &Places,
    scope: ScopeName,
) -> Result<String, Failure> {
    let path = path_of(agent, places, scope);
    let form = form(agent);
    let mut installs = open_installs(places)?;
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    let programs = installs.list.programs(agent.name);
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::config(format!("{}: {why}", path.display())).hint("nothing was changed")
    };
    let found = agents::installed(agent, text, &programs).map_err(|error| unusable(&error))?;
    let mut args = vec!["hook".into(), agent.name.into()];
    let mut phases = found.hooks.iter().map(|(_, hook)| hook.phase_args());
    args.extend(phases.find(|args| !args.is_empty()).unwrap_or_default());
    let hook = HookCommand { program: own_path()?, args, form };
    let after = agents::install(agent, text, &hook, &programs).map_err(|error| unusable(&error))?;
    if let Some(why) = never_called(agent, &after) {
        return Err(unusable(&why));
    }
    // The backup is written first: a crash in between leaves one backup too many, not too few.
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot record the install: {error}"));
    let known = installs.take(agent.name, &path);
    let before = match known.filter(|known| known.left_as(text)) {
        Some(known) => known.before,
        // Edited since, or not ours: keep what the user has there now.
        None => before
            .as_deref()
            .map(|text| {
                let without = agents::uninstall(agent, text, &programs).ok().flatten();
                installs.keep(without.as_deref().unwrap_or(text))
            })
            .transpose()
            .map_err(failed)?,
    };
    installs.add(Install {
        agent: agent.name.into(),
        path: path.clone(),
        program: hook.program.clone(),
        groups: agents::groups(agent, &hook),
        before,
        after: installs.keep(&after).map_err(failed)?,
    });
    installs.write().map_err(failed)?;
    files::replace(&path, &after).map_err(|error| cannot("write", &path, &error))?;
    drop(installs);
    Ok(report(agent, &path, &found, &hook, &after))
}

/// What was done, what became of the old arguments, and whether the agent accepts the file.
fn report(
    agent: &Agent,
    path: &Path,
    found: &Installed,
    hook: &HookCommand,
    after: &str,
) -> String {
    let at = path.display();
    let mut text = format!("{} now asks Ringwall before every tool call ({at})\n", agent.title);
    if !hook.phase_args().is_empty() {
        text.push_str(&format!("kept `{}`\n", plain(&hook.phase_args().join(" "))));
    }
    let mut dropped: Vec<_> =
        found.hooks.iter().map(|(_, hook)| hook.foreign_args().join(" ")).collect();
    dropped.dedup();
    for args in dropped.iter().filter(|args| !args.is_empty()) {
        let args = plain(args);
        text.push_str(&format!("removed `{args}` from the hook's arguments\n"));
    }
    if let Opinion::Rejects(complaints) = client::opinion(agent, after) {
        for complaint in complaints {
            let complaint = plain(&complaint);
            text.push_str(&format!("warning: {} may ignore this file: {complaint}\n", agent.title));
        }
    }
    text
}

/// Why an agent with these settings would not call our hook, where that is certain.
fn never_called(agent: &Agent, text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let settings = serde_json::from_str(text).unwrap_or_default();
    let rules = &agent.settings_rules;
    policy::hooks_off(rules, &settings).or_else(|| {
        let key = policy::wrong_shape(rules, &settings)?;
        Some(format!(
            "{} does not accept the value of `{key}` and ignores the whole file",
            agent.title
        ))
    })
}

/// Without a shell where the agent's version supports it; every version supports a shell.
fn form(agent: &Agent) -> Form {
    match (agent.exec_form_since, client::version_of(agent)) {
        (Some(since), Some((_, version))) if version >= since => Form::Exec,
        _ => Form::Shell,
    }
}

fn own_path() -> Result<String, Failure> {
    let path = std::env::current_exe().map_err(Failure::new)?;
    path.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("the path of this program is not valid UTF-8: {}", path.display()))
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

fn open_installs(places: &Places) -> Result<LockedInstalls, Failure> {
    LockedInstalls::open(&places.state_dir).map_err(|error| {
        let dir = places.state_dir.display();
        Failure::new(format!("cannot read the list of installs: {error}"))
            .hint(format!("move {dir}/installs.json away, then install again"))
    })
}

fn known(name: &str) -> Result<&'static Agent, Failure> {
    agents::find(name).ok_or_else(|| Failure::usage(format!("unknown agent `{name}`")))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}: {error}", path.display()))
}
