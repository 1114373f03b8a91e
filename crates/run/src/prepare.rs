//! [`prepare`]: makes a plan from a request. [`Prepared`] is everything that a run needs.

use std::sync::Arc;

use model::{
    AbsPath, Cause, DomainRule, Level, Origin, Plan, PrivateLayer, Sourced, WhyTemporary,
    shell_word,
};
use plan::Machine;
use policy::NetworkRules;

use crate::build_files::BuildFiles;
use crate::checks;
use crate::committed::Committed;
use crate::created::Created;
use crate::frozen::{Frozen, Identity};
use crate::git_state::Unfinished;
use crate::later::Later;
use crate::layers::{self, Held};
use crate::note::{self, Recovered};
use crate::publish;
use crate::references::References;
use crate::request::{Error, ErrorKind, Request};
use crate::survey::{self, Survey};
use config::setup::Setup;

/// A run that is planned and not started.
pub struct Prepared {
    pub(crate) setup: Setup,
    pub(crate) machine: Machine,
    pub(crate) dangling: Vec<AbsPath>,
    pub(crate) repositories: Vec<AbsPath>,
    pub(crate) build: BuildFiles,
    /// Names that act only later, as they were.
    pub(crate) later: Later,
    /// What was in the user's commits.
    pub(crate) committed: Committed,
    /// The operations of git that were not finished before the run.
    pub(crate) unfinished: Unfinished,
    /// What is protected, as it was before the run.
    pub(crate) frozen: Frozen,
    /// Which directory the workspace is.
    pub(crate) place: Option<Identity>,
    /// The references of a linked worktree's repository.
    pub(crate) references: Option<References>,
    /// Runs that were killed here, and what they left.
    pub(crate) recovered: Vec<Recovered>,
    pub(crate) network: NetworkRules,
    /// What was created for the run; gone again with this value.
    #[expect(dead_code, reason = "kept for what happens when it is dropped")]
    pub(crate) created: [Created; 2],
    /// The private layer of the workspace, if the run has it.
    pub(crate) layer: Option<Held>,
    /// The agent that is run, if the command is one.
    pub(crate) agent: Option<&'static agents::Agent>,
    /// What a run would be, as data.
    pub plan: Arc<Plan>,
    /// The names of the caller's variables that the run does not get.
    pub variables_left_out: Vec<String>,
    /// What the user should know about the plan.
    pub notices: Vec<String>,
}

/// Whether the machine may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Only a plan is wanted: nothing is created.
    Plan,
    /// A run follows: granted paths that do not exist are created.
    Run,
}

impl Prepared {
    /// What a violation does in a run as it is configured.
    pub fn violation_action(&self) -> policy::ViolationAction {
        self.setup.loaded.policy.violation.action.value
    }
}

/// Plans a run without starting it. Changes nothing on the machine.
pub fn prepare(request: &Request) -> Result<Prepared, Error> {
    prepare_for(request, Purpose::Plan)
}

pub(crate) fn prepare_for(request: &Request, purpose: Purpose) -> Result<Prepared, Error> {
    let agent = request.recognised_agent();
    let any = agent.or_else(|| agents::ALL.first().copied());
    let any = any.ok_or_else(|| Error::usage("no agent is known"))?;
    let mut options = request.options.clone();
    // Naming a workspace is consent only together with an explicit yes.
    let named = options.workspace.is_some();
    options.inside_run = true;
    let mut setup = Setup::prepare(any, &options, "")?;
    checks::workspace(&setup, named && request.accept_wide_workspace)?;
    if !request.ignore_untrusted {
        checks::trust(&setup)?;
    }
    checks::grant_requested(&mut setup, request)?;
    checks::pass_variables(&mut setup, request)?;
    checks::grant_certificates(&mut setup);
    checks::grant_programs(&mut setup, request);
    checks::denials(&setup)?;
    let own = match purpose {
        Purpose::Plan => Created::default(),
        Purpose::Run => Created::own_directories(&setup),
    };
    let cwd = working_directory(&setup)?;
    let recovered = match purpose {
        Purpose::Plan => Vec::new(),
        Purpose::Run => recover(&setup),
    };
    let output = request.events_file.as_deref();
    let found = survey::survey(&setup.loaded.policy, &setup.context, agent, output, purpose);
    let Survey { mut machine, dangling, repositories, build, later, committed, left_out, created } =
        found;
    let set = request.environment.iter();
    machine.set_by_user =
        set.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    if machine.marked.iter().any(|marked| marked.path == setup.context.workspace) {
        let text = format!("cannot read the workspace {}", setup.context.workspace);
        return Err(Error::unavailable(text)
            .hint("names in it must be protected, so make the directory readable for yourself"));
    }
    let network = network(&setup, agent);
    let layer;
    (machine.layer, layer) = private_layer(&setup, request, purpose);
    let plan =
        Arc::new(plan::compile(&setup.loaded.policy, &setup.context, &network, &cwd, &machine));
    if let Some(why) = plan::too_many_ports(&plan) {
        return Err(Error::config(why).hint("grant fewer ports; several names can share a port"));
    }
    if let Some(why) = plan::unpublishable(&plan) {
        return Err(Error::config(why).hint("use another port inside, such as 8080"));
    }
    let unfinished = Unfinished::before(&machine.marked, machine.worktree.as_ref());
    let (mut frozen, mut references) = (Frozen::default(), None);
    if purpose == Purpose::Run {
        // Events are written by this program.
        let pieces = plan.pieces.iter().filter(|piece| !matches!(piece.why, Cause::EventsFile));
        frozen = Frozen::before(&machine.marked, pieces.map(|piece| &piece.path));
        references = machine.worktree.as_ref().map(References::read);
    }
    let place = Identity::of(setup.context.workspace.as_path());
    let unusable = match &plan.layer {
        PrivateLayer::Temporary(WhyTemporary::Unusable(why)) => {
            Some(format!("what this run writes in caches is deleted at its end: {why}"))
        }
        _ => None,
    };
    let notices = left_out.into_iter().chain(unusable).chain(copies_without_secrets(&plan));
    let notices = notices.chain(publish::without_effect(&setup, &plan)).collect();
    let variables_left_out = plan::variables_left_out(&plan, &machine);
    Ok(Prepared {
        variables_left_out,
        setup,
        machine,
        dangling,
        repositories,
        build,
        later,
        committed,
        unfinished,
        frozen,
        place,
        references,
        recovered,
        network,
        created: [own, created],
        layer,
        agent,
        plan,
        notices,
    })
}

