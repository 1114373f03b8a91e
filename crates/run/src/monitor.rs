//! [`Monitor`]: decides about each attempt in a run, and remembers what happened.

mod network;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::setup::Setup;
use facts::Resolver;
use facts::git_config::{adds_nothing_harmful, records_branches};
use model::{
    AbsPath, Access, Caller, Cause, Host, Kind, Level, Origin, Plan, Reason, Remedy, Rule,
    Unresolvable, Verdict,
};
use plan::{Explainer, Protections, QuietList};
use policy::protected::{protecting, secret};
use policy::{NetworkRules, ViolationAction};
use proxy::Published;
use sandbox::{
    Attempt, Available, Diverted, Journal, Links, Listeners, NetworkEvents, Operation, Program,
    Rules, Ruling, SelfTest,
};

use crate::bounded::Bounded;
use crate::checkout;
use crate::committed::Committed;
use crate::events::{Class, Counts, Event, Mechanism, Violation};
use crate::hard_links::HardLinks;
use crate::host_permissions;
use crate::learn::Learned;
use crate::network::{Network, ProxyMessage};
use crate::new_names::NewNames;
use crate::prepare::Prepared;
use crate::publish;
use crate::remedies::Remedies;
use crate::suspects::{self, Hidden, Suspect};

/// Who gets the events of a run. A function that takes events is one.
pub trait Observer {
    /// Something happened. The run waits until this returns.
    fn event(&mut self, event: &Event);

    /// Called between events. Returns when it has to be called again at the latest.
    fn between_events(&mut self) -> Option<Duration> {
        None
    }
}

impl<F: FnMut(&Event)> Observer for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// Where events go.
pub type Sink<'a> = dyn Observer + 'a;

/// Knows the plan and the policy, and remembers what happened.
pub(crate) struct Monitor<'a, 's> {
    setup: &'a Setup,
    plan: &'a Arc<Plan>,
    protections: Protections<'a>,
    quiet: QuietList<'a>,
    remedies: Remedies<'a>,
    pub(crate) new_names: NewNames,
    hard_links: HardLinks<'a>,
    /// The directories of `PATH`.
    programs: Vec<AbsPath>,
    committed: &'a Committed,
    /// What the user had committed, and git has checked out.
    pub(crate) settled: BTreeSet<PathBuf>,
    /// What git was to remove, and stays.
    pub(crate) stays: Vec<AbsPath>,
    /// Programs that were looked for where the run cannot see them.
    pub(crate) unseen: Bounded<PathBuf>,
    /// What exists and was hidden or denied quietly, besides what programs commonly try.
    hidden: Hidden,
    action: ViolationAction,
    sink: &'s mut Sink<'s>,
    pub(crate) run: String,
    pub(crate) command: Vec<String>,
    pub(crate) counts: Counts,
    /// The attempt that ended the run.
    pub(crate) stopped_by: Option<Violation>,
    /// What would have been needed, for a learning run.
    learned: Learned,
    /// Whether this is a learning run.
    pub(crate) learns: bool,
    /// What enforces and attributes, once the run has started.
    pub(crate) available: Option<Available>,
    /// What was reported already, so that a program that tries again and again is reported once.
    /// As digests, which take the same room however long the paths are.
    reported: HashSet<u64>,
    digests: RandomState,
    /// Violations to remember beyond the run.
    pub(crate) violations: Vec<Violation>,
    /// About how many bytes they take.
    violation_bytes: usize,
    rules: NetworkRules,
    network: Option<Network>,
    /// Ports of the host that lead to servers inside, until the network is served.
    pub(crate) published: Vec<Published>,
    /// Ports inside that are not published, and the program that listens on each.
    pub(crate) servers: Vec<(u16, String)>,
    /// The programs behind open connections.
    clients: HashMap<u64, Program>,
    /// Messages from the one that ends the run onwards. Their clients wait for an answer, and would
    /// continue if the channel was closed.
    unanswered: Vec<ProxyMessage>,
}

/// Violations that are kept for the log and the report.
const MOST_KEPT: usize = 1000;
/// About how many bytes they may take: paths and command lines can be long.
const MOST_KEPT_BYTES: usize = 1 << 20;
/// Servers inside that are reported.
const MOST_SERVERS: usize = 16;
/// Attempts that become events, besides the one that ends the run. All are counted.
const MOST_REPORTED: usize = 20_000;

