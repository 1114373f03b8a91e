//! `ringwall run -- COMMAND`: the command behind the wall.

mod terms;

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use agents::Agent;
use model::{AbsPath, DomainRule, Origin, Plan, Record, Sourced, Verdict, shell_word};
use policy::{Policy, ViolationAction};
use sandbox::{Ahead, Asked, Attribution, Canary, Enforcement, Launch, Layer};

use self::terms::{check_denials, check_trust, check_workspace, grant_by_flags, grant_programs};
use super::setup_failed;
use crate::args::{AttributionName, EnforcementName, RunArgs};
use crate::failure::Failure;
use crate::setup::{Options, Setup};
use crate::terminal::{self, plain};
use crate::wall::events::{Event, Events};
use crate::wall::keeper::Keeper;
use crate::wall::made::Made;
use crate::wall::survey::{Survey, survey};
use crate::wall::sweep::Tampering;
use crate::wall::{self, sweep};

pub(super) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let (agent, known) = agent(&args)?;
    let ahead = ahead(&args);
    let mut options: Options = args.common.clone().into();
    // A name on the command line is consent only together with `--yes`.
    let named = options.workspace.is_some();
    options.inside_run = true;
    let mut setup = Setup::prepare(agent, &options, "").map_err(setup_failed)?;
    check_workspace(&setup, named && args.yes)?;
    check_trust(&setup)?;
    grant_by_flags(&mut setup, &args)?;
    grant_programs(&mut setup, &args);
    check_denials(&setup)?;
    let _own = (!args.plan).then(|| Made::own_directories(&setup));
    let cwd = working_directory(&setup)?;
    let target = args.events.as_deref().filter(|_| !args.plan);
    let events = Events::open(target)
        .map_err(|error| Failure::usage(format!("--events {}: {error}", target.unwrap_or(""))))?;
    let output = target.filter(|target| !target.starts_with("fd:")).map(Path::new);
    let Survey { site, dangling, repositories, left_out, made } =
        survey(&setup.loaded.policy, &setup.context, known.then_some(agent), output, args.plan);
    for grant in left_out {
        terminal::error_line(&plain(&format!("ringwall: {grant}")));
    }
    if site.marked.iter().any(|marked| marked.path == setup.context.workspace) {
        let workspace = &setup.context.workspace;
        let text = format!("the workspace {workspace} cannot be looked through");
        return Err(Failure::unavailable(text)
            .hint("names in it must be protected; make it readable for yourself"));
    }
    let network = network(&setup, known);
    let plan = plan::compile(&setup.loaded.policy, &setup.context, &network, &cwd, &site);
    if let Some(why) = plan::too_many_ways(&plan) {
        return Err(Failure::config(why).hint("grant fewer ports; names can share one"));
    }
    if args.plan {
        terminal::print(&show_plan(&plan, args.json));
        return Ok(ExitCode::SUCCESS);
    }
    let run = Run { setup: &setup, plan: &plan, args: &args, started: SystemTime::now() };
    let (marked, worktree) = (&site.marked, site.worktree.as_ref());
    let births = sweep::before(marked, dangling, repositories, worktree, run.started);
    for dir in site.worktree.iter().flat_map(|worktree| &worktree.missing) {
        std::fs::create_dir_all(dir.as_path()).map_err(Failure::unavailable)?;
    }
    let action =
        if args.learn { ViolationAction::Deny } else { setup.loaded.policy.violation.action.value };
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let keeper = Keeper::new(&setup, &plan, births, action, events, run_id(), words, network);
    let ended = run.go(keeper, &site, ahead);
    drop(made);
    ended
}

/// What a shell ends with if there is no such program.
const NOT_FOUND: u8 = 127;

/// One run.
struct Run<'a> {
    setup: &'a Setup,
    plan: &'a Plan,
    args: &'a RunArgs,
    started: SystemTime,
}

