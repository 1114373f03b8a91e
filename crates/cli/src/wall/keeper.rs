//! [`Keeper`]: rules on what is refused inside, by the same policy as everything else.

mod network;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use facts::{Resolver, Step, Visit};
use model::{
    AbsPath, Access, Action, Caller, Decision, Host, Kind, Origin, PathRef, Plan, Reason, Verdict,
};
use plan::{Interest, Mark, Quiet};
use policy::{NetworkRules, ViolationAction};
use sandbox::{Attempt, Doors, Got, Links, News, Operation, Program, Ruling, SelfTest, Warden};

use super::births::Births;
use super::events::{Class, Counts, Event, Events, Violation, Wall};
use super::git_config::adds_nothing_harmful;
use super::learn::Learned;
use super::network::{Network, Told};
use crate::setup::Setup;

/// Knows the policy, and remembers what happened.
pub(crate) struct Keeper<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) plan: &'a Plan,
    pub(crate) interest: Interest<'a>,
    pub(crate) quiet: Quiet<'a>,
    pub(crate) births: Births,
    /// Where programs are looked for.
    programs: Vec<AbsPath>,
    /// Programs that were looked for where the run cannot see them.
    pub(crate) unseen: BTreeSet<PathBuf>,
    pub(crate) action: ViolationAction,
    pub(crate) events: Events,
    pub(crate) run: String,
    pub(crate) command: Vec<String>,
    pub(crate) counts: Counts,
    /// The attempt that ended the run.
    pub(crate) stopped_by: Option<Violation>,
    /// What would have been needed, for `--learn`.
    learned: Learned,
    pub(crate) wall: Option<Wall>,
    pub(crate) got: Option<Got>,
    /// What was refused already, so that a program that tries again and again is told once.
    told: BTreeSet<(String, String)>,
    /// Refusals to remember beyond the run.
    pub(crate) refusals: Vec<Violation>,
    /// In a linked worktree: whether all other references are as they were.
    pub(crate) references_kept: Option<bool>,
    context: NetworkRules,
    network: Option<Network>,
    /// The programs behind connections that stand.
    clients: HashMap<u64, Program>,
    /// News that came with an attempt that ends the run. Its client waits for an answer, and would
    /// go on if it saw that there is nobody left to give one.
    unanswered: Vec<Told>,
}

/// Refusals that are kept for the log and the end of the run.
const MOST_KEPT: usize = 1000;
/// Attempts that are told, besides the one that ends the run. All are counted.
const MOST_TOLD: usize = 20_000;

impl<'a> Keeper<'a> {
    #[expect(clippy::too_many_arguments, reason = "everything a run knows, once")]
    pub(crate) fn new(
        setup: &'a Setup,
        plan: &'a Plan,
        births: Births,
        action: ViolationAction,
        events: Events,
        run: String,
        command: Vec<String>,
        context: NetworkRules,
    ) -> Self {
        let policy = &setup.loaded.policy;
        Self {
            setup,
            plan,
            interest: Interest::new(policy, &setup.context, |path| {
                setup.resolver.borrow_mut().resolve(path.as_path()).ok()
            }),
            quiet: Quiet::new(policy, &setup.context),
            births,
            programs: programs(plan, &setup.context),
            unseen: BTreeSet::new(),
            action,
            events,
            run,
            command,
            counts: Counts::default(),
            stopped_by: None,
            learned: Learned::default(),
            wall: None,
            got: None,
            told: BTreeSet::new(),
            refusals: Vec::new(),
            references_kept: None,
            context,
            network: None,
            clients: HashMap::new(),
            unanswered: Vec::new(),
        }
    }

    /// Whether something may appear on the run's ground that a rule hides.
    pub(crate) fn may_hide_more(&self) -> bool {
        self.interest.has_patterns() || self.hidden_to_come().next().is_some()
    }

    /// What rules hide by name on the run's ground, and is not there yet.
    fn hidden_to_come(&self) -> impl Iterator<Item = &AbsPath> {
        let is_there = |path: &AbsPath| path.as_path().symlink_metadata().is_ok();
        let named = self.interest.hidden_by_name();
        named.filter(move |path| self.plan.allows(path, false) && !is_there(path))
    }

