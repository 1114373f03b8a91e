//! The command line: one definition for parsing, help, completions and the reference page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use model::Level;

use crate::failure::USAGE;
use crate::setup::Options;
use crate::terminal;

/// Keeps coding agents inside the ground they were given.
#[derive(Debug, Parser)]
#[command(name = "ringwall", version = VERSION, propagate_version = false)]
#[command(after_help = "Start with `ringwall init` in a project, then `ringwall doctor`.\n\
    `ringwall explain` shows what would be decided about a call, and by which rule.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("RINGWALL_COMMIT"), ")");

/// The whole command line, for generators.
pub fn command() -> clap::Command {
    Args::command()
}

/// The command line of `run`, without all the others: they are as long again to set up. Whatever is
/// not a plain run, such as a mistake or `--help`, is left to the whole.
pub(crate) fn run() -> Option<Args> {
    let command = RunArgs::augment_args(clap::Command::new("ringwall run"));
    let matches = command.try_get_matches_from(std::env::args_os().skip(1)).ok()?;
    let verb = Verb::Run(RunArgs::from_arg_matches(&matches).ok()?);
    Some(Args { verb })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Answers an agent's hook: a call on stdin, the decision on stdout
    ///
    /// The agent's settings start this; `ringwall install` puts it there. It exits with 0 or 2 and
    /// nothing else, whatever the input: 0 with an answer (nothing at all means: no objection), 2
    /// with a line on stderr where no answer could be made.
    Hook(HookArgs),
    /// Runs a command behind a wall that the kernel holds
    ///
    /// The command can read and write the workspace (at its level), read the system's and the
    /// user's toolchains, and has its own /tmp and its own loopback. Everything else is refused,
    /// and by default the first attempt ends the run: exit status 77, with the path, the program
    /// and the line that would allow it. The wall is tried from inside before the command starts.
    ///
    /// Exit status: the command's own; 77 stopped by a violation; 69 the wall cannot be built; 78
    /// bad configuration; 64 bad usage; 124 a limit was reached; 126 and 127 as in a shell.
    Run(RunArgs),
    /// Shows what would be decided about a call, and by which rule of which file
    ///
    /// Reads a hook call as JSON from stdin, or takes a shell command after `--`.
    Explain(ExplainArgs),
    /// Detects agents, writes ringwall.toml, installs hooks, runs doctor
    Init(InitArgs),
    /// Puts the hook into an agent's settings
    Install(InstallArgs),
    /// Takes the hook out of an agent's settings again
    Uninstall(InstallArgs),
    /// Proves the wall from inside, and each installed hook by calling it
    ///
    /// Forbidden acts are tried behind the wall; each must be contained. Also checks the
    /// configuration, the audit log and what the kernel gives.
    Doctor(DoctorArgs),
    /// Shows, checks or describes the configuration
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Adds an entry to the configuration, keeping comments and order
    #[command(subcommand)]
    Grant(GrantVerb),
    /// Shows what a project's ringwall.toml widens, and trusts exactly its present content
    ///
    /// Asks on a terminal; without one it needs `--yes`. Trust is for the content you trusted:
    /// going back to exactly that content is trusted again until you trust another or forget it.
    Trust(TrustArgs),
    /// Shows and verifies the log of decisions
    #[command(subcommand)]
    Audit(AuditVerb),
    /// Prints the rules to put in front of an agent
    ///
    /// Short, and derived from the policy: the workspace, what is granted, the quarantine, what a
    /// refusal looks like. Claude Code's hook adds it at the start of every session by itself.
    Prompt(PromptArgs),
    /// Tries forbidden acts from where it stands, for `doctor`
    #[command(hide = true)]
    TryActs {
        /// What to try them on, as JSON
        targets: String,
    },
    /// Prints a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What every command that judges can be told.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Common {
    /// A configuration file above all others; it is trusted
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory the agent works in [default: where the agent was started]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The stage of work, as in [phases]
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// The level: readonly, readwrite, network or full
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
    /// The agent that is run [default: known by the program's name]
    #[arg(long, value_parser = agent_names())]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Let a path be read, for this run
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<String>,
    /// Let a path be read and written, for this run
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<String>,
    /// Let a host be reached, for this run
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_domain: Vec<String>,
    /// Write events as JSON lines to a file, or to an open descriptor as `fd:N`
    #[arg(long, value_name = "FILE|fd:N")]
    pub(crate) events: Option<String>,
    /// Go on after refusals, and print the configuration that would have allowed everything
    #[arg(long)]
    pub(crate) learn: bool,
    /// Print the plan of the run instead of running
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print the plan as JSON
    #[arg(long, requires = "plan")]
    pub(crate) json: bool,
    /// Accept a workspace that holds your whole home directory
    #[arg(long)]
    pub(crate) yes: bool,
    /// Use no stronger wall than this, to see what a lesser machine gives
    #[arg(long, value_enum, value_name = "KIND", default_value_t = EnforcementName::Namespaces, hide_short_help = true)]
    pub(crate) enforcement: EnforcementName,
    /// Use no better attribution than this, to see what a lesser machine gives
    #[arg(long, value_enum, value_name = "KIND", default_value_t = AttributionName::Tripwire, hide_short_help = true)]
    pub(crate) attribution: AttributionName,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// What holds the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnforcementName {
    /// Namespaces and mounts, with Landlock and seccomp on top
    Namespaces,
    /// Landlock and seccomp alone
    Landlock,
}