/// The private layer of the workspace, and the hold on it.
fn private_layer(
    setup: &Setup,
    request: &Request,
    purpose: Purpose,
) -> (PrivateLayer, Option<Held>) {
    if request.fresh || setup.loaded.policy.level.value == Level::Full {
        return (PrivateLayer::default(), None);
    }
    let (state_dir, workspace) = (&setup.places.state_dir, &setup.context.workspace);
    match purpose {
        Purpose::Plan => (layers::look(state_dir, workspace), None),
        Purpose::Run => layers::take(state_dir, workspace),
    }
}

/// What the run does not see of files that it gets a copy of.
fn copies_without_secrets(plan: &Plan) -> impl Iterator<Item = String> + use<'_> {
    plan.pieces.iter().filter_map(|piece| {
        let Cause::WithoutSecrets { removed } = &piece.why else { return None };
        let path = &piece.path;
        match removed {
            None => None,
            Some(names) if names.is_empty() => None,
            Some(names) => Some(format!(
                "the run sees {path} without what may be secret: {}; to show all of it: \
                 `ringwall grant read {}`",
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                shell_word(&path.to_string())
            )),
        }
    })
}

/// Searches where this run may write for what runs left that were killed, before anything there counts
/// as having been there.
fn recover(setup: &Setup) -> Vec<Recovered> {
    let (policy, context) = (&setup.loaded.policy, &setup.context);
    let granted = plan::granting(policy, context).filter(|(_, write)| *write);
    let granted = granted.filter_map(|(rule, _)| rule.value.prefix(&context.workspace));
    let mut within: Vec<_> = granted.chain([context.workspace.clone()]).collect();
    if policy.level.value == Level::Full {
        within.push(context.home.clone());
    }
    note::recover(&setup.places.state_dir, Some(&within))
}

/// The rules about hosts. An agent's essential domains are allowed only if it is the agent that runs.
fn network(setup: &Setup, agent: Option<&agents::Agent>) -> NetworkRules {
    let own = agent.map_or(&[][..], |agent| agent.essential_domains);
    let essential: Vec<_> = own
        .iter()
        .filter_map(|name| {
            let value = DomainRule::parse(name).ok()?;
            Some(Sourced { value, origin: Origin::Agent(setup.agent.title.into()) })
        })
        .collect();
    let file = setup.context.grant_file.clone();
    NetworkRules::new(&setup.loaded.policy, &essential, file)
}

/// The directory the command starts in: the current one, if that is in the workspace.
fn working_directory(setup: &Setup) -> Result<AbsPath, Error> {
    let here =
        setup.resolver.borrow_mut().resolve(&setup.places.cwd).map_err(Error::unavailable)?;
    let workspace = &setup.context.workspace;
    if !workspace.as_path().is_dir() {
        return Err(Error::usage(format!("the workspace {workspace} does not exist")));
    }
    Ok(if here.is_within(workspace) { here } else { workspace.clone() })
}

pub(crate) fn untrusted(lines: Vec<String>) -> Error {
    let message = "the project's ringwall.toml has lines that you have not trusted";
    let error = Error { problems: lines, ..Error::new(ErrorKind::Untrusted, message) };
    error.hint("if they are right, run `ringwall trust` and try again; otherwise remove them")
}
