//! [`Agent`]: everything that differs from one agent to the next.

use model::{Decision, Event, SettingsRules, Tool, shell_word};

/// A coding agent, as a value.
#[derive(Debug)]
pub struct Agent {
    /// The word used on the command line.
    pub name: &'static str,
    /// The product's own name.
    pub title: &'static str,
    /// The program that users start.
    pub program: &'static str,
    /// What its tools do.
    pub tools: &'static [Tool],
    /// What it honours of an answer.
    pub caps: Caps,
    /// The hosts it cannot work without.
    pub essential_domains: &'static [&'static str],
    /// The variable that names the directory it was started in.
    pub project_dir_variable: &'static str,
    /// The variable it sets in the shells it starts.
    pub shell_marker: &'static str,
    /// How its settings can stop calling hooks.
    pub settings_rules: SettingsRules,
    /// What it reads back outside the workspace, for one session.
    pub own_files: OwnFiles,
    /// Where its settings are.
    pub settings: SettingsFiles,
    /// What it needs of the host inside the sandbox.
    pub in_run: InRun,
    /// The hook events to install, with their matcher.
    pub hook_events: &'static [(&'static str, Option<&'static str>)],
    /// How its program says what it thinks of its settings, where it does.
    pub self_check: Option<SelfCheck>,
    /// The oldest version that starts a hook without a shell, where that is known.
    pub exec_form_since: Option<[u32; 3]>,
    /// Reads a hook call.
    pub decode: fn(&[u8]) -> Result<Event, DecodeError>,
    /// Writes the answer, with notices for the user.
    pub encode: fn(&Event, &Decision, &[String]) -> Reply,
    /// Gives the agent a text at its start.
    pub tell: fn(event: &str, text: &str) -> Reply,
    /// The variable that names a file whose lines every later shell of the session reads.
    pub env_file_variable: Option<&'static str>,
}

/// What an agent honours of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// It runs a corrected call instead of its own.
    pub rewrite: bool,
    /// It can ask a person.
    pub ask: bool,
}

/// What an agent reads back without being asked outside the workspace, as patterns.
///
/// `{session}` is the agent's session, `{project}` the workspace as the agent spells it in names of
/// its own files, `{uid}` the user's number.
#[derive(Debug, Clone, Copy)]
pub struct OwnFiles {
    /// Below its configuration directory.
    pub in_config_dir: &'static [&'static str],
    /// Below its temporary directory.
    pub in_temp_dir: &'static [&'static str],
    /// The variable that moves its temporary directory.
    pub temp_dir_variable: &'static str,
}

/// What an agent needs of the host to run in the sandbox. Paths are below home; `{project}` is the
/// workspace as the agent spells it in names of its own files.
#[derive(Debug, Clone, Copy)]
pub struct InRun {
    /// Directories that it reads, and whose changes stay private to the run.
    pub private: &'static [&'static str],
    /// Files and directories in them whose changes are kept on the host.
    pub kept: &'static [&'static str],
    /// Directories among those that are made where their parent is there.
    pub made: &'static [&'static str],
    /// Files that it would replace in the home directory itself, and where it finds a private copy
    /// of them instead.
    pub copied: &'static [(&'static str, &'static str)],
    /// Variables that pass. A final `*` matches any ending.
    pub variables: &'static [&'static str],
    /// Variables that are set, unless the user has set them; `{home}` is the home directory.
    pub set: &'static [(&'static str, &'static str)],
}

/// Where an agent's settings are.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFiles {
    /// The configuration directory below home.
    pub config_dir: &'static str,
    /// The variable that moves that directory.
    pub config_dir_variable: &'static str,
    /// The user's file in that directory.
    pub user: &'static str,
    /// The project's shared file, below the workspace.
    pub project: &'static str,
    /// The project's private file, below the workspace.
    pub local: &'static str,
}

/// A call of the agent's program that names every settings file it cannot use, without starting a
/// session, a hook or a connection.
#[derive(Debug, Clone, Copy)]
pub struct SelfCheck {
    /// The arguments.
    pub args: &'static [&'static str],
    /// The variables to set.
    pub environment: &'static [(&'static str, &'static str)],
}

/// Which settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's.
    User,
    /// The project's shared one.
    Project,
    /// The project's private one.
    Local,
}

/// How an agent starts our hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// Our binary.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// With or without a shell.
    pub form: Form,
}

/// How a hook's command line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Program and arguments apart: no shell, no quoting.
    Exec,
    /// One line for a shell.
    Shell,
}

impl HookCommand {
    /// The command line for a shell, quoted where it must be.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    /// The phase that the user chose for it, as arguments.
    pub fn phase_args(&self) -> Vec<String> {
        match self.args.get(2..) {
            Some([flag, name]) if flag == PHASE => vec![flag.clone(), name.clone()],
            Some([flag]) if flag.strip_prefix(PHASE).is_some_and(|rest| rest.starts_with('=')) => {
                vec![flag.clone()]
            }
            _ => Vec::new(),
        }
    }

    /// The arguments that neither we nor the user's choice of a phase put there.
    pub fn foreign_args(&self) -> &[String] {
        let known = 2 + self.phase_args().len();
        self.args.get(known..).unwrap_or_default()
    }

    /// The value of the `command` field.
    pub fn command_field(&self) -> String {
        match self.form {
            Form::Exec => self.program.clone(),
            Form::Shell => self.line(),
        }
    }
}

/// The one argument of a hook that is the user's to choose: a stage that the user's configuration
/// defines.
const PHASE: &str = "--phase";

/// The bytes on standard output. The exit status is always 0: the answer speaks for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// One complete JSON document, or nothing.
    pub stdout: Vec<u8>,
}

/// Why a hook call makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or not in the shape that this agent sends.
    #[error("the hook input is not a call from {agent}: {why}")]
    Malformed {
        /// The agent.
        agent: &'static str,
        /// What is wrong.
        why: String,
    },
}