    /// Why a path is refused, by the policy that the hook asks too.
    fn reason(&self, access: Access, path: &Path) -> Option<Reason> {
        let path = PathRef { given: path.display().to_string(), at: path.to_path_buf() };
        let actions = [Action::Path { access, path, by: None }];
        let setup = self.setup;
        let queries = policy::needs(&setup.loaded.policy, &setup.context, &actions);
        let facts = facts::answer(&queries);
        let scene = policy::Scene {
            cwd: self.plan.cwd.as_path().to_path_buf(),
            home: self.plan.home.clone(),
            top: None,
            quarantine: None,
        };
        let decision =
            policy::evaluate(&setup.loaded.policy, &setup.context, &scene, &actions, &facts);
        deciding(&decision)
    }

    /// Why something is refused that the policy, which sees one path, has nothing against.
    fn unsaid(&self, access: Access, attempt: &Attempt) -> Option<Reason> {
        let path = AbsPath::lexical(&attempt.path).ok()?;
        let level = &self.setup.loaded.policy.level;
        let by_ground = !self.plan.allows(&path, access == Access::Write);
        let kept = by_ground.then(|| self.plan.piece(&path)).flatten().and_then(kept);
        let (rule, origin, why, instead) = if by_ground && kept.is_none() {
            let why = format!("the level `{}` opens your own files only", level.value);
            let instead = policy::remedy(&self.setup.context, access, path.as_path());
            ("level", level.origin.clone(), why, instead)
        } else {
            let instead = "only the user can change it, outside the agent; no grant covers it";
            let why = kept.unwrap_or("a protected name lies in it").into();
            ("protected", Origin::BuiltIn, why, instead.into())
        };
        let text = format!("{path} may not be {}: {why}", access.participle());
        Some(Reason {
            verdict: Verdict::Deny,
            rule: rule.into(),
            origin,
            text,
            instead: Some(instead),
        })
    }

    /// Whether a path is a program where the run looks for programs.
    fn is_program(&self, path: &Path) -> bool {
        path.parent().is_some_and(|dir| self.programs.iter().any(|place| place.as_path() == dir))
    }

    fn class(&self) -> Class {
        match self.action {
            ViolationAction::Stop => Class::Stop,
            ViolationAction::Deny => Class::Deny,
        }
    }

    fn count(&mut self, class: Class) {
        match class {
            Class::Probe => self.counts.probe += 1,
            Class::Deny => self.counts.deny += 1,
            Class::Stop => self.counts.stop += 1,
        }
    }

    /// The least configuration that would have allowed everything that was refused.
    pub(crate) fn learned(&self) -> String {
        self.learned.configuration(&self.context)
    }

    /// Tells a violation once, and says what becomes of the run.
    fn rule(&mut self, violation: Violation) -> Ruling {
        let class = violation.class;
        self.count(class);
        let key = (format!("{:?}", violation.operation), violation.path.clone());
        let room = self.told.len() < MOST_TOLD || class == Class::Stop;
        if room && self.told.insert(key) {
            if let Some(wall) = self.wall {
                let run = &self.run;
                self.events.tell(&Event::Violation { run, violation: &violation, wall });
            }
            if class != Class::Probe && self.refusals.len() < MOST_KEPT {
                self.refusals.push(violation.clone());
            }
        }
        if class == Class::Stop {
            self.stopped_by = Some(violation);
            return Ruling::Stop;
        }
        Ruling::Refuse(rustix::io::Errno::ACCESS.raw_os_error())
    }
}