/// What tells which path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttributionName {
    /// A file system over what is denied
    Tripwire,
    /// Every open is watched
    Notify,
    /// Nothing does
    Inferred,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The agent whose call it is
    #[arg(long, default_value = "claude", value_parser = agent_names())]
    pub(crate) agent: String,
    /// Print JSON: verdict, redirect, because, opaque
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
    /// A shell command to judge instead of a call on stdin
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    /// The settings to install hooks in
    #[arg(long, value_enum, default_value_t = ScopeName::User)]
    pub(crate) scope: ScopeName,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// The agent
    #[arg(value_parser = agent_names())]
    pub(crate) agent: String,
    /// Which of the agent's settings files
    #[arg(long, value_enum, default_value_t = ScopeName::User)]
    pub(crate) scope: ScopeName,
}

/// Which settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// The user's own, for every project
    User,
    /// The project's shared file
    Project,
    /// The project's private file
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
    /// Prints every effective value with the file and line that set it
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Reports errors, rules that match nothing, and lines that are not trusted
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Prints the JSON schema of ringwall.toml
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantVerb {
    /// Lets the agent read a path and everything below it
    Read {
        /// The path
        path: String,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Lets the agent read and write a path and everything below it
    Write {
        /// The path
        path: String,
        #[command(flatten)]
        target: GrantTarget,
    },
    /// Lets the agent reach a host: `example.org`, `*.example.org`, `example.org:8443`
    Domain {
        /// The host
        name: String,
        #[command(flatten)]
        target: GrantTarget,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GrantTarget {
    /// Edit the user's file instead of the project's
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TrustArgs {
    /// The file [default: each ringwall.toml from here up to the git root]
    pub(crate) file: Option<PathBuf>,
    /// Trust without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// End the trust instead
    #[arg(long, conflicts_with = "yes")]
    pub(crate) forget: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Prints the last records
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
        /// Print the records as JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Prints the records that match every condition
    Query(QueryArgs),
    /// Checks the chain of records from the first to the head
    Verify {
        /// A head that was noted elsewhere: it must be in this log
        #[arg(long, value_name = "HASH")]
        expect_head: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct QueryArgs {
    /// allow, ask or deny
    #[arg(long, value_enum)]
    pub(crate) verdict: Option<VerdictName>,
    /// The agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// The agent's session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// The tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Not before this time, such as 2026-11-15 or 2026-11-15T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// A text that occurs in the record
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// At most this many, the newest
    #[arg(short = 'n', long)]
    pub(crate) last: Option<usize>,
    /// Print the records as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// A verdict on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictName {
    /// Ran as it was
    Allow,
    /// Needed consent
    Ask,
    /// Was refused
    Deny,
}

fn agent_names() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(agents::ALL.iter().map(|agent| agent.name))
}

/// Prints what clap has to say; usage errors exit with 64.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        terminal::error_line(error.render().to_string().trim_end());
        ExitCode::from(USAGE)
    } else {
        terminal::print(&error.render().to_string());
        ExitCode::SUCCESS
    }
}
