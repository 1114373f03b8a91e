//! The environment of the command, built from nothing.

use std::ffi::{OsStr, OsString};

use model::plan::PROXY_PORT;
use model::{Level, Net};

use super::toolchain::homes::TOOLCHAINS;
use super::{Machine, toolchain};
use policy::{Context, Policy};

pub(super) fn build(
    policy: &Policy,
    context: &Context,
    machine: &Machine,
    net: Net,
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        let name = name.to_string_lossy();
        let by_user = policy.environment.pass.iter().map(|rule| rule.value.as_str());
        let by_user = by_user.chain(machine.agent.pass.iter().map(String::as_str));
        let by_table = toolchain::VARIABLES.iter().copied();
        let homes = TOOLCHAINS.iter().flat_map(|tool| tool.variables).copied();
        by_table.chain(homes).chain(by_user).any(|rule| match rule.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == rule,
        })
    };
    let mut variables: Vec<_> =
        machine.environment.iter().filter(|(name, _)| passes(name)).cloned().collect();
    for (name, value) in &machine.agent.set {
        if !variables.iter().any(|(known, _)| known == name.as_str()) {
            variables.push((name.into(), value.into()));
        }
    }
    let mut set = |name: &str, value: OsString| {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value));
    };
    set("HOME", context.home.as_path().into());
    set("TMPDIR", "/tmp".into());
    set("GIT_CEILING_DIRECTORIES", context.workspace.parent().as_path().into());
    set("RINGWALL", level_word(policy.level.value).into());
    if policy.level.value < Level::Readwrite {
        // A command that only reads must not try to write the index.
        set("GIT_OPTIONAL_LOCKS", "0".into());
    }
    if net == Net::Own {
        for (name, value) in proxy() {
            set(name, value.into());
        }
    }
    if policy.git.pin_env.value
        && let Some(worktree) = &machine.worktree
    {
        set("GIT_DIR", worktree.own.as_path().into());
        set("GIT_WORK_TREE", context.workspace.as_path().into());
    }
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    }
    variables
}

/// Every spelling under which programs look for a proxy.
fn proxy() -> Vec<(&'static str, String)> {
    let http = format!("http://127.0.0.1:{PROXY_PORT}");
    let socks = format!("socks5h://127.0.0.1:{PROXY_PORT}");
    let mut variables: Vec<(&str, String)> = Vec::new();
    for name in
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "GRPC_PROXY", "grpc_proxy"]
    {
        variables.push((name, http.clone()));
    }
    for name in ["ALL_PROXY", "all_proxy"] {
        variables.push((name, socks.clone()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.push((name, "localhost,127.0.0.1,0.0.0.0,::1".into()));
    }
    // Tools must not look for their own updates in a run.
    variables.push(("NO_UPDATE_NOTIFIER", "1".into()));
    variables.push(("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()));
    variables.push(("npm_config_update_notifier", "false".into()));
    // Node uses the proxy variables only if this is set.
    variables.push(("NODE_USE_ENV_PROXY", "1".into()));
    variables
}

fn level_word(level: Level) -> String {
    level.to_string()
}