impl<'a, 's> Monitor<'a, 's> {
    pub(crate) fn new(
        prepared: &'a Prepared,
        new_names: NewNames,
        action: ViolationAction,
        command: Vec<String>,
        run: String,
        sink: &'s mut Sink<'s>,
    ) -> Self {
        let Prepared { setup, machine, plan, network, committed, .. } = prepared;
        let policy = &setup.loaded.policy;
        Self {
            setup,
            plan,
            protections: Protections::new(policy, &setup.context, |path| {
                setup.resolver.borrow_mut().resolve(path.as_path()).ok()
            }),
            quiet: QuietList::new(policy, &setup.context),
            remedies: Remedies::new(prepared),
            new_names,
            hard_links: HardLinks::new(&machine.marked),
            programs: programs(plan, &setup.context),
            committed,
            settled: BTreeSet::new(),
            stays: Vec::new(),
            unseen: Bounded::default(),
            hidden: Hidden::default(),
            action,
            sink,
            run,
            command,
            counts: Counts::default(),
            stopped_by: None,
            learned: Learned::default(),
            learns: false,
            available: None,
            reported: HashSet::new(),
            digests: RandomState::new(),
            violations: Vec::new(),
            violation_bytes: 0,
            rules: network.clone(),
            network: None,
            published: Vec::new(),
            servers: Vec::new(),
            clients: HashMap::new(),
            unanswered: Vec::new(),
        }
    }

    /// Hands an event to the caller's sink.
    pub(crate) fn emit(&mut self, event: Event) {
        self.sink.event(&event);
    }

    /// Whether a file that a rule hides may appear in a directory that the run can see.
    pub(crate) fn may_hide_more(&self) -> bool {
        self.protections.has_patterns() || self.hidden_and_missing().next().is_some()
    }

    /// Paths that rules hide by name, that the run could see, and that do not exist yet.
    fn hidden_and_missing(&self) -> impl Iterator<Item = &AbsPath> {
        let is_there = |path: &AbsPath| path.as_path().symlink_metadata().is_ok();
        let named = self.protections.hidden_by_name();
        named.filter(move |path| self.plan.allows(path, false) && !is_there(path))
    }

    /// Why the plan denies an attempt, and what would allow it.
    fn reason(&mut self, access: Access, attempt: &Attempt) -> Option<Reason> {
        let path = AbsPath::lexical(&attempt.path).ok()?;
        let explainer = Explainer {
            plan: self.plan,
            policy: &self.setup.loaded.policy,
            context: &self.setup.context,
            protections: &self.protections,
        };
        if attempt.operation == Operation::Connect {
            return Some(explainer.connection(&path));
        }
        // A file is denied for the name under which it is protected.
        let path = self.hard_links.changed_by(attempt.operation, &path).cloned().unwrap_or(path);
        let makes = attempt.operation == Operation::MakeDirectory;
        let reason = explainer.explain(access, &path, makes);
        Some(self.remedies.improve(reason, attempt.operation))
    }

    /// Whether a path is a program where the run looks for programs.
    fn is_program(&self, path: &Path) -> bool {
        path.parent().is_some_and(|dir| self.programs.iter().any(|place| place.as_path() == dir))
    }

