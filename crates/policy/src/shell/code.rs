//! Commands that run other code: shells, interpreters, editors, other agents.

use model::Action;
use shell::{Command, Input, Word};

use super::Lower;
use super::fetch;

/// Programs that run code given in an argument or on standard input, and the options for it.
const INTERPRETERS: &[(&[&str], &[&str])] = &[
    (&["python", "python2", "python3", "pypy", "pypy3"], &["-c"]),
    (&["node", "nodejs", "ts-node", "tsx"], &["-e", "--eval", "-p", "--print", "-pe"]),
    (&["bun"], &["-e", "--eval"]),
    (&["deno"], &["eval"]),
    (&["perl"], &["-e", "-E", "-ne", "-pe", "-lne", "-ane"]),
    (&["ruby"], &["-e"]),
    (&["php"], &["-r"]),
    (&["lua", "luajit"], &["-e"]),
    (&["osascript", "Rscript", "R", "julia", "elixir", "scala", "groovy"], &["-e", "-E", "--eval"]),
    (&["awk", "gawk", "mawk", "nawk"], &[]),
];
/// Signs in code that it starts programs, moves, or hides what it does.
const SIGNS: &[&str] = &[
    "os.system",
    "os.popen",
    "os.exec",
    "os.spawn",
    "subprocess",
    "pty.spawn",
    "child_process",
    "execsync",
    "spawnsync",
    "execfile",
    "system(",
    "system ",
    "popen",
    "shell_exec",
    "passthru",
    "proc_open",
    "pcntl_exec",
    "deno.command",
    "deno.run",
    "bun.spawn",
    "bun.$",
    "io.popen",
    "os.execute",
    "runtime.exec",
    "processbuilder",
    "chdir(",
    "%x(",
    "%x{",
    "`",
    "__import__",
    "b64decode",
    "atob(",
    "frombase64",
    "marshal.loads",
    "codecs.decode",
    "getattr(os",
];
/// Signs that it fetches, where the code names an address.
const FETCHES: &[&str] = &[
    "urlopen",
    "urlretrieve",
    "urllib",
    "requests",
    "httpx",
    "aiohttp",
    "http.client",
    "fetch(",
    "https.get",
    "http.get",
    "axios",
    "net::http",
    "open-uri",
    "lwp",
    "file_get_contents",
    "curl_exec",
    "socket",
    "got(",
    "download",
];
/// Variables with which a shell runs code of its own accord.
const SHELL_HOOKS: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "NODE_OPTIONS",
];
/// Switches of agents' programs that take their own guard off.
const AGENT_SWITCHES: &[&str] = &[
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",
    "--yolo",
    "--allow-all-tools",
    "--allow-all",
    "--no-sandbox",
    "--sandbox=danger-full-access",
    "--full-auto",
    "--bare",
    "--approval-mode=yolo",
    "bypassPermissions",
    "danger-full-access",
    "--permission-mode=bypassPermissions",
    "--setting-sources",
];
const AGENTS: &[&str] = &["claude", "codex", "gemini", "copilot", "opencode", "pi", "cursor-agent"];
/// Commands whose output is meant to be evaluated.
const PRODUCERS: &[&str] = &[
    "ssh-agent",
    "direnv",
    "dircolors",
    "brew",
    "pyenv",
    "rbenv",
    "nodenv",
    "mise",
    "asdf",
    "fnm",
    "starship",
    "zoxide",
    "conda",
    "opam",
    "kubectl",
    "gh",
    "npm",
    "pip",
    "poetry",
    "docker",
    "helm",
    "rustup",
    "register-python-argcomplete",
    "lesspipe",
    "locale",
    "stty",
    "resize",
    "minikube",
    "docker-machine",
    "luarocks",
    "perl",
];

pub(super) fn lower(lower: &mut Lower<'_>, command: &Command, program: &str) {
    let part = lower.shown(command);
    hooks(lower, command, program, part);
    match program {
        _ if shell::is_shell(program) => shell_text(lower, command, part),
        "eval" | "source" | "." => evaluated(lower, command, part),
        "alias"
            if command
                .arguments()
                .iter()
                .any(|word| word.value.known().is_none_or(|text| text.contains('='))) =>
        {
            lower.opaque(part, "an alias changes what later names mean");
        }
        "enable" if has(command, "-f") => lower.opaque(part, "it loads code into the shell"),
        "hash" if has(command, "-p") => lower.opaque(part, "it changes which program a name means"),
        "ssh" => remote_shell(lower, command, part),
        "vi" | "vim" | "nvim" | "ex" | "view" | "emacs" | "ed" => editor(lower, command, part),
        "make" | "gmake" | "bmake" if reads_makefile_from_stdin(command) => {
            lower.opaque(part, "the makefile only exists at run time");
        }
        "mount" if has(command, "--bind") || has(command, "--rbind") || has(command, "-o") => {
            lower.opaque(part, "it mounts directories under other names");
        }
        "at" | "batch" | "crontab" | "systemd-run" | "launchctl" if !has(command, "-l") => {
            lower.opaque(part, "it runs something later, outside this session");
        }
        "ringwall" => own(lower, command),
        _ if AGENTS.contains(&program) => agent(lower, command),
        _ => {}
    }
    if let Some((_, flags)) = INTERPRETERS.iter().find(|(names, _)| names.contains(&program)) {
        interpreter(lower, command, program, flags, part);
    }
}

