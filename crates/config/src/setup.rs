//! Everything that is fixed before a call is looked at: places, workspace, policy, context.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::{Aliases, Explicit, LoadError, Loaded, Project, Request, Selection};
use agents::{Agent, Scope};
use facts::{Places, PlacesError, Resolver};
use model::{AbsPath, Level, Origin, Sourced};
use policy::{Context, PathRule, SettingsContext};

/// What the caller chose: on the command line, or in a program that uses the library.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A configuration file besides the usual ones.
    pub config: Option<PathBuf>,
    /// The workspace, if it is not the current checkout.
    pub workspace: Option<PathBuf>,
    /// The phase.
    pub phase: Option<String>,
    /// The level.
    pub level: Option<Level>,
    /// The workspace was named for a run, which asks for consent itself.
    pub inside_run: bool,
}

/// The standing facts of one invocation.
pub struct Setup {
    /// The agent.
    pub agent: &'static Agent,
    /// Directories of the user and of Ringwall.
    pub places: Places,
    /// The configuration.
    pub loaded: Loaded,
    /// The places that rules are measured against.
    pub context: Context,
    /// What was seen of the file system on the way here.
    pub resolver: RefCell<Resolver>,
}

/// Why nothing can be judged.
#[derive(Debug)]
pub enum SetupError {
    /// The user's directories are not known.
    Places(PlacesError),
    /// The workspace cannot be used.
    Workspace(String),
    /// The configuration cannot be used.
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
    pub fn prepare(
        agent: &'static Agent,
        options: &Options,
        session: &str,
    ) -> Result<Self, SetupError> {
        let places = Places::from_environment().map_err(SetupError::Places)?;
        let mut resolver = Resolver::default();
        let start = Start::of(agent, options, &places)?;
        let workspace = resolver.resolve(&start.workspace).map_err(|error| {
            let given = start.workspace.display();
            SetupError::Workspace(format!("the workspace {given}: {error}"))
        })?;
        if workspace.as_path().exists() && !workspace.as_path().is_dir() {
            let why = format!("the workspace {workspace} is not a directory");
            return Err(SetupError::Workspace(why));
        }
        let explicit = match &options.config {
            Some(path) => Some(Explicit::Flag(start.base.join(path))),
            None => {
                variable("RINGWALL_CONFIG").map(|path| Explicit::Environment(start.base.join(path)))
            }
        };
        let nearest = start.nearest.as_deref().unwrap_or(workspace.as_path());
        let project = Project::around(nearest, &places.home);
        let loaded = crate::load(&Request {
            places: &places,
            workspace: &workspace,
            project: &project,
            explicit,
            aliases: Aliases::from_environment(variable),
            selection: Selection { phase: options.phase.clone(), level: options.level },
        })
        .map_err(SetupError::Config)?;
        let context = Context {
            unfit: unfit(&workspace, &places, options, &mut resolver),
            agent_files: agent_files(agent, &places, &workspace, session),
            own_files: own_files(&places, &workspace, &loaded, &mut resolver),
            grant_file: project.grant_file(),
            home: places.home.clone(),
            closed: facts::other_checkouts(workspace.as_path()),
            settings: SettingsContext {
                rules: agent.settings_rules,
                files: settings_files(agent, &places, workspace.as_path()).to_vec(),
                ..SettingsContext::default()
            },
            workspace,
        };
        Ok(Self { agent, places, loaded, context, resolver: RefCell::new(resolver) })
    }
}

/// Where the agent was started: fixed by the process that started it, never by a call.
struct Start {
    workspace: PathBuf,
    /// Where relative paths of the command line and the environment start. A call can change the
    /// directory that hooks are started in, so where the agent says its own, that one counts.
    base: PathBuf,
    /// The directory whose project file is the nearest, where that is not the workspace.
    nearest: Option<PathBuf>,
}