impl Run<'_> {
    fn go(
        &self,
        mut keeper: Keeper<'_>,
        site: &plan::Site,
        ahead: Option<Ahead>,
    ) -> Result<ExitCode, Failure> {
        let clock = Instant::now();
        self.remember(&keeper, Verdict::Allow, "run", Vec::new())?;
        let canary = self.canary()?;
        let launch = Launch {
            plan: self.plan,
            command: &self.args.command,
            asked: asked(self.args),
            minimum: minimum(&self.setup.loaded.policy),
            canary: &canary.canary,
            user: (site.user.uid, site.user.gid),
            covers: keeper.may_hide_more(),
            omit: &omit(),
        };
        let outcome = match sandbox::run(&launch, ahead, &mut keeper) {
            Ok(outcome) => outcome,
            Err(error) => {
                // Whatever broke while the command ran: what it did is still looked at.
                if keeper.got.is_some() {
                    self.sweep(&mut keeper, site);
                }
                let failure = wall::not_built(&error);
                let lacking = error.diagnosis();
                let (run, error) = (&keeper.run.clone(), failure.message().to_owned());
                keeper.events.tell(&Event::Refused { run, exit: failure.code(), error, lacking });
                return Err(failure);
            }
        };
        drop(canary);
        keeper.close_network();
        tell_limits(&mut keeper, &outcome);
        let changed = outcome.changed || self.plan.pieces.iter().any(is_of_unknown_kind);
        let found = if changed { self.sweep(&mut keeper, site) } else { Vec::new() };
        let (mut exit, end) = wall::ended(&outcome, keeper.stopped_by.as_ref());
        // What should not be there is still there: nobody should go on as if it were not.
        if exit == 0 && found.iter().any(|tampering| tampering.moved_to.is_none()) {
            exit = wall::STOPPED;
        }
        self.tell_refusals(&keeper);
        for path in &outcome.lost {
            let path = plain(&path.to_string());
            terminal::error_line(&format!(
                "ringwall: {path} may not be written, and what was put there is gone"
            ));
        }
        if exit == NOT_FOUND {
            self.tell_unseen(&keeper);
        }
        if let Some(worktree) = &site.worktree
            && found.iter().all(|tampering| !tampering.path.starts_with(worktree.common.as_path()))
        {
            keeper.references_kept = Some(true);
        }
        let notes = keeper
            .refusals
            .iter()
            .map(|refusal| format!("{:?} {:?} {}", refusal.class, refusal.operation, refusal.path));
        let tampered =
            found.iter().map(|found| format!("{}: {}", found.what, found.path.display()));
        let notes: Vec<_> = tampered.chain(notes).take(100).collect();
        let verdict = if notes.is_empty() { Verdict::Allow } else { Verdict::Deny };
        self.remember(&keeper, verdict, "run ended", notes)?;
        let signal = match outcome.end {
            sandbox::End::Exited { signal, .. } => signal,
            _ => None,
        };
        keeper.events.tell(&Event::Stopped {
            run: &keeper.run,
            exit,
            end,
            signal,
            usage: Some(outcome.usage),
            limited_by: outcome.limited_by,
            violations: keeper.counts,
            other_references_unchanged: keeper.references_kept,
            seconds: clock.elapsed().as_secs_f64(),
        });
        if self.args.learn {
            terminal::error_line(&keeper.learned());
        }
        Ok(ExitCode::from(exit))
    }

    /// Looks for what appeared under protected names, and tells it.
    fn sweep(&self, keeper: &mut Keeper<'_>, site: &plan::Site) -> Vec<Tampering> {
        let found = sweep::sweep(
            self.setup,
            &site.grants,
            site.worktree.as_ref(),
            &keeper.births,
            self.started,
        );
        for tampering in &found {
            let to = tampering.moved_to.as_ref();
            let moved = to.map_or(String::new(), |to| format!(", moved to {}", to.display()));
            let path = tampering.path.display();
            terminal::error_line(&plain(&format!(
                "ringwall: tampering: {}: {path}{moved}",
                tampering.what
            )));
            keeper.events.tell(&Event::Tampering {
                run: &keeper.run,
                path: path.to_string(),
                moved_to: to.map(|to| to.display().to_string()),
                what: tampering.what.clone(),
            });
        }
        found
    }

    /// Refusals after which the run went on are told at its end: while it runs the terminal is its
    /// own.
    fn tell_refusals(&self, keeper: &Keeper<'_>) {
        if self.args.learn {
            return;
        }
        let denied: Vec<_> = keeper
            .refusals
            .iter()
            .filter(|refusal| refusal.class != wall::events::Class::Stop)
            .collect();
        for refusal in denied.iter().take(20) {
            terminal::error_line(&format!("ringwall: denied: {}", wall::refusal(refusal)));
        }
        if denied.len() > 20 {
            terminal::error_line(&format!("ringwall: and {} more", denied.len() - 20));
        }
    }

    /// Programs that a shell did not find because they lie outside the ground.
    fn tell_unseen(&self, keeper: &Keeper<'_>) {
        for path in keeper.unseen.iter().take(3) {
            let grant = policy::remedy(&self.setup.context, model::Access::Read, path);
            let path = plain(&path.display().to_string());
            terminal::error_line(&format!("ringwall: {path} is outside the ground; {grant}"));
        }
    }

    fn remember(
        &self,
        keeper: &Keeper<'_>,
        verdict: Verdict,
        tool: &str,
        mut notes: Vec<String>,
    ) -> Result<(), Failure> {
        let setup = self.setup;
        notes.insert(0, format!("level {}", self.plan.level));
        if let Some(got) = &keeper.got {
            notes.insert(1, format!("wall {}, {}", got.enforcement, got.attribution));
        }
        let command = keeper.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>();
        let record = Record {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            agent: setup.agent.name.into(),
            session: keeper.run.clone(),
            workspace: setup.context.workspace.to_string(),
            tool: tool.into(),
            actions: vec![model::Action::Run { command: command.join(" ") }],
            verdict,
            rules: Vec::new(),
            config: setup.loaded.fingerprint.clone(),
            micros: 0,
            notes,
        };
        match audit::Log::at(setup.places.audit_dir()).append(&record) {
            Ok(_) => Ok(()),
            Err(error) => {
                let rule = &setup.loaded.policy.audit.on_failure;
                let text = format!("the audit log cannot be written: {error}");
                match rule.value {
                    policy::OnAuditFailure::Deny => Err(Failure::unavailable(text)),
                    policy::OnAuditFailure::Warn => {
                        terminal::error_line(&format!("ringwall: {text}"));
                        Ok(())
                    }
                }
            }
        }
    }

    /// Something that exists, and that no run may reach: the audit log, and a port of ours.
    fn canary(&self) -> Result<HeldCanary, Failure> {
        let log = audit::Log::at(self.setup.places.audit_dir()).path();
        let hidden = |log: &AbsPath| log.as_path().is_file() && !self.plan.shows(log);
        let pid = std::process::id();
        let (file, spare) = if AbsPath::lexical(&log).is_ok_and(|log| hidden(&log)) {
            (log, None)
        } else if pid > 9 {
            // A file of this process. The run has processes of its own, and not yet as many.
            (PathBuf::from(format!("/proc/{pid}/comm")), None)
        } else {
            let spare = tempfile::NamedTempFile::new_in("/tmp").map_err(Failure::unavailable)?;
            (spare.path().to_path_buf(), Some(spare))
        };
        let file = AbsPath::lexical(&file).map_err(Failure::unavailable)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::unavailable)?;
        let port = listener.local_addr().map_err(Failure::unavailable)?.port();
        Ok(HeldCanary { canary: Canary { file, port }, _listener: listener, _spare: spare })
    }
}