    /// Whether a program may fail because a probe was in vain, and is not just trying by habit.
    fn may_be_missed(&self, attempt: &Attempt, path: &AbsPath) -> bool {
        match attempt.operation {
            // What the user has in the home directory is a probe too, and may be needed.
            Operation::Look => !self.quiet.covers(path) && !self.is_program(path.as_path()),
            // Settings that it would have made. Histories and caches no one misses.
            Operation::MakeDirectory => !self.quiet.covers_write(path),
            _ => false,
        }
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

    /// The smallest configuration that would have allowed everything that was denied.
    pub(crate) fn learned(&self, suspects: &[Suspect]) -> String {
        let line = |one: &Suspect| match &one.allow {
            Some(command) => format!("{}; `{command}` allows it", one.what),
            None => one.what.clone(),
        };
        let quiet: Vec<_> = suspects.iter().map(line).collect();
        self.learned.configuration(&self.rules, &quiet)
    }

    /// What may have made the command fail without a word.
    pub(crate) fn suspects(&mut self, left_out: &[String]) -> Vec<Suspect> {
        let command = self.command.first().cloned().unwrap_or_default();
        // What was denied explains more than a variable that may have been wanted.
        let left_out = if self.violations.is_empty() { left_out } else { &[] };
        self.hidden.suspects(&mut self.remedies, &command, left_out)
    }

    /// What an attempt is remembered by. A run cannot find two with the same one.
    fn digest(&self, operation: Operation, path: &str) -> u64 {
        self.digests.hash_one((format!("{operation:?}"), path))
    }

    /// Whether an attempt was reported already.
    fn is_reported(&self, operation: Operation, path: &str) -> bool {
        self.reported.contains(&self.digest(operation, path))
    }

    /// Keeps a violation for the log and the report, while there is room.
    fn keep(&mut self, violation: &Violation) {
        let argv = violation.program.argv.iter().map(|word| word.len() + size_of::<String>());
        let reason = violation.reason.as_ref().map_or(0, |reason| reason.text.len());
        let bytes = 2 * violation.path.len() + argv.sum::<usize>() + reason;
        if self.violations.len() < MOST_KEPT && self.violation_bytes + bytes <= MOST_KEPT_BYTES {
            self.violation_bytes += bytes;
            self.violations.push(violation.clone());
        }
    }

    /// Reports a violation once, and returns what happens to the run.
    fn rule(&mut self, violation: Violation) -> Ruling {
        let class = violation.class;
        self.count(class);
        let key = self.digest(violation.operation, &violation.path);
        let room = self.reported.len() < MOST_REPORTED || class == Class::Stop;
        if room && self.reported.insert(key) {
            if let Some(Available { enforcement, attribution, .. }) = self.available {
                let mechanism = Mechanism { enforcement, attribution };
                let (run, violation) = (self.run.clone(), violation.clone());
                self.emit(Event::Violation { run, violation, mechanism });
            }
            if class != Class::Probe {
                self.keep(&violation);
            }
        }
        if class == Class::Stop {
            self.stopped_by = Some(violation);
            return Ruling::Stop;
        }
        Ruling::Errno(rustix::io::Errno::ACCESS.raw_os_error())
    }
}

impl Rules for Monitor<'_, '_> {
    fn resolve(&mut self, path: &Path, links: Links<'_>) -> Result<AbsPath, Unresolvable> {
        Resolver::default().resolve_for(path, links)
    }

    fn is_probe(&self, path: &AbsPath, operation: Operation) -> bool {
        match operation {
            Operation::MakeDirectory => self.quiet.covers_new_directory(path),
            Operation::Connect => self.quiet.covers_connection(path),
            operation if operation.writes() => self.quiet.covers_write(path) || self.is_draft(path),
            _ => {
                self.quiet.covers(path)
                    || self.is_program(path.as_path())
                    || (self.plan.is_unplanned_dot(path) && self.may_be_private(path))
            }
        }
    }

    /// What looks for a secret, meets a rule of the user or reaches for Ringwall's own files is a
    /// violation even where it would have failed.
    fn refused_outside(&self, path: &AbsPath, operation: Operation) -> Option<i32> {
        let own = || self.setup.context.own_files.iter().any(|own| path.is_within(own));
        let ruled = if operation.writes() {
            self.protections.mark(path).is_some()
        } else {
            self.protections.hidden_by(path).is_some()
        };
        let meant = self.quiet.is_secret(path) || ruled || own();
        if meant { None } else { host_permissions::refusal(operation, path) }
    }

    fn is_guarded(&mut self, path: &AbsPath, operation: Operation) -> bool {
        self.new_names.forbids(&self.protections, path, operation)
            || self.hard_links.changed_by(operation, path).is_some()
    }

    fn diverts(&self, path: &AbsPath) -> bool {
        self.protections.is_diverted(path)
            && self.setup.loaded.policy.level.value >= Level::Readwrite
    }

    fn is_being_checked_out(&self, path: &AbsPath) -> bool {
        checkout::is_going_on(path)
    }

    fn records(&self, path: &AbsPath, old: &[u8], new: &[u8]) -> bool {
        let writable = self.setup.loaded.policy.level.value >= Level::Readwrite;
        writable
            && path.is_within(&self.setup.context.workspace)
            && path.as_path().ends_with(".git/config")
            && records_branches(old, new)
    }

    fn settle(&mut self, diverted: &mut Diverted) {
        let known = (self.committed, self.setup.places.state_dir.as_path());
        checkout::settle(known, diverted, checkout::When::CheckedOut, &mut self.settled);
    }

    fn moves(&mut self, from: &AbsPath, to: &AbsPath) -> bool {
        self.new_names.moves(from, to)
    }

    fn keeps_links_out(&self, path: &AbsPath) -> bool {
        NewNames::keeps_links_out(path)
    }

    fn may_be_private(&self, path: &AbsPath) -> bool {
        let (home, own) = (&self.setup.context.home, &self.setup.context.own_files);
        self.plan.level < Level::Full
            && secret(path, home).is_none()
            && protecting(path).is_none()
            && !own.iter().any(|own| path.is_within(own))
            && self.protections.hidden_by(path).is_none()
            && self.protections.read_only_by(path).is_none()
    }