impl Start {
    fn of(agent: &Agent, options: &Options, places: &Places) -> Result<Self, SetupError> {
        let project_dir = std::env::var_os(agent.project_dir_variable).map(PathBuf::from);
        if let Some(path) = project_dir.as_ref().filter(|path| !path.is_absolute()) {
            return Err(SetupError::Workspace(format!(
                "{} is `{}`, which is not an absolute path",
                agent.project_dir_variable,
                path.display()
            )));
        }
        let is_set = project_dir.is_some();
        let base = project_dir.unwrap_or_else(|| places.cwd.clone());
        let (workspace, nearest) = match &options.workspace {
            Some(path) => (base.join(path), None),
            None if is_set => (base.clone(), None),
            None => {
                let top = facts::git_root(&places.cwd).unwrap_or_else(|| places.cwd.clone());
                (top, Some(places.cwd.clone()))
            }
        };
        Ok(Self { workspace, base, nearest })
    }
}

/// Directories that belong to the system as a whole, with everything below them.
const SYSTEM_TREES: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run",
    "/sbin", "/sys", "/usr",
];

/// Directories below them that hold what users put there.
const USER_PLACES: &[&str] =
    &["/dev/shm", "/run/media", "/run/user/*", "/usr/local/src", "/usr/src"];

/// Directories that hold what belongs to all users and programs. A directory in one of them is fine.
const SHARED: &[&str] = &[
    "/home",
    "/lost+found",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/tmp",
];

/// Why a workspace would be a directory of the system.
fn system_directory(workspace: &Path) -> Option<String> {
    let is = |place: &&str| Path::new(place) == workspace;
    let below = |place: &&str| match place.strip_suffix("/*") {
        Some(above) => {
            workspace.strip_prefix(above).is_ok_and(|rest| rest.components().count() > 1)
        }
        None => workspace.starts_with(place) && !is(place),
    };
    let system = SYSTEM_TREES.iter().any(|place| workspace.starts_with(place))
        && !USER_PLACES.iter().any(below);
    (system || SHARED.iter().any(is)).then(|| {
        format!(
            "the workspace would be {}, which is a directory of the system",
            workspace.display()
        )
    })
}

/// Why a directory cannot be a workspace. Naming one that is only too wide on the command line is
/// consent.
fn unfit(
    workspace: &AbsPath,
    places: &Places,
    options: &Options,
    resolver: &mut Resolver,
) -> Option<String> {
    let home = resolver.resolve(places.home.as_path()).unwrap_or_else(|_| places.home.clone());
    // Some accounts have their home there.
    let is_home = home == *workspace || home.is_within(workspace);
    if !is_home && let Some(why) = system_directory(workspace.as_path()) {
        return Some(why);
    }
    let too_wide = home.is_within(workspace) || places.home.is_within(workspace);
    (too_wide && (options.workspace.is_none() || options.inside_run)).then(|| {
        format!(
            "the workspace would be {workspace}, which holds your whole home directory: every \
             file of yours would be the agent's"
        )
    })
}

/// What decides, as it is named and as it resolves: Ringwall's own places, every configuration file
/// in use, and agents' settings that a link moved from under their protected names.
fn own_files(
    places: &Places,
    workspace: &AbsPath,
    loaded: &Loaded,
    resolver: &mut Resolver,
) -> Vec<AbsPath> {
    // Also where they do not exist yet: a link to nowhere becomes the file that is written there.
    let files = [places.system_config.clone(), places.user_config()];
    let named = places.own().into_iter().chain(files).chain(loaded.files.iter().cloned());
    let mut own = Vec::new();
    for path in named {
        let resolved = resolver.resolve(&path).ok();
        own.extend(AbsPath::lexical(&path).into_iter().chain(resolved));
    }
    for agent in agents::ALL {
        for path in settings_files(agent, places, workspace.as_path()) {
            let resolved = resolver.resolve(&path).ok();
            own.extend(resolved.filter(|resolved| resolved.as_path() != path));
        }
    }
    own.sort();
    own.dedup();
    own
}

/// What the agent reads back without being asked, from its table.
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
pub fn settings_files(agent: &Agent, places: &Places, workspace: &Path) -> [PathBuf; 3] {
    [Scope::User, Scope::Project, Scope::Local]
        .map(|scope| settings_file(agent, places, workspace, scope))
}

/// One settings file of an agent.
pub fn settings_file(agent: &Agent, places: &Places, workspace: &Path, scope: Scope) -> PathBuf {
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
