//! What must be checked before a run, and what the request itself grants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::setup::Setup;
use model::{AbsPath, DomainRule, Origin, Publication, Sourced};
use plan::Protections;
use policy::PathRule;

use crate::prepare::untrusted;
use crate::request::{Error, Request};

/// Not every directory can be a workspace without consent.
pub(crate) fn workspace(setup: &Setup, confirmed: bool) -> Result<(), Error> {
    match &setup.context.unfit {
        Some(why) if !confirmed => {
            Err(Error::usage(why)
                .hint("work in a project directory, or pass `--workspace DIR --yes`"))
        }
        _ => Ok(()),
    }
}

/// A workspace that a rule denies would be empty.
pub(crate) fn denials(setup: &Setup) -> Result<(), Error> {
    let workspace = &setup.context.workspace;
    let resolve = |path: &AbsPath| setup.resolver.borrow_mut().resolve(path.as_path()).ok();
    let protections = Protections::new(&setup.loaded.policy, &setup.context, resolve);
    let Some(rule) = protections.hidden_by(workspace) else { return Ok(()) };
    let (text, origin) = (rule.value.text(), &rule.origin);
    let why = format!("`{text}` in deny_read ({origin}) denies the workspace {workspace}");
    Err(Error::config(why).hint("remove or narrow that entry; deny rules win over grants"))
}

/// Lines of project files that would widen what is allowed, and that the user has not trusted.
pub(crate) fn trust(setup: &Setup) -> Result<(), Error> {
    let lines: Vec<_> = setup.loaded.untrusted().map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(untrusted(lines)) }
}

/// The path of a socket that is named by its path, or as `ssh-agent` or `gpg-agent`.
pub fn socket_named(text: &str, home: &Path) -> Result<String, Error> {
    let variable = std::env::var_os("SSH_AUTH_SOCK").filter(|value| !value.is_empty());
    let uid = rustix::process::getuid().as_raw();
    let Some(all) = policy::agent_sockets(text, variable.map(PathBuf::from), (home, uid)) else {
        return Ok(text.into());
    };
    let found = all.iter().find(|path| path.symlink_metadata().is_ok());
    found.map(|path| path.display().to_string()).ok_or_else(|| {
        Error::usage(format!("no socket of `{text}` was found")).hint(match text {
            "ssh-agent" => "start an agent and set SSH_AUTH_SOCK, or name its socket",
            _ => "start the agent, or name its socket",
        })
    })
}

/// The paths and hosts of the request.
pub(crate) fn grant_requested(setup: &mut Setup, request: &Request) -> Result<(), Error> {
    let flag = |name: &str| Origin::Flag(name.into());
    let base = setup.places.cwd.clone();
    let home = setup.context.home.clone();
    let path = |text: &String, name: &str| {
        let value = PathRule::parse(text, &base, &home).map_err(Error::usage)?;
        Ok::<_, Error>(Sourced { value, origin: flag(name) })
    };
    let files = &mut setup.loaded.policy.filesystem;
    for text in &request.allow_read {
        files.allow_read.push(path(text, "--allow-read")?);
    }
    for text in &request.allow_write {
        files.allow_write.push(path(text, "--allow-write")?);
    }
    for text in &request.allow_unix {
        let text = socket_named(text, home.as_path())?;
        setup.loaded.policy.network.allow_unix.push(path(&text, "--allow-unix")?);
    }
    for text in &request.publish {
        let value = Publication::parse(text)
            .map_err(|error| Error::usage(format!("`--publish {text}`: {error}")))?;
        let publication = Sourced { value, origin: flag("--publish") };
        setup.loaded.policy.network.publish.push(publication);
    }
    for text in &request.allow_domain {
        let value = DomainRule::parse(text).map_err(Error::usage)?;
        let rule = Sourced { value, origin: flag("--allow-domain") };
        setup.loaded.policy.network.allowed_domains.push(rule);
    }
    Ok(())
}

/// The variables of the request. A value that it gives is the user's own, whatever the name is.
pub(crate) fn pass_variables(setup: &mut Setup, request: &Request) -> Result<(), Error> {
    for (name, value) in &request.environment {
        let plain = name.to_string_lossy();
        if plain.is_empty() || plain.contains(['=', '\0']) {
            return Err(Error::usage(format!("`{plain}` is not a valid variable name")));
        }
        if value.is_none() {
            let (value, origin) = (plain.into_owned(), Origin::Flag("--env".into()));
            setup.loaded.policy.environment.pass.push(Sourced { value, origin });
        }
    }
    Ok(())
}

/// Certificates that variables of the caller name: programs that are told to trust them fail without
/// them. What else such a variable may name is not granted.
pub(crate) fn grant_certificates(setup: &mut Setup) {
    let environment: Vec<_> = std::env::vars_os().collect();
    // Many variables name the same file.
    let mut looked_at = BTreeMap::new();
    for (name, file) in plan::certificate_files(&environment) {
        let found = setup.resolver.borrow_mut().resolve(&file);
        let Ok(path) = found else { continue };
        // What is in the workspace is seen there. A link in it may be a run's.
        let own = setup.context.workspace.as_path();
        let is_good = || {
            let system = SYSTEM_CERTIFICATES.iter().any(|dir| path.as_path().starts_with(dir));
            system || holds_certificates(path.as_path())
        };
        let good = *looked_at.entry(path.clone()).or_insert_with(is_good);
        if !file.is_absolute() || file.starts_with(own) || !good {
            continue;
        }
        let origin = Origin::Environment(name.clone());
        let value = PathRule::literal(&path);
        let policy = &mut setup.loaded.policy;
        policy.filesystem.allow_read.push(Sourced { value, origin: origin.clone() });
        policy.environment.pass.push(Sourced { value: name, origin });
    }
}

/// Where the system has its certificates, which every run can read. They are large.
const SYSTEM_CERTIFICATES: &[&str] = &["/etc/ssl/certs", "/usr"];

/// Whether a file holds certificates, and no private key beside them.
fn holds_certificates(path: &Path) -> bool {
    /// More than all certificate authorities of a system take.
    const MOST: u64 = 4 << 20;
    let Ok(found) = path.metadata() else { return false };
    if !found.is_file() || found.len() > MOST {
        return false;
    }
    let Ok(bytes) = std::fs::read(path) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    text.contains("CERTIFICATE-----") && !text.contains("PRIVATE KEY-----")
}

/// The command and this program can be read: the user typed the command, and hooks inside call this
/// program.
pub(crate) fn grant_programs(setup: &mut Setup, request: &Request) {
    let typed = request.command.first().map(PathBuf::from).unwrap_or_default();
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

/// The program that a path leads to. A link in the workspace must not lead out of it, because an
/// earlier run can have created it under the name of any program.
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