    /// Programs write the next version of a file beside it, under its name with a prefix or suffix.
    fn is_draft(&self, path: &AbsPath) -> bool {
        let Some(name) = path.as_path().file_name() else { return false };
        let name = name.as_bytes();
        // The names that `sed -i` and `perl -i` use, whatever the file is called.
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
        beside && self.protections.mark(path).is_none()
    }

    fn is_lock_only(&self, path: &AbsPath) -> bool {
        self.new_names.is_packed_refs_lock(path)
    }

    fn shows_looks(&self, path: &Path) -> bool {
        self.learns || self.programs.iter().any(|dir| dir.as_path().starts_with(path))
    }

    fn directories_to_watch(&mut self) -> (Vec<PathBuf>, bool) {
        if !self.protections.has_patterns() {
            // The directories in which they would be created, or the nearest that exist.
            let coming = self.hidden_and_missing();
            let above = coming.filter_map(|path| path.as_path().ancestors().find(|at| at.is_dir()));
            return (above.map(Path::to_path_buf).collect(), false);
        }
        let pieces = self.plan.pieces.iter().filter(|piece| piece.directory);
        let shown = pieces.filter(|piece| matches!(piece.kind, Kind::Read | Kind::Write));
        // Only an administrator changes the system's own directories.
        let changing = shown.filter(|piece| !matches!(piece.why, Cause::Toolchain));
        (changing.map(|piece| piece.path.as_path().to_path_buf()).collect(), true)
    }

    fn is_hidden(&mut self, path: &Path) -> bool {
        AbsPath::lexical(path).is_ok_and(|path| self.protections.hidden_by(&path).is_some())
    }

    fn deny(&mut self, attempt: &Attempt, program: &Program) -> Ruling {
        let access = if attempt.operation.writes() { Access::Write } else { Access::Read };
        let shown = attempt.path.display().to_string();
        // Whoever tries the same again and again is answered without looking for the reason again.
        let known = self.is_reported(attempt.operation, &shown);
        let reason = if known { None } else { self.reason(access, attempt) };
        match &reason {
            _ if attempt.operation == Operation::Connect => self.learned.socket(&attempt.path),
            Some(Reason { instead: Some(Remedy::Grant { path, asks: None, .. }), .. }) => {
                self.learned.path(access, path);
            }
            Some(reason) => {
                self.learned.not_grantable(attempt.operation.verb(), &shown, reason.why());
            }
            None => {}
        }
        // Git records in its configuration what it tracks, also unasked. That is denied, and is not
        // a reason to stop the run.
        let note = attempt.operation == Operation::Rename
            && attempt.path.ends_with(".git/config")
            && adds_nothing_harmful(&attempt.path, &attempt.path.with_extension("lock"));
        let violation = Violation {
            class: if note { Class::Deny } else { self.class() },
            operation: attempt.operation,
            path: shown,
            program: program.clone(),
            reason,
        };
        self.rule(violation)
    }

    fn deny_connection(&mut self, target: SocketAddr, program: &Program) -> Ruling {
        let named = self.network.as_ref().and_then(|network| network.name(target.ip()));
        let host = named.unwrap_or_else(|| Host::from(target.ip()));
        let reason = policy::connect(&self.rules, &host, target.port());
        if reason.verdict == Verdict::Allow {
            // Granted, but there is no listener for it. The proxy can reach it.
            return Ruling::Errno(rustix::io::Errno::CONNREFUSED.raw_os_error());
        }
        self.learned.connect(&host.to_string(), target.port());
        let target = host.with_port(target.port());
        match self.refuse_connection(self.class(), target, reason, program.clone()) {
            Ruling::Errno(_) => Ruling::Errno(rustix::io::Errno::NETUNREACH.raw_os_error()),
            ruling => ruling,
        }
    }
}

impl Journal for Monitor<'_, '_> {
    fn started(&mut self, available: &Available, test: &SelfTest, missing: &[String]) {
        self.available = Some(available.clone());
        self.new_names.intercepted = available.attribution != sandbox::Attribution::Inferred;
        let violation_action = match self.action {
            ViolationAction::Stop => "stop",
            ViolationAction::Deny => "deny",
        };
        self.emit(Event::Started {
            run: self.run.clone(),
            ringwall: env!("CARGO_PKG_VERSION").into(),
            command: self.command.clone(),
            mechanism: available.clone(),
            self_test: test.tried.clone(),
            missing: missing.to_vec(),
            plan: Arc::clone(self.plan),
            violation_action: violation_action.into(),
            config: self.setup.loaded.fingerprint.clone(),
        });
        for published in &self.published {
            let (run, inside) = (self.run.clone(), published.inside);
            if let Ok(address) = published.listener.local_addr() {
                let address = address.to_string();
                self.sink.event(&Event::Published { run, address, inside });
            }
        }
    }