/// Whether a piece can be written that lies on a file system on which names may be made in ways that
/// nobody watches.
fn is_of_unknown_kind(piece: &model::Piece) -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAY: u64 = 0x794c_7630;
    let kind = || rustix::fs::statfs(piece.path.as_path()).ok()?.f_type.try_into().ok();
    let known = |kind: u64| [EXT4, XFS, TMPFS, OVERLAY].contains(&kind);
    piece.kind == model::Kind::Write && !kind().is_some_and(known)
}

/// A limit that ended the run, and those that the kernel held while it went on.
fn tell_limits(keeper: &mut Keeper<'_>, outcome: &sandbox::Outcome) {
    for limit in &outcome.reached {
        terminal::error_line(&format!("ringwall: the limit `limits.{limit}` was reached"));
        keeper.events.tell(&Event::Limit { run: &keeper.run, limit });
    }
    if let sandbox::End::Limit(limit) = outcome.end {
        keeper.events.tell(&Event::Limit { run: &keeper.run, limit });
    }
}

struct HeldCanary {
    canary: Canary,
    _listener: TcpListener,
    _spare: Option<tempfile::NamedTempFile>,
}

/// The agent by name, or by the program that is run. Any other command has nothing of its own.
///
/// Says also whether the command is that agent.
fn agent(args: &RunArgs) -> Result<(&'static Agent, bool), Failure> {
    if let Some(name) = &args.agent {
        let agent = agents::find(name).ok_or_else(|| Failure::usage("no such agent"))?;
        return Ok((agent, true));
    }
    let program = args.command.first().map(PathBuf::from).unwrap_or_default();
    let known = agents::ALL
        .iter()
        .copied()
        .find(|agent| program.file_name().is_some_and(|name| name == agent.program));
    match (known, agents::ALL.first()) {
        (Some(agent), _) => Ok((agent, true)),
        (None, Some(agent)) => Ok((*agent, false)),
        (None, None) => Err(Failure::usage("no agents")),
    }
}