impl Warden for Keeper<'_> {
    fn resolve(&mut self, path: &Path, links: Links<'_>) -> Option<AbsPath> {
        Resolver::default().resolve_for(path, links).ok()
    }

    fn is_habit(&self, path: &AbsPath, operation: Operation) -> bool {
        match operation {
            Operation::MakeDirectory => self.quiet.covers_birth(path),
            operation if operation.writes() => self.quiet.covers_write(path) || self.is_draft(path),
            _ => self.quiet.covers(path) || self.is_program(path.as_path()),
        }
    }

    fn is_guarded(&mut self, path: &AbsPath, operation: Operation) -> bool {
        self.births.forbids(&self.interest, path, operation)
    }

    /// Programs put the next version of a file beside it, under its name and something more.
    fn is_draft(&self, path: &AbsPath) -> bool {
        let Some(name) = path.as_path().file_name() else { return false };
        let name = name.as_bytes();
        // As `sed -i` and `perl -i` call theirs, whatever the file is called.
        let anonymous = [(b"sed".as_slice(), 9), (b"XX", 8)]
            .iter()
            .any(|(start, length)| name.starts_with(start) && name.len() == *length);
        let plain = name.strip_prefix(b".").unwrap_or(name);
        let plain = plain.strip_prefix(b"#").unwrap_or(plain);
        let beside = self.plan.single_files().any(|file| {
            let about = file.as_path().file_name().unwrap_or_default().as_bytes();
            file != path
                && file.parent() == path.parent()
                && (anonymous || plain.starts_with(about))
        });
        beside && self.interest.mark(path).is_none()
    }

    fn is_mere_lock(&self, path: &AbsPath) -> bool {
        self.births.is_mere_lock(path)
    }

    fn directories_to_watch(&mut self) -> Vec<PathBuf> {
        if !self.interest.has_patterns() {
            // Where they will come, or what that will come in.
            let coming = self.hidden_to_come();
            let above = coming.filter_map(|path| path.as_path().ancestors().find(|at| at.is_dir()));
            return above.map(Path::to_path_buf).collect();
        }
        let pieces = self.plan.pieces.iter().filter(|piece| piece.directory);
        let shown = pieces.filter(|piece| matches!(piece.kind, Kind::Read | Kind::Write));
        let mut directories = Vec::new();
        // The system's own directories change only by its administrator.
        for piece in shown.filter(|piece| piece.why != "toolchain") {
            directories.push(piece.path.as_path().to_path_buf());
            facts::walk(&piece.path, &mut |visit| {
                if let Visit::Entry(path, kind) = visit
                    && kind.is_dir()
                {
                    directories.push(path.as_path().to_path_buf());
                }
                Step::Into
            });
        }
        directories
    }

    fn is_hidden(&mut self, path: &Path) -> bool {
        AbsPath::lexical(path).is_ok_and(|path| self.interest.mark(&path) == Some(Mark::Hidden))
    }

    fn refused(&mut self, attempt: &Attempt, program: &Program) -> Ruling {
        let access = if attempt.operation.writes() { Access::Write } else { Access::Read };
        let mut reason =
            self.reason(access, &attempt.path).or_else(|| self.unsaid(access, attempt));
        // What the run wants to make as a directory must not be granted as a file.
        if let Some(reason) = reason.as_mut().filter(|reason| reason.rule == "workspace")
            && attempt.operation == Operation::MakeDirectory
        {
            let directory = attempt.path.join("");
            reason.instead = Some(policy::remedy(&self.setup.context, access, &directory));
        }
        let grantable = reason.as_ref().is_none_or(|reason| reason.rule != "protected");
        if grantable {
            let makes = attempt.operation == Operation::MakeDirectory;
            let path = if makes { attempt.path.join("") } else { attempt.path.clone() };
            self.learned.path(access, &path);
        }
        // Git notes in its configuration what it tracks, also where nobody asked it to: refused, and
        // no reason to stop by itself.
        let note = attempt.operation == Operation::Rename
            && attempt.path.ends_with(".git/config")
            && adds_nothing_harmful(&attempt.path, &attempt.path.with_extension("lock"));
        let violation = Violation {
            class: if note { Class::Deny } else { self.class() },
            operation: attempt.operation,
            path: attempt.path.display().to_string(),
            program: program.clone(),
            rule: reason.as_ref().map(|reason| reason.rule.clone()),
            origin: reason.as_ref().map(|reason| reason.origin.clone()),
            text: reason.as_ref().map(|reason| reason.text.clone()),
            remedy: reason.and_then(|reason| reason.instead),
        };
        self.rule(violation)
    }

    fn probed(&mut self, attempt: &Attempt, program: &Program) {
        if self.unseen.len() < MOST_KEPT && self.is_program(&attempt.path) {
            self.unseen.insert(attempt.path.clone());
        }
        let violation = Violation {
            class: Class::Probe,
            operation: attempt.operation,
            path: attempt.path.display().to_string(),
            program: program.clone(),
            rule: Some("quiet".into()),
            origin: Some(Origin::BuiltIn),
            text: None,
            remedy: None,
        };
        self.rule(violation);
    }

    fn knocked(&mut self, doors: Doors) -> std::io::Result<()> {
        self.network = Some(Network::open(doors, self.context.clone())?);
        Ok(())
    }

    fn news(&self) -> Vec<BorrowedFd<'_>> {
        self.network.as_ref().map(Network::descriptors).unwrap_or_default()
    }

    fn hear_news(&mut self, who: &dyn Fn(&Caller) -> Program) -> News {
        let Some(network) = &mut self.network else { return News::GoOn };
        let mut news = network.news().into_iter();
        while let Some(told) = news.next() {
            if self.hear(&told, who) == News::Stop {
                self.unanswered.extend(std::iter::once(told).chain(news));
                return News::Stop;
            }
        }
        let ended = self.network.as_mut().is_some_and(Network::has_ended);
        if ended {
            self.close_network();
            let why = "the proxy failed; nothing of the network can be reached any more";
            crate::terminal::error_line(&format!("ringwall: {why}"));
            self.events.tell(&Event::NetworkClosed { run: &self.run, why });
        }
        News::GoOn
    }

    fn connected(&mut self, target: SocketAddr, program: &Program) -> Ruling {
        let named = self.network.as_ref().and_then(|network| network.name(target.ip()));
        let host = named.unwrap_or_else(|| Host::from(target.ip()));
        let reason = policy::connect(&self.context, &host, target.port());
        if reason.verdict == Verdict::Allow {
            // Granted, but there is no door for it. A proxy would get there.
            return Ruling::Refuse(rustix::io::Errno::CONNREFUSED.raw_os_error());
        }
        self.learned.connect(&host.to_string(), target.port());
        let target = host.with_port(target.port());
        match self.refuse_connection(self.class(), target, reason, program.clone()) {
            Ruling::Refuse(_) => Ruling::Refuse(rustix::io::Errno::NETUNREACH.raw_os_error()),
            Ruling::Stop => Ruling::Stop,
        }
    }

    fn started(&mut self, got: &Got, test: &SelfTest, missing: &[String]) {
        self.wall = Some(Wall { enforcement: got.enforcement, attribution: got.attribution });
        self.got = Some(got.clone());
        let violation_action = match self.action {
            ViolationAction::Stop => "stop",
            ViolationAction::Deny => "deny",
        };
        self.events.tell(&Event::Started {
            run: &self.run,
            ringwall: env!("CARGO_PKG_VERSION"),
            command: self.command.clone(),
            wall: got,
            self_test: &test.tried,
            missing,
            plan: self.plan,
            violation_action,
            config: &self.setup.loaded.fingerprint,
        });
    }
}

/// Why a piece of the run's own ground stays as it is, whatever is granted.
fn kept(piece: &model::Piece) -> Option<&'static str> {
    match &*piece.why {
        plan::ANOTHER_CHECKOUT => Some("it belongs to another checkout of the repository"),
        plan::PROTECTED => Some("a protected name stands there or leads there"),
        _ => None,
    }
}

/// The directories of PATH. Every shell looks through all of them for every program, so what lies
/// in one that the run does not see is no more than not there. One that holds the user's files or
/// the workspace is no place for programs alone.
fn programs(plan: &Plan, context: &policy::Context) -> Vec<AbsPath> {
    let path = plan.environment.iter().find(|(name, _)| name == "PATH");
    let dirs = path.into_iter().flat_map(|(_, value)| std::env::split_paths(value));
    dirs.filter(|dir| dir.is_absolute())
        .filter_map(|dir| AbsPath::lexical(&dir).ok())
        .filter(|dir| !context.home.is_within(dir) && !context.workspace.is_within(dir))
        .collect()
}

/// The first reason of the strictest kind.
fn deciding(decision: &Decision) -> Option<Reason> {
    let refusing = |reason: &&Reason| reason.verdict == Verdict::Deny;
    decision.reasons().iter().find(refusing).cloned()
}