    fn listens(&mut self, address: SocketAddr, program: &Program) {
        let port = address.port();
        let known = self.servers.iter().any(|(known, _)| *known == port);
        if known || self.servers.len() >= MOST_SERVERS {
            return;
        }
        self.servers.push((port, publish::name(program)));
        let (address, program) = (address.to_string(), program.clone());
        self.emit(Event::Listening { run: self.run.clone(), address, program });
    }

    fn finds_no_server(&mut self, target: SocketAddr, program: &Program) {
        let host = Host::from(target.ip());
        let reason = policy::connect(&self.rules, &host, target.port());
        if reason.verdict == Verdict::Allow {
            return;
        }
        self.learned.connect(&host.to_string(), target.port());
        let target = host.with_port(target.port());
        self.refuse_connection(Class::Deny, target, reason, program.clone());
    }

    fn probed(&mut self, attempt: &Attempt, program: &Program) {
        if self.is_program(&attempt.path) {
            self.unseen.insert(attempt.path.clone(), attempt.path.as_os_str().len());
        }
        let missed = |path: AbsPath| {
            self.may_be_missed(attempt, &path) || suspects::is_asked_for(program, path.as_path())
        };
        if AbsPath::lexical(&attempt.path).is_ok_and(missed) {
            self.hidden.note(attempt.operation, &attempt.path, program);
        }
        let violation = Violation {
            class: Class::Probe,
            operation: attempt.operation,
            path: attempt.path.display().to_string(),
            program: program.clone(),
            reason: Some(Reason::deny(Rule::Quiet, Origin::BuiltIn, "")),
        };
        self.rule(violation);
    }

    fn between_events(&mut self) -> Option<Duration> {
        self.sink.between_events()
    }

    fn failed_as_outside(&mut self, attempt: &Attempt, program: &Program) {
        let text = "the user could not do this outside either";
        self.rule(Violation {
            class: Class::Probe,
            operation: attempt.operation,
            path: attempt.path.display().to_string(),
            program: program.clone(),
            reason: Some(Reason::deny(Rule::HostPermissions, Origin::BuiltIn, text)),
        });
    }
}

impl NetworkEvents for Monitor<'_, '_> {
    fn serve(&mut self, listeners: Listeners) -> std::io::Result<()> {
        self.network = Some(Network::open(
            listeners,
            std::mem::take(&mut self.published),
            self.rules.clone(),
        )?);
        Ok(())
    }

    fn published(&self) -> Vec<BorrowedFd<'_>> {
        self.published.iter().map(|published| published.listener.as_fd()).collect()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.network.as_ref().map(Network::descriptors).unwrap_or_default()
    }

    fn handle(&mut self, who: &dyn Fn(&Caller) -> Program) -> Ruling {
        let Some(network) = &mut self.network else { return Ruling::Continue };
        let mut messages = network.messages().into_iter();
        while let Some(message) = messages.next() {
            if self.handle_message(&message, who) == Ruling::Stop {
                self.unanswered.extend(std::iter::once(message).chain(messages));
                return Ruling::Stop;
            }
        }
        let ended = self.network.as_mut().is_some_and(Network::has_ended);
        if ended {
            self.close_network();
            let why = "the proxy failed; nothing on the network can be reached any more".into();
            self.emit(Event::NetworkClosed { run: self.run.clone(), why });
        }
        Ruling::Continue
    }
}

/// The directories of PATH. Every shell searches all of them for every program, so a program in one
/// that the run does not see is reported as missing only. A directory that contains the user's
/// files or the workspace does not hold programs only, so it is left out.
fn programs(plan: &Plan, context: &policy::Context) -> Vec<AbsPath> {
    let path = plan.environment.iter().find(|(name, _)| name == "PATH");
    let dirs = path.into_iter().flat_map(|(_, value)| std::env::split_paths(value));
    dirs.filter(|dir| dir.is_absolute())
        .filter_map(|dir| AbsPath::lexical(&dir).ok())
        .filter(|dir| !context.home.is_within(dir) && !context.workspace.is_within(dir))
        .collect()
}