/// The rules about hosts: an agent's own essential domains count only where it is the agent that
/// runs.
fn network(setup: &Setup, known: bool) -> policy::NetworkRules {
    let own = if known { setup.agent.essential_domains } else { &[] };
    let essential: Vec<_> = own
        .iter()
        .filter_map(|name| {
            let value = DomainRule::parse(name).ok()?;
            Some(Sourced { value, origin: Origin::Agent(setup.agent.title.into()) })
        })
        .collect();
    let file = setup.context.grant_file.clone();
    policy::NetworkRules::new(&setup.loaded.policy, &essential, file)
}

/// The directory the command starts in: where we are, if that is in the workspace.
fn working_directory(setup: &Setup) -> Result<AbsPath, Failure> {
    let here =
        setup.resolver.borrow_mut().resolve(&setup.places.cwd).map_err(Failure::unavailable)?;
    let workspace = &setup.context.workspace;
    if !workspace.as_path().is_dir() {
        return Err(Failure::usage(format!("the workspace {workspace} does not exist")));
    }
    Ok(if here.is_within(workspace) { here } else { workspace.clone() })
}

/// The first process of the run: while a plan is made here, it gets its namespaces. What keeps it
/// from that is told when it is needed.
fn ahead(args: &RunArgs) -> Option<Ahead> {
    let wanted = !args.plan && asked(args).enforcement == Enforcement::Namespaces;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    wanted.then(|| Ahead::send((user.as_raw(), group.as_raw())).ok()).flatten()
}

fn asked(args: &RunArgs) -> Asked {
    Asked {
        enforcement: match args.enforcement {
            EnforcementName::Namespaces => Enforcement::Namespaces,
            EnforcementName::Landlock => Enforcement::Landlock,
        },
        attribution: match args.attribution {
            AttributionName::Tripwire => Attribution::Tripwire,
            AttributionName::Notify => Attribution::Notify,
            AttributionName::Inferred => Attribution::Inferred,
        },
    }
}

fn minimum(policy: &Policy) -> Enforcement {
    match policy.confinement.minimum.value {
        policy::Enforcement::Landlock => Enforcement::Landlock,
        policy::Enforcement::Namespaces => Enforcement::Namespaces,
    }
}

/// Layers to leave out, so that tests can show what they are for. Only in builds for tests.
fn omit() -> Vec<Layer> {
    if !cfg!(debug_assertions) {
        return Vec::new();
    }
    let names = std::env::var("RINGWALL_OMIT").unwrap_or_default();
    let layer = |name: &str| match name {
        "mounts" => Some(Layer::Mounts),
        "landlock" => Some(Layer::Landlock),
        "seccomp" => Some(Layer::Seccomp),
        "descriptors" => Some(Layer::Descriptors),
        "environment" => Some(Layer::Environment),
        "self-test" => Some(Layer::SelfTest),
        _ => None,
    };
    names.split(',').filter_map(layer).collect()
}

fn run_id() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", since.as_micros(), std::process::id())
}

fn show_plan(plan: &Plan, json: bool) -> String {
    if json {
        return serde_json::to_string_pretty(plan).unwrap_or_default() + "\n";
    }
    let mut text =
        format!("workspace {}\nlevel {}\nstarts in {}\n\n", plan.workspace, plan.level, plan.cwd);
    let row = |piece: &model::Piece| {
        let kind = match &piece.kind {
            model::Kind::Text(_) => "text".to_owned(),
            kind => format!("{kind:?}").to_lowercase(),
        };
        vec![kind, plain(&piece.path.to_string()), plain(&piece.why)]
    };
    text.push_str(&terminal::table(&plan.pieces.iter().map(row).collect::<Vec<_>>()));
    let names: Vec<_> = plan
        .environment
        .iter()
        .map(|(name, _): &(OsString, OsString)| name.to_string_lossy())
        .collect();
    text.push_str(&format!("\nenvironment {}\n", names.join(" ")));
    text
}
