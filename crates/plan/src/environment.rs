//! The environment of the command, built from nothing.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::plan::PROXY_PORT;
use model::{Level, Net, Plan};

use super::Machine;
use super::toolchain::homes::TOOLCHAINS;
use super::toolchain::variables;
use super::without_secrets::is_secret_variable;
use policy::{Context, Policy};

/// The variables of the caller that name a file of certificates, with that file.
pub fn certificate_files(
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = (String, PathBuf)> {
    let named = |(name, value): &(OsString, OsString)| {
        let name = name.to_str().filter(|name| variables::CERTIFICATES.contains(name))?;
        Some((name.to_owned(), PathBuf::from(value)))
    };
    environment.iter().filter_map(named)
}

/// The names of the caller's variables that a run does not get, besides those of the login session.
pub fn left_out(plan: &Plan, machine: &Machine) -> Vec<String> {
    let known = |name: &OsString| plan.environment.iter().any(|(passed, _)| passed == name);
    let names = machine.environment.iter().map(|(name, _)| name).filter(|name| !known(name));
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let session = |name: &String| variables::covers(variables::SESSION.iter().copied(), name);
    let mut names: Vec<_> = names.filter(|name| !session(name)).collect();
    names.sort();
    names
}

pub(super) fn build(
    policy: &Policy,
    context: &Context,
    machine: &Machine,
    net: Net,
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr, value: &OsStr| {
        let name = name.to_string_lossy();
        let by_user = policy.environment.pass.iter().map(|rule| rule.value.as_str());
        let by_user = by_user.chain(machine.agent.pass.iter().map(String::as_str));
        let homes = TOOLCHAINS.iter().flat_map(|tool| tool.variables).copied();
        let always = variables::ALWAYS.iter().copied();
        variables::covers(always.chain(homes).chain(by_user), &name)
            || is_harmless(&name, &value.to_string_lossy(), context)
    };
    let passed = machine.environment.iter().filter(|(name, value)| passes(name, value));
    let mut variables: Vec<_> = passed.cloned().collect();
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
    // A granted agent is found by its variable.
    if let Some(socket) = super::git_files::agents_socket(machine) {
        set("SSH_AUTH_SOCK", socket.into());
    }
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
    for (name, value) in &machine.set_by_user {
        // It says that this is a run, and programs inside rely on it.
        if name != "RINGWALL" {
            set(&name.to_string_lossy(), value.clone());
        }
    }
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    }
    variables
}

/// Whether a variable changes only how programs work, and neither its name nor its value looks like a
/// secret. Python's variables also name directories, which must be in the workspace.
fn is_harmless(name: &str, value: &str, context: &Context) -> bool {
    if variables::covers(variables::ADDRESSES.iter().copied(), name)
        && is_plain_address(name, value)
    {
        return true;
    }
    if !variables::covers(variables::HARMLESS.iter().copied(), name) {
        return false;
    }
    let outside = |part: &str| {
        part.starts_with(['/', '~']) && !Path::new(part).starts_with(context.workspace.as_path())
    };
    let leads_out = name.starts_with("PYTHON") && value.split(':').any(outside);
    !leads_out && !is_secret_variable(name, value)
}

/// Whether a value is an address and nothing else. The address of a webhook is its own password.
fn is_plain_address(name: &str, value: &str) -> bool {
    let plain =
        !value.contains(['@', '?', '#', ' ']) && !name.to_ascii_uppercase().contains("HOOK");
    value.contains("://") && plain && !is_secret_variable(name, value)
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::AbsPath;

    fn context() -> Context {
        let at = |text: &str| AbsPath::lexical(Path::new(text)).unwrap();
        Context {
            workspace: at("/work"),
            home: at("/home/u"),
            closed: Vec::new(),
            unfit: None,
            agent_files: Vec::new(),
            own_files: Vec::new(),
            grant_file: "/work/ringwall.toml".into(),
            settings: policy::SettingsContext::default(),
        }
    }

    fn passed(variables: &[(&str, &str)]) -> Vec<String> {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let machine = Machine { environment: environment.collect(), ..Machine::default() };
        let built = build(&Policy::built_in(), &context(), &machine, Net::Host);
        let typed = |name: &String| variables.iter().any(|(known, _)| known == name);
        built.into_iter().map(|(name, _)| name.into_string().unwrap()).filter(typed).collect()
    }

    #[test]
    fn harmless_variables_pass() {
        for (name, value) in [
            ("NODE_ENV", "test"),
            ("RUST_LOG", "debug,hyper=info"),
            ("CFLAGS", "-O2 -g"),
            ("RUSTFLAGS", "-C target-cpu=native"),
            ("DEBUG", "app:*"),
            ("PYTHONPATH", "/work/src:lib"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("VITE_API", "https://api.example.org/v1"),
            ("GIT_AUTHOR_NAME", "A. Key"),
            ("DATABASE_URL", "sqlite:///x.db"),
            ("REDIS_URL", "redis://127.0.0.1:6379/0"),
        ] {
            assert_eq!(passed(&[(name, value)]), [name], "{name}={value}");
        }
    }

    #[test]
    fn secrets_and_what_changes_which_code_runs_do_not_pass() {
        let token = "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        for (name, value) in [
            ("NODE_OPTIONS", "--require /x.js"),
            ("LD_PRELOAD", "/x.so"),
            ("BASH_ENV", "/x"),
            ("VITE_TOKEN", "x"),
            ("NEXT_PUBLIC_KEY", "x"),
            ("PYTHON_KEYRING_PASSWORD", "x"),
            ("CMAKE_SECRET", "x"),
            ("DEBUG", token),
            ("CFLAGS", "-DURL=https://user:password@example.org/"),
            ("VITE_API", "postgres://u:pw@db.example.org/app"),
            ("PYTHONPATH", "/home/u/other"),
            ("PYTHONSTARTUP", "~/.pythonrc"),
            ("AWS_ACCESS_KEY_ID", "x"),
            ("DATABASE_URL", "x"),
            ("DATABASE_URL", "postgres://u:pw@db.example.org/app"),
            ("DATABASE_URL", "postgres://db.example.org/app?password=x"),
            ("CHAT_WEBHOOK_URL", "https://hooks.example.org/services/a"),
            ("ACCESS_TOKEN_URL", "https://example.org/x"),
        ] {
            assert_eq!(passed(&[(name, value)]), [""; 0], "{name}={value}");
        }
    }

    #[test]
    fn what_the_user_sets_by_hand_is_set_whatever_it_looks_like() {
        let set_by_user = vec![
            ("API_TOKEN".into(), "x".into()),
            ("HOME".into(), "/elsewhere".into()),
            ("RINGWALL".into(), String::new().into()),
        ];
        let machine = Machine { set_by_user, ..Machine::default() };
        let built = build(&Policy::built_in(), &context(), &machine, Net::Host);
        let value = |name: &str| built.iter().rfind(|(known, _)| known == name).cloned();
        assert_eq!(value("API_TOKEN").unwrap().1, "x");
        assert_eq!(value("HOME").unwrap().1, "/elsewhere");
        assert_eq!(value("RINGWALL").unwrap().1, "readwrite");
    }
}