fn has(command: &Command, wanted: &str) -> bool {
    command.arguments().iter().any(|word| word.value.known() == Some(wanted))
}

/// Variables that make a program run code before its own.
fn hooks(lower: &mut Lower<'_>, command: &Command, program: &str, part: &str) {
    for assignment in &command.assignments {
        let name = assignment.name.as_str();
        let shell_only = matches!(name, "ENV" | "PS4" | "PROMPT_COMMAND");
        let runs = SHELL_HOOKS.contains(&name)
            && (!shell_only || matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh"));
        if runs && assignment.value.known() != Some("") && name != "NODE_OPTIONS" {
            lower.opaque(part, &format!("`{name}` makes it run other code first"));
        }
    }
}

/// A shell that reads its text from somewhere else than its command line.
fn shell_text(lower: &mut Lower<'_>, command: &Command, part: &str) {
    if command.arguments().iter().any(|word| fetch::inner_brings(lower.analysis, word)) {
        return lower.push(Action::RunFetched { part: part.into() });
    }
    let operand = command.arguments().iter().find(|word| {
        !word.value.known().is_some_and(|text| text.starts_with(['-', '+']) && text != "-")
    });
    let inline = command.arguments().iter().any(|word| {
        word.value.known().is_some_and(|text| {
            text.starts_with('-') && !text.starts_with("--") && text.contains('c')
        })
    });
    if inline {
        return;
    }
    if let Some(word) = operand {
        match word.value.known() {
            Some("-" | "/dev/stdin" | "/dev/fd/0") => {}
            Some(_) => return,
            None => return lower.opaque(part, "cannot determine which script runs"),
        }
    }
    match &command.input {
        Input::Pipe(_) if fetch::is_fed_content(lower.analysis, command) => {
            lower.push(Action::RunFetched { part: part.into() });
        }
        Input::Pipe(_) | Input::UnknownText => {
            lower.opaque(part, "it runs text that only exists at run time");
        }
        Input::Text(_) | Input::Inherited => {}
    }
}

/// `eval` and `source`: what they run comes from their words.
fn evaluated(lower: &mut Lower<'_>, command: &Command, part: &str) {
    for word in command.arguments() {
        if fetch::inner_brings(lower.analysis, word) {
            return lower.push(Action::RunFetched { part: part.into() });
        }
        let known_producer = !word.inner.is_empty()
            && word.inner.iter().all(|index| {
                let inner = lower.analysis.commands.get(*index);
                inner.and_then(Command::program).is_some_and(|name| PRODUCERS.contains(&name))
            });
        if known_producer {
            let span = word.span.clone();
            // The reader of the text said that eval's word is unknown; this producer is known.
            let shown = lower.text.get(span).unwrap_or_default().to_owned();
            lower
                .actions
                .retain(|action| !matches!(action, Action::Opaque { part, .. } if *part == shown));
        }
    }
}

fn remote_shell(lower: &mut Lower<'_>, command: &Command, part: &str) {
    let local = |text: &str| {
        let host = text.rsplit('@').next().unwrap_or(text);
        matches!(host, "localhost" | "::1" | "0.0.0.0" | "ip6-localhost")
            || host.starts_with("127.")
    };
    if command.arguments().iter().any(|word| word.value.known().is_some_and(local)) {
        lower.opaque(part, "it runs a command on this machine through ssh");
    }
}

fn editor(lower: &mut Lower<'_>, command: &Command, part: &str) {
    let shells_out = |text: &str| {
        text.contains('!')
            || text.contains("system(")
            || text.contains("shell-command")
            || text.contains(":w ")
    };
    let asks = command.arguments().iter().any(|word| {
        word.value.known().is_none_or(|text| shells_out(text) || text.starts_with("--eval"))
    });
    if asks {
        lower.opaque(part, "the editor runs commands of its own");
    }
}

fn reads_makefile_from_stdin(command: &Command) -> bool {
    command.arguments().windows(2).any(|pair| {
        matches!(pair, [flag, file] if matches!(flag.value.known(), Some("-f" | "--file" | "--makefile"))
            && file.value.known().is_none_or(|file| matches!(file, "-" | "/dev/stdin")))
    }) || has(command, "-f-") || has(command, "--file=-")
}

/// The agent may look at Ringwall, not change what it may do.
fn own(lower: &mut Lower<'_>, command: &Command) {
    let verb = command
        .arguments()
        .iter()
        .find_map(|word| word.value.known().filter(|text| !text.starts_with('-')));
    if let Some(verb @ ("grant" | "trust" | "install" | "uninstall" | "init" | "review")) = verb {
        lower.push(Action::LeaveSandbox { field: format!("ringwall {verb}") });
    }
}

fn agent(lower: &mut Lower<'_>, command: &Command) {
    let switch = command
        .arguments()
        .iter()
        .find_map(|word| word.value.known().filter(|text| AGENT_SWITCHES.contains(text)));
    if let Some(switch) = switch {
        lower.push(Action::LeaveSandbox { field: switch.to_owned() });
    }
}

/// Code in an argument or on standard input: looked at for signs, never trusted to be understood.
fn interpreter(
    lower: &mut Lower<'_>,
    command: &Command,
    program: &str,
    flags: &[&str],
    part: &str,
) {
    if command.arguments().iter().any(|word| fetch::inner_brings(lower.analysis, word)) {
        return lower.push(Action::RunFetched { part: part.into() });
    }
    if flags.is_empty() {
        // awk: the program is the first operand.
        let program_text = command
            .arguments()
            .iter()
            .find(|word| !word.value.known().is_some_and(|text| text.starts_with('-')));
        if let Some(text) = program_text.and_then(|word| word.value.known())
            && (text.contains("system(")
                || text.contains("| getline")
                || text.contains("| \"")
                || text.contains("|\""))
        {
            lower.opaque(part, "the awk program starts other programs");
        }
        return;
    }
    let mut words = command.arguments().iter();
    let mut inline = false;
    while let Some(word) = words.next() {
        let Some(text) = word.value.known() else { continue };
        let attached = flags.iter().find(|flag| {
            flag.len() == 2 && text.len() > 2 && text.starts_with(**flag) && !text.starts_with("--")
        });
        if flags.contains(&text) || is_cluster(text, flags) {
            inline = true;
            match words.next() {
                Some(code) => judge_code(lower, code, program, part),
                None => return,
            }
        } else if let Some(flag) = attached {
            inline = true;
            scan(lower, text.get(flag.len()..).unwrap_or_default(), program, part);
        }
    }
    let has_script = command
        .arguments()
        .iter()
        .any(|word| !word.value.known().is_some_and(|text| text.starts_with('-')));
    if inline || has_script {
        return;
    }
    match &command.input {
        Input::Text(code) => scan(lower, &code.clone(), program, part),
        Input::Pipe(_) if fetch::is_fed_content(lower.analysis, command) => {
            lower.push(Action::RunFetched { part: part.into() });
        }
        Input::Pipe(_) => lower.opaque(part, "it runs code that only exists at run time"),
        Input::UnknownText | Input::Inherited => {}
    }
}

/// `-lane`, `-ne`: a cluster that ends in the letter for code.
fn is_cluster(text: &str, flags: &[&str]) -> bool {
    text.len() > 2
        && text.starts_with('-')
        && !text.starts_with("--")
        && text.bytes().skip(1).all(|byte| byte.is_ascii_alphabetic())
        && flags.iter().any(|flag| flag.len() == 2 && text.ends_with(flag.trim_start_matches('-')))
}

fn judge_code(lower: &mut Lower<'_>, code: &Word, program: &str, part: &str) {
    match code.value.known() {
        Some(text) => scan(lower, text, program, part),
        None => lower.opaque(part, "cannot determine the code it runs"),
    }
}

fn scan(lower: &mut Lower<'_>, code: &str, program: &str, part: &str) {
    let code = code.to_ascii_lowercase();
    let backquotes = matches!(program, "perl" | "ruby" | "php");
    let sign = SIGNS.iter().find(|sign| (**sign != "`" || backquotes) && code.contains(**sign));
    if let Some(sign) = sign {
        return lower.opaque(part, &format!("the code uses `{}`", sign.trim_end_matches('(')));
    }
    if code.contains("http") && FETCHES.iter().any(|sign| code.contains(sign)) {
        lower.opaque(part, "the code fetches something");
    }
}
