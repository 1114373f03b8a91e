//! The command line: one definition for parsing, help, completions, man pages and `docs/cli.md`.
//!
//! `usage` parses with it and reports mistakes.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand, ValueEnum};
use model::{Attribution, Enforcement, Level};
use run::ViolationAction;

use crate::setup::Options;

/// Run coding agents in a sandbox, and check every tool call they make.
#[derive(Debug, Parser)]
#[command(name = "ringwall", version = VERSION, propagate_version = false)]
#[command(after_help = "To start:\n  \
    ringwall init                        set up this project and the agents on this machine\n  \
    ringwall run -- npm test             run a command in the sandbox\n  \
    ringwall explain -- cat ~/.ssh/id_ed25519   show what would be decided, and why")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("RINGWALL_COMMIT"), ")");

/// The whole command line, for generators.
pub fn command() -> clap::Command {
    Args::command()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Decide about an agent's tool call: the call on stdin, the decision on stdout
    ///
    /// Agents call this before every tool call; `ringwall install` adds it to their settings. The
    /// exit status is always 0 or 2. With 0, stdout holds the decision; empty output means no
    /// objection. With 2, there is no decision: the agent blocks the call, and stderr says why.
    #[command(after_long_help = "Example:\n  ringwall hook claude < call.json")]
    Hook(HookArgs),
    /// Run a command in the sandbox
    ///
    /// The command can read and write the workspace (as its level allows) and read the toolchains
    /// of the system and the user. It has its own /tmp and its own loopback network. Everything
    /// else is denied. By default the first violation stops the run with exit status 77, and the
    /// message names the path, the program and the command that would allow it. Ringwall tests the
    /// sandbox from the inside before it starts the command.
    ///
    /// Exit status: the command's own; 77 stopped by a violation; 69 the sandbox cannot be started;
    /// 78 invalid configuration; 64 wrong usage; 124 a limit was reached; 126 and 127 as in a shell.
    #[command(after_long_help = "Examples:\n  \
        ringwall run -- npm test\n  \
        ringwall run --allow-domain registry.example.org -- npm ci\n  \
        ringwall run --allow-read ../shared -- make\n  \
        ringwall run --publish 3000 -- npm run dev   reach its server at localhost:3000\n  \
        ringwall run -e DATABASE_URL -e CI=1 -- npm test\n  \
        ringwall run --learn -- cargo build   print the configuration that this command needs\n  \
        ringwall run --plan -- claude         print what would be allowed, and run nothing")]
    Run(RunArgs),
    /// Show what the hook and the sandbox would do about a call, and by which rule
    ///
    /// Takes a shell command after `--`, or reads a hook call as JSON from stdin. Nothing is run.
    /// `verdict` is the decision of the hook; `sandbox` is what `ringwall run` would do about the paths
    /// that the call names.
    #[command(after_long_help = "Examples:\n  \
        ringwall explain -- git push origin main\n  \
        echo '{\"tool_name\":\"Read\",\"tool_input\":{\"file_path\":\"/etc/hosts\"}}' | ringwall explain")]
    Explain(ExplainArgs),
    /// Set up a project: write ringwall.toml, install hooks, run doctor
    ///
    /// Finds the agents on this machine and installs the hook for each of them. A ringwall.toml
    /// that already exists is not changed.
    #[command(after_long_help = "Example:\n  cd ~/code/app && ringwall init")]
    Init(InitArgs),
    /// Add the hook to an agent's settings
    ///
    /// The agent then asks Ringwall before every tool call. The old settings are kept, so that
    /// `ringwall uninstall` can restore them.
    #[command(after_long_help = "Examples:\n  \
        ringwall install claude                    for every project of this user\n  \
        ringwall install claude --scope project    for everyone who works on this project")]
    Install(InstallArgs),
    /// Remove the hook from an agent's settings
    ///
    /// Restores the settings as they were before, unless they were edited since; then only the hook
    /// is removed.
    #[command(after_long_help = "Example:\n  ringwall uninstall claude")]
    Uninstall(InstallArgs),
    /// Check that the sandbox and the installed hooks work, by trying them
    ///
    /// Tries forbidden actions inside the sandbox; each must be contained. Calls each installed hook
    /// as its agent would. Also checks the configuration, the audit log and what the kernel supports.
    /// The exit status is 1 if a check fails.
    #[command(after_long_help = "Examples:\n  \
        ringwall doctor\n  \
        ringwall doctor --json | jq '.checks[] | select(.state == \"bad\")'")]
    Doctor(DoctorArgs),
    /// Show, check or describe the configuration
    #[command(
        subcommand,
        after_long_help = "Examples:\n  ringwall policy show\n  ringwall policy check"
    )]
    Policy(PolicyVerb),
    /// Allow a path, a host, a port or a variable, by adding it to ringwall.toml
    ///
    /// Comments and the order of the file are kept.
    ///
    /// A grant that gives away more than it seems to, such as a private key or the socket of a container
    /// service, is confirmed on the terminal, or with `--yes`.
    #[command(after_long_help = "Examples:\n  \
        ringwall grant read ../shared\n  \
        ringwall grant domain registry.example.org\n  \
        ringwall grant --last     choose among the grants that the last run lacked\n  \
        ringwall grant --list     print every grant with its file and line")]
    Grant(GrantArgs),
    /// Take a grant back, by removing it from ringwall.toml
    ///
    /// Comments and the order of the file are kept.
    #[command(after_long_help = "Examples:\n  \
        ringwall revoke read ../shared\n  \
        ringwall revoke port 5432")]
    Revoke(RevokeArgs),
    /// Show what a project's ringwall.toml allows, and trust it
    ///
    /// Lines of a project's file that allow more than your own configuration have no effect until
    /// you trust the file. Trust is for its exact content: an edit ends it, and restoring the content
    /// restores it. Without a terminal to ask on, pass `--yes`.
    #[command(after_long_help = "Examples:\n  \
        ringwall trust             trust the files of this project\n  \
        ringwall trust --forget    stop trusting them")]
    Trust(TrustArgs),
    /// Show what runs left under protected names, and take it over
    ///
    /// A run can write names that act only when you do something with a tool, such as an editor's
    /// settings. What was in no commit before the run is kept aside at its end, until you take it over
    /// or drop it.
    #[command(after_long_help = "Examples:\n  \
        ringwall kept           list what is kept\n  \
        ringwall kept show 3    show what the files say\n  \
        ringwall kept take 3    put them where the run left them")]
    Kept(KeptArgs),
    /// Show or verify the log of decisions
    #[command(
        subcommand,
        after_long_help = "Examples:\n  \
        ringwall audit tail\n  \
        ringwall audit query --verdict deny --since 2026-11-15"
    )]
    Audit(AuditVerb),
    /// Remove the private caches of runs
    ///
    /// What runs write in toolchains and caches is kept for the next run in the same workspace, apart
    /// from your own. Without an option, that of this workspace is removed. A layer that a run is using
    /// is left.
    #[command(after_long_help = "Examples:\n  \
        ringwall clean                          that of this workspace\n  \
        ringwall clean --all --older-than 30d   all that were not used for 30 days\n  \
        ringwall clean --all --dry-run          list all, with their sizes")]
    Clean(CleanArgs),
    /// Print the rules of a session, for an agent to read
    ///
    /// The text is short and follows from the configuration: the workspace, what is allowed besides
    /// it, the quarantine, and what a denial looks like. Claude Code gets it from the hook at the
    /// start of every session; use this command for agents that do not.
    #[command(after_long_help = "Example:\n  ringwall prompt >> AGENTS.md")]
    Prompt(PromptArgs),
    /// Try forbidden actions in this process, for `doctor`
    #[command(hide = true)]
    TryActs {
        /// What to try them on, as JSON
        targets: String,
    },
    /// Print a completion script for a shell
    #[command(after_long_help = "Example:\n  \
        ringwall completions bash > ~/.local/share/bash-completion/completions/ringwall")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The options that select the configuration.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Common {
    /// Use this configuration file on top of all others, and trust it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory the agent works in [default: the project it was started in]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Apply a section of [phases] in the configuration
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts;
    /// network: also every public host; full: also your home and the host's network
    /// [default: readwrite]
    #[arg(long, value_name = "LEVEL")]
    level: Option<Level>,
}

