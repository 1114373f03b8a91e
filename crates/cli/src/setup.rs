//! Everything that is fixed before a call is looked at: places, workspace, policy, ground.

use std::path::{Path, PathBuf};

use agents::{Agent, Scope};
use config::{Aliases, Explicit, LoadError, Loaded, PROJECT_FILE, Request, Selection};
use facts::{Places, PlacesError, Resolver};
use model::{AbsPath, Level, Origin, Sourced};
use policy::{Ground, PathRule};

use crate::installs::Installs;

/// What the command line chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) config: Option<PathBuf>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) phase: Option<String>,
    pub(crate) level: Option<Level>,
}

/// The standing facts of one invocation.
pub(crate) struct Setup {
    pub(crate) agent: &'static Agent,
    pub(crate) places: Places,
    pub(crate) loaded: Loaded,
    pub(crate) ground: Ground,
}

/// Why nothing can be judged.
#[derive(Debug)]
pub(crate) enum SetupError {
    Places(PlacesError),
    Workspace(String),
    Config(LoadError),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Places(error) => error.fmt(f),
            Self::Workspace(why) => f.write_str(why),
            Self::Config(error) => write!(f, "the configuration cannot be used: {error}"),
        }
    }
}

impl Setup {
    /// Reads places, files and variables. `session` is the agent's own name for its session.
    pub(crate) fn prepare(
        agent: &'static Agent,
        options: &Options,
        session: &str,
    ) -> Result<Self, SetupError> {
        let places = Places::from_environment().map_err(SetupError::Places)?;
        let mut resolver = Resolver::default();
        let given = workspace_of(agent, options, &places)?;
        let workspace = resolver.resolve(&given).map_err(|error| {
            SetupError::Workspace(format!("the workspace {}: {error}", given.display()))
        })?;
        if !workspace.as_path().is_dir() {
            let why = format!("the workspace {workspace} is not a directory");
            return Err(SetupError::Workspace(why));
        }
        let explicit = match &options.config {
            Some(path) => Some(Explicit::Flag(places.cwd.join(path))),
            None => {
                variable("RINGWALL_CONFIG").map(|path| Explicit::Environment(places.cwd.join(path)))
            }
        };
        let loaded = config::load(&Request {
            places: &places,
            workspace: workspace.as_path(),
            explicit,
            aliases: Aliases::from_environment(variable),
            selection: Selection { phase: options.phase.clone(), level: options.level },
        })
        .map_err(SetupError::Config)?;
        let ground = Ground {
            unfit: unfit(&workspace, &places, options, &mut resolver),
            agent_files: agent_files(agent, &places, &workspace, session),
            own_files: own_files(&places),
            grant_file: workspace.as_path().join(PROJECT_FILE),
            home: places.home.clone(),
            hooked: Vec::new(),
            off_switches: agent.off_switches,
            workspace,
        };
        Ok(Self { agent, places, loaded, ground })
    }

    /// The settings files in which our hook was installed; needed only when settings change.
    pub(crate) fn look_up_installs(&mut self) {
        let installs = Installs::read(&self.places.state_dir).unwrap_or_default();
        self.ground.hooked = installs.hooked(self.agent.name);
    }
}

/// Where the agent was started: fixed by whoever started it, never by a call.
fn workspace_of(agent: &Agent, options: &Options, places: &Places) -> Result<PathBuf, SetupError> {
    if let Some(path) = &options.workspace {
        return Ok(places.cwd.join(path));
    }
    match std::env::var_os(agent.project_dir_variable).map(PathBuf::from) {
        Some(path) if path.is_absolute() => Ok(path),
        Some(path) => Err(SetupError::Workspace(format!(
            "{} is `{}`, which is not an absolute path",
            agent.project_dir_variable,
            path.display()
        ))),
        None => Ok(facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone())),
    }
}

/// Why a workspace is too wide to be one. Naming it on the command line is consent.
fn unfit(
    workspace: &AbsPath,
    places: &Places,
    options: &Options,
    resolver: &mut Resolver,
) -> Option<String> {
    let home = resolver.resolve(places.home.as_path()).unwrap_or_else(|_| places.home.clone());
    let too_wide = home.is_within(workspace) || places.home.is_within(workspace);
    (too_wide && options.workspace.is_none()).then(|| {
        format!(
            "the workspace would be {workspace}, which holds your whole home directory: every \
             file of yours would be the agent's"
        )
    })
}

/// Ringwall's own files, as they are named.
fn own_files(places: &Places) -> Vec<AbsPath> {
    let named = [places.config_dir.clone(), places.state_dir.clone()]
        .into_iter()
        .chain(places.system_config.parent().map(Path::to_path_buf))
        .chain(std::env::current_exe());
    named.filter_map(|path| AbsPath::lexical(&path).ok()).collect()
}

/// What the agent reads back by itself, from its table.
fn agent_files(
    agent: &Agent,
    places: &Places,
    workspace: &AbsPath,
    session: &str,
) -> Vec<Sourced<PathRule>> {
    // The session's name comes from outside: it may only fill one component.
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if session.is_empty() || !session.chars().all(safe) {
        return Vec::new();
    }
    let uid = rustix::process::getuid().as_raw().to_string();
    let spelt = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let project: String = workspace.to_string().chars().map(spelt).collect();
    let fill = |text: &str| {
        text.replace("{session}", session).replace("{project}", &project).replace("{uid}", &uid)
    };
    let own = &agent.own_files;
    let config_dir = config_dir(agent, places);
    let temp_dir = [own.temp_dir_variable, "TMPDIR"].into_iter().find_map(directory_variable);
    let temp_dir = temp_dir.unwrap_or_else(|| PathBuf::from("/tmp"));
    let in_config = own.in_config_dir.iter().map(|text| (fill(text), &config_dir));
    let in_temp = own.in_temp_dir.iter().map(|text| (fill(text), &temp_dir));
    in_config
        .chain(in_temp)
        .filter_map(|(text, base)| PathRule::parse(&text, base, &places.home).ok())
        .map(|value| Sourced { value, origin: Origin::Agent(agent.title.into()) })
        .collect()
}

/// The settings files that an agent reads, wherever they come from.
pub(crate) fn settings_files(agent: &Agent, places: &Places, workspace: &Path) -> [PathBuf; 3] {
    [Scope::User, Scope::Project, Scope::Local]
        .map(|scope| settings_file(agent, places, workspace, scope))
}

/// One settings file of an agent.
pub(crate) fn settings_file(
    agent: &Agent,
    places: &Places,
    workspace: &Path,
    scope: Scope,
) -> PathBuf {
    match scope {
        Scope::User => config_dir(agent, places).join(agent.settings.user),
        Scope::Project => workspace.join(agent.settings.project),
        Scope::Local => workspace.join(agent.settings.local),
    }
}

/// The agent's own configuration directory.
fn config_dir(agent: &Agent, places: &Places) -> PathBuf {
    directory_variable(agent.settings.config_dir_variable)
        .unwrap_or_else(|| places.home.as_path().join(agent.settings.config_dir))
}

/// A variable that names a directory.
fn directory_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