impl From<Common> for Options {
    fn from(common: Common) -> Self {
        let Common { config, workspace, phase, level } = common;
        Self { config, workspace, phase, level, inside_run: false }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookArgs {
    /// The agent
    #[arg(value_parser = agent_names())]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct RunArgs {
    /// The agent that the command is [default: recognised by the name of the program]
    #[arg(long, value_parser = agent_names())]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Allow reading a path, for this run only
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<String>,
    /// Allow reading and writing a path, for this run only
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<String>,
    /// Allow connections to a Unix socket of the host, for this run only
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_unix: Vec<String>,
    /// Let programs of this machine reach a server inside, at a port of the loopback, or of ADDRESS
    #[arg(long, value_name = "[ADDRESS:]PORT[:INSIDE]")]
    pub(crate) publish: Vec<String>,
    /// Allow connections to a host, for this run only
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_domain: Vec<String>,
    /// Pass an environment variable, or set it to a value, for this run only
    #[arg(short = 'e', long = "env", value_name = "VAR[=VALUE]")]
    pub(crate) env: Vec<std::ffi::OsString>,
    /// What a violation does: stop the run, or only fail the call
    /// [default: stop; deny for a shell in which you type]
    #[arg(long, value_name = "stop|deny", value_parser = actions())]
    pub(crate) on_violation: Option<ViolationAction>,
    /// Write events as JSON lines to a file or an open file descriptor
    #[arg(long, value_name = "FILE|fd:N")]
    pub(crate) events: Option<String>,
    /// Do not stop at violations; at the end, print the configuration that would allow them
    #[arg(long)]
    pub(crate) learn: bool,
    /// Start with the host's caches alone, and delete what the run writes in them at its end
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print what the sandbox would allow, and run nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print the plan as JSON
    #[arg(long, requires = "plan")]
    pub(crate) json: bool,
    /// Accept the directory of --workspace although it contains your whole home directory
    #[arg(long)]
    pub(crate) yes: bool,
    /// Limit the sandbox to this mechanism, to test what a less capable machine supports
    #[arg(long, value_parser = enforcements(), value_name = "KIND", default_value_t = Enforcement::Namespaces, hide_short_help = true)]
    pub(crate) enforcement: Enforcement,
    /// Limit how denied paths are found to this mechanism, to test a less capable machine
    #[arg(long, value_parser = attributions(), value_name = "KIND", default_value_t = Attribution::Tripwire, hide_short_help = true)]
    pub(crate) attribution: Attribution,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// What a violation can do.
fn actions() -> impl TypedValueParser<Value = ViolationAction> {
    PossibleValuesParser::new(["stop", "deny"]).map(|name| match name.as_str() {
        "deny" => ViolationAction::Deny,
        _ => ViolationAction::Stop,
    })
}

/// The mechanisms that enforce, strongest first.
fn enforcements() -> impl TypedValueParser<Value = Enforcement> {
    let help = |enforcement: Enforcement| match enforcement {
        Enforcement::Namespaces => "Namespaces and mounts, with Landlock and seccomp on top",
        Enforcement::Landlock => "Landlock and seccomp alone",
    };
    let values = Enforcement::ALL.map(|one| PossibleValue::new(one.name()).help(help(one)));
    PossibleValuesParser::new(values.into_iter().rev()).map(|name| {
        let found = Enforcement::ALL.into_iter().find(|one| one.name() == name);
        found.unwrap_or(Enforcement::Namespaces)
    })
}

/// The mechanisms that find the path and the program of a denied access, best first.
fn attributions() -> impl TypedValueParser<Value = Attribution> {
    let help = |attribution: Attribution| match attribution {
        Attribution::Tripwire => "A FUSE file system is mounted over what is denied",
        Attribution::Notify => "Every open is intercepted with seccomp",
        Attribution::Inferred => "Denied paths are not reported",
    };
    let values = Attribution::ALL.map(|one| PossibleValue::new(one.name()).help(help(one)));
    PossibleValuesParser::new(values.into_iter().rev()).map(|name| {
        let found = Attribution::ALL.into_iter().find(|one| one.name() == name);
        found.unwrap_or(Attribution::Tripwire)
    })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The agent that would make the call
    #[arg(long, default_value = "claude", value_parser = agent_names())]
    pub(crate) agent: String,
    /// Print JSON: verdict, redirect, because, opaque, sandbox
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
    /// A shell command, instead of a call on stdin
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CleanArgs {
    /// The workspace [default: the one of this directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Those of all workspaces
    #[arg(long, conflicts_with = "workspace")]
    pub(crate) all: bool,
    /// Only what was not used for so long, such as `30d` or `12h`
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PromptArgs {
    /// The agent
    #[arg(long, default_value = "claude", value_parser = agent_names())]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Which of the agents' settings files to add the hook to
    #[arg(long, value_enum, default_value_t = ScopeName::User)]
    pub(crate) scope: ScopeName,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// The agent
    #[arg(value_parser = agent_names())]
    pub(crate) agent: String,
    /// Which of the agent's settings files to change
    #[arg(long, value_enum, default_value_t = ScopeName::User)]
    pub(crate) scope: ScopeName,
}

/// A settings file of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// The user's file, for every project
    User,
    /// The project's file that is shared with others
    Project,
    /// The project's file that is not shared
    Local,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Print the checks as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Print every effective value with the file and line that set it
    #[command(after_long_help = "Example:\n  ringwall policy show --phase plan")]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Report errors, rules that match nothing, and lines that are not trusted
    #[command(after_long_help = "Example:\n  ringwall policy check --config draft.toml")]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print the JSON schema of ringwall.toml
    #[command(after_long_help = "Example:\n  ringwall policy schema > ringwall.schema.json")]
    Schema,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct GrantArgs {
    /// Print every grant, with the file and the line that it is in
    #[arg(long, conflicts_with = "last")]
    pub(crate) list: bool,
    /// Propose grants for what the last run in this workspace was denied
    #[arg(long)]
    pub(crate) last: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<GrantVerb>,
}

/// What `revoke` takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GrantKind {
    /// A path that can be read
    Read,
    /// A path that can be written
    Write,
    /// A Unix socket of the host
    Unix,
    /// A host
    Domain,
    /// An environment variable
    Env,
    /// A port of the host's loopback
    Port,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RevokeArgs {
    /// What kind of grant it is
    pub(crate) kind: GrantKind,
    /// The path, the host, the variable or the port
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) target: GrantTarget,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantVerb {
    /// Allow reading a path and everything below it
    #[command(after_long_help = "Example:\n  ringwall grant read ../shared")]
    Read {
        /// The path
        path: String,
        /// Grant what gives away more than it seems to without asking
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Allow reading and writing a path and everything below it
    #[command(after_long_help = "Example:\n  ringwall grant write ~/.cache/mytool --user")]
    Write {
        /// The path
        path: String,
        /// Grant what gives away more than it seems to without asking
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Allow connections to a Unix socket of the host
    #[command(
        after_long_help = "Example:\n  ringwall grant unix ~/.local/run/postgres/.s.PGSQL.5432"
    )]
    Unix {
        /// The socket, or a directory of sockets
        path: String,
        /// Grant a socket that gives more than files without asking
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Allow connections to a host: `example.org`, `*.example.org`, `example.org:8443`
    #[command(after_long_help = "Example:\n  ringwall grant domain '*.example.org'")]
    Domain {
        /// The host
        name: String,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Pass an environment variable into runs; a final `*` stands for any ending
    #[command(after_long_help = "Example:\n  ringwall grant env DATABASE_URL")]
    Env {
        /// The name of the variable
        name: String,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Allow connections to a port of the host's loopback, such as a database
    #[command(after_long_help = "Example:\n  ringwall grant port 5432")]
    Port {
        /// The port
        number: String,
        #[command(flatten)]
        target: GrantTarget,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GrantTarget {
    /// Change the user's configuration instead of the project's
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TrustArgs {
    /// The file [default: every ringwall.toml from here up to the git root]
    pub(crate) file: Option<PathBuf>,
    /// Trust without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Stop trusting the file
    #[arg(long, conflicts_with = "yes")]
    pub(crate) forget: bool,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct KeptArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<KeptVerb>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeptVerb {
    /// List what is kept (the same as no verb)
    #[command(after_long_help = "Example:\n  ringwall kept list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what kept files say
    #[command(after_long_help = "Example:\n  ringwall kept show 3")]
    Show {
        /// The number that the end of the run named
        number: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put kept files where the run left them
    ///
    /// A file that was written there since is not replaced. What is kept stays until you drop it.
    #[command(after_long_help = "Examples:\n  \
        ringwall kept take 3\n  \
        ringwall kept take 3 .vscode/settings.json")]
    Take {
        /// The number that the end of the run named
        number: u64,
        /// Only these files
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Delete kept files
    #[command(after_long_help = "Example:\n  ringwall kept drop 3")]
    Drop {
        /// The number that the end of the run named
        number: u64,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Print the last records
    #[command(after_long_help = "Example:\n  ringwall audit tail -n 50")]
    Tail {
        /// How many records
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
        /// Print the records as JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Print the records that match every condition
    #[command(after_long_help = "Example:\n  \
        ringwall audit query --verdict deny --tool Bash -n 10")]
    Query(QueryArgs),
    /// Check that no record was changed or removed
    ///
    /// Each record contains the hash of the one before it. The hash of the last record is the head.
    /// Note it elsewhere to detect that the whole log was replaced.
    #[command(after_long_help = "Example:\n  ringwall audit verify --expect-head 3f9a…")]
    Verify {
        /// A head that you noted earlier: it must be in this log
        #[arg(long, value_name = "HASH")]
        expect_head: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct QueryArgs {
    /// Only records with this verdict
    #[arg(long, value_enum)]
    pub(crate) verdict: Option<VerdictName>,
    /// Only records of this agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only records of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only records of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only records since this time, such as 2026-11-15 or 2026-11-15T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only records that contain this text
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// Only the newest of the matching records, at most this many
    #[arg(short = 'n', long)]
    pub(crate) last: Option<usize>,
    /// Print the records as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// A verdict on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictName {
    /// The call ran
    Allow,
    /// The user was asked
    Ask,
    /// The call was denied
    Deny,
}

fn agent_names() -> PossibleValuesParser {
    PossibleValuesParser::new(agents::ALL.iter().map(|agent| agent.name))
}
