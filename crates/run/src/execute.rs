//! [`run`]: the sandbox is started, the command runs, and the report says what happened.

use std::cell::RefCell;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use model::{AbsPath, ByteSize, Origin, Record, Verdict, printed_word, shell_word};
use plan::toolchain::PROGRAM_DIRS;
use policy::{OnAuditFailure, ViolationAction};
use sandbox::{
    Available, Canary, Diverted, End, Enforcement, Launch, Outcome, Prefork, SandboxError,
};

use crate::build_files::BuildFileChange;
use crate::checkout;
use crate::events::{Changed, Class, Ending, Event, KeptAside, Tampering, Violation};
use crate::frozen::{Compared, Identity};
use crate::git_locks;
use crate::kept::Keeper;
use crate::monitor::{Monitor, Sink};
use crate::new_names::NewNames;
use crate::note::{self, Recovered};
use crate::prepare::{Prepared, Purpose, prepare_for};
use crate::private_files;
use crate::publish;
use crate::references::Moved;
use crate::report::{NOT_FOUND, Report, STOPPED, ending};
use crate::request::{Error, Request};
use crate::suspects::Suspect;
use crate::sweep::{self, Left, Swept};

/// Runs a command in this process and waits for its end. `events` gets every event as it happens.
///
/// The process must have one thread: the first process of the run is cloned from it.
pub fn run(request: &Request, events: &mut Sink<'_>) -> Result<Report, Error> {
    run_until(request, events, None)
}

/// The same; the run is cancelled when `stop` becomes readable.
pub(crate) fn run_until(
    request: &Request,
    events: &mut Sink<'_>,
    stop: Option<BorrowedFd<'_>>,
) -> Result<Report, Error> {
    if !sandbox::is_single_threaded() {
        return Err(Error::unavailable(
            "a run cannot be started in a process with several threads",
        )
        .hint("use `spawn`, which starts a process of its own"));
    }
    // The first process gets its namespaces while the plan is made here. If that fails, the reason
    // is reported when the sandbox is started.
    let prefork = (request.mechanisms.enforcement == Enforcement::Namespaces)
        .then(|| Prefork::start(ids(), &plan::USUAL).ok())
        .flatten();
    let prepared = prepare_for(request, Purpose::Run)?;
    Run { prepared: &prepared, request, started: SystemTime::now(), stop }.execute(prefork, events)
}

fn ids() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

/// One run.
struct Run<'a> {
    prepared: &'a Prepared,
    request: &'a Request,
    started: SystemTime,
    stop: Option<BorrowedFd<'a>>,
}

impl Run<'_> {
    fn execute(&self, prefork: Option<Prefork>, events: &mut Sink<'_>) -> Result<Report, Error> {
        let Prepared { setup, machine, plan, .. } = self.prepared;
        let clock = Instant::now();
        let mut notices = self.prepared.notices.clone();
        for dir in machine.worktree.iter().flat_map(|worktree| &worktree.missing) {
            std::fs::create_dir_all(dir.as_path()).map_err(Error::unavailable)?;
        }
        let action = self.violation_action();
        let mut monitor =
            Monitor::new(self.prepared, self.new_names(), action, self.command(), run_id(), events);
        monitor.learns = self.request.learn;
        monitor.published = publish::listen(&plan.publish)?;
        let begun = RefCell::new(Begun::default());
        let (run, command) = (monitor.run.clone(), monitor.command.clone());
        let begin = || self.begin(&begun, &run, &command);
        if !self.log().is_file() {
            // The self-test needs it.
            begin();
        }
        let canary = self.canary()?;
        let mut recovered = self.report_recovered(&mut monitor);
        let policy = &setup.loaded.policy.filesystem;
        let home = &setup.context.home;
        let program_dirs: Vec<_> = PROGRAM_DIRS.iter().map(|dir| home.join(dir.as_ref())).collect();
        let launch = Launch {
            plan,
            command: &self.request.command,
            requested: self.request.mechanisms,
            minimum: if plan.publish.is_empty() {
                setup.loaded.policy.confinement.minimum.value
            } else {
                // Landlock alone gives no network whose ports could be published.
                Enforcement::Namespaces
            },
            canary: &canary.canary,
            user: (machine.user.uid, machine.user.gid),
            hides_new_files: monitor.may_hide_more(),
            program_dirs: &program_dirs,
            performs_reads: policy.strict_deny.value && !policy.deny_read.is_empty(),
            meanwhile: Some(&begin),
            stop: self.stop,
        };
        let ended = sandbox::run(&launch, prefork, &mut monitor);
        // Also if there was no run.
        begin();
        let Begun { mut note, failed, notices: more, .. } = begun.into_inner();
        notices.extend(more);
        if let Some(error) = failed {
            return Err(error);
        }
        let mut outcome = match ended {
            Ok(outcome) => outcome,
            Err(error) => {
                return Err(self.failed(&mut monitor, &error, recovered, (notices, note)));
            }
        };
        drop(canary);
        monitor.close_network();
        report_limits(&mut monitor, &outcome);
        let mut found = self.what_is_left(&mut monitor, &mut outcome);
        found.leave_unfinished(&mut note);
        found.tampering.append(&mut recovered);
        notices.extend(private_files::installed(&plan.layer, &outcome.installed));
        notices.extend(private_files::temporary(&outcome.temporary));
        notices.extend(self.finish_layer());
        let moved = self.moved_references(&mut monitor, &mut found);
        drop(note);
        let (mut exit, end) = ending(&outcome);
        // A success would hide that something is there that should not be.
        if exit == 0 && found.tampering.iter().any(|tampering| tampering.moved_to.is_none()) {
            exit = STOPPED;
        }
        let failed = exit != 0 && end == Ending::Exited && !self.request.interactive;
        let suspects = if failed || self.request.learn {
            monitor.suspects(&self.prepared.variables_left_out)
        } else {
            Vec::new()
        };
        let recorded = self.record_end(&monitor, &suspects, &found.tampering, &mut notices);
        let ended = (exit, end);
        let report = self.report(&monitor, Some(&outcome), ended, suspects, found, notices);
        if let Err(error) = recorded {
            return Err(Error { report: Some(Box::new(report)), ..error });
        }
        monitor.emit(Event::Stopped {
            run: report.run.clone(),
            exit,
            end,
            signal: report.signal,
            usage: report.usage,
            limited_by: report.limited_by.clone(),
            violations: report.counts,
            other_references_unchanged: moved.as_ref().map(|moved| moved.unknown.is_empty()),
            moved_references: moved.iter().flat_map(Moved::unknown_names).collect(),
            moved_by_host: moved.map(|moved| moved.by_host).unwrap_or_default(),
            seconds: clock.elapsed().as_secs_f64(),
        });
        Ok(report)
    }

    /// The sandbox could not be started, or failed later. Whatever the command did until then is still
    /// checked.
    fn failed(
        &self,
        monitor: &mut Monitor<'_, '_>,
        error: &SandboxError,
        recovered: Vec<Tampering>,
        (notices, mut note): (Vec<String>, Option<note::HeldNote>),
    ) -> Error {
        let ran = monitor.available.is_some();
        let mut failed = if ran { Error::broken(error) } else { Error::from(error) };
        let exit = failed.exit_code();
        if ran {
            let mut found = self.sweep(monitor, Diverted::default());
            found.leave_unfinished(&mut note);
            found.tampering.splice(0..0, recovered);
            let ended = (exit, Ending::Failed);
            let report = self.report(monitor, None, ended, Vec::new(), found, notices);
            failed.report = Some(Box::new(report));
        }
        let (run, error) = (monitor.run.clone(), failed.message.clone());
        monitor.emit(Event::Refused { run, exit, error, lacking: failed.lacking.clone() });
        failed
    }

    /// What the run left, and runs that were killed before it.
    fn what_is_left(&self, monitor: &mut Monitor<'_, '_>, outcome: &mut Outcome) -> Found {
        let diverted = std::mem::take(&mut outcome.diverted);
        let pieces = &self.prepared.plan.pieces;
        let changed = outcome.changed || pieces.iter().any(is_of_unknown_kind);
        let mut found = if changed { self.sweep(monitor, diverted) } else { Found::default() };
        found.kept.splice(0..0, self.recovered_files(monitor));
        found
    }

    /// Records the run and keeps a note of it, once.
    fn begin(&self, begun: &RefCell<Begun>, run: &str, command: &[String]) -> bool {
        let mut begun = begun.borrow_mut();
        if !begun.done {
            begun.done = true;
            let mut notices = Vec::new();
            let of = Recorded { run, command, available: None };
            match self.record(&of, Verdict::Allow, "run", Vec::new(), &mut notices) {
                Ok(()) => begun.note = self.keep_note(run, &mut notices),
                Err(error) => begun.failed = Some(error),
            }
            begun.notices = notices;
        }
        begun.failed.is_none()
    }

    fn report(
        &self,
        monitor: &Monitor<'_, '_>,
        outcome: Option<&Outcome>,
        (exit, end): (u8, Ending),
        suspects: Vec<Suspect>,
        found: Found,
        mut notices: Vec<String>,
    ) -> Report {
        let context = &self.prepared.setup.context;
        notices.extend(publish::not_published(&monitor.servers));
        notices.extend(checkout::notices(&monitor.settled, &monitor.stays));
        let ended = outcome.map(|outcome| &outcome.end);
        let reached = outcome.into_iter().flat_map(|outcome| &outcome.reached);
        let lost = outcome.into_iter().flat_map(|outcome| &outcome.lost);
        let unseen = monitor.unseen.entries().iter().filter(|_| exit == NOT_FOUND);
        let left_locks = match end {
            Ending::Exited | Ending::NotRun => Vec::new(),
            _ => git_locks::left(context.workspace.as_path(), self.started),
        };
        let grant = |path: &PathBuf| {
            (path.clone(), policy::remedy(context, model::Access::Read, path).to_string())
        };
        let stopped_by = monitor.stopped_by.clone().filter(|_| end == Ending::Violation);
        let denied = monitor.violations.iter().filter(|one| one.class != Class::Stop);
        Report {
            run: monitor.run.clone(),
            exit,
            end,
            signal: match ended {
                Some(End::Exited { signal, .. }) => *signal,
                _ => None,
            },
            stopped_by,
            limit: match ended {
                Some(End::Limit(limit)) => Some((*limit).into()),
                _ => None,
            },
            not_run: match ended {
                Some(End::NotRun(failed)) => Some(failed.to_string()),
                _ => None,
            },
            denied: denied.cloned().collect(),
            counts: monitor.counts,
            limits_reached: reached.map(|&limit| limit.into()).collect(),
            tampering: found.tampering,
            changed: found.changed,
            build_files: found.build_files,
            more_build_files: found.more_build_files,
            kept: found.kept,
            lost: lost.map(ToString::to_string).collect(),
            unseen_programs: unseen.take(3).map(grant).collect(),
            limited_by: outcome.map_or("", |outcome| outcome.limited_by).into(),
            usage: outcome.map(|outcome| outcome.usage),
            learned: self.request.learn.then(|| monitor.learned(&suspects)),
            suspects: if self.request.learn { Vec::new() } else { suspects },
            left_locks,
            notices,
        }
    }

    /// What a violation does in this run.
    fn violation_action(&self) -> ViolationAction {
        let configured = &self.prepared.setup.loaded.policy.violation.action;
        match self.request.on_violation {
            _ if self.request.learn => ViolationAction::Deny,
            Some(action) => action,
            // A person sees what is denied, and would lose the whole session.
            None if self.request.interactive && configured.origin == Origin::BuiltIn => {
                ViolationAction::Deny
            }
            None => configured.value,
        }
    }

    fn command(&self) -> Vec<String> {
        self.request.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn new_names(&self) -> NewNames {
        let Prepared { machine, dangling, repositories, .. } = self.prepared;
        let worktree = machine.worktree.as_ref();
        NewNames::before(&machine.marked, dangling, repositories, worktree, self.started)
    }

    /// Looks for what appeared under protected names and for what was replaced, and reports it.
    fn sweep(&self, monitor: &mut Monitor<'_, '_>, mut diverted: Diverted) -> Found {
        let Prepared { setup, machine, unfinished, frozen, later, committed, place, .. } =
            self.prepared;
        let state_dir = setup.places.state_dir.as_path();
        let workspace = setup.context.workspace.as_path();
        let mut keeper = Keeper::new(state_dir, &monitor.run, workspace);
        let swept = Swept {
            policy: &setup.loaded.policy,
            context: &setup.context,
            grants: &machine.grants,
            worktree: machine.worktree.as_ref(),
            new_names: &monitor.new_names,
            unfinished,
            later,
            committed,
            state_dir,
            since: self.started,
        };
        let known = (committed, state_dir);
        checkout::settle(known, &mut diverted, checkout::When::Ended, &mut monitor.settled);
        let Left { mut tampering, build, whole } = sweep::sweep(&swept, &mut keeper);
        tampering.extend(checkout::keep(&diverted, &mut keeper));
        let stays = diverted.removed.iter().filter(|path| !diverted.files.contains_key(*path));
        monitor.stays = stays.cloned().collect();
        let kept = keeper.finish().unwrap_or_else(|error| {
            let what = format!("what is kept aside cannot be listed: {error}");
            let path = state_dir.display().to_string();
            tampering.push(Tampering { path, moved_to: None, what });
            None
        });
        let enforcement = monitor.available.as_ref().map(|available| available.enforcement);
        let mounted = enforcement == Some(Enforcement::Namespaces);
        let compared = if sweep::has_descriptors() {
            frozen.compare(mounted, self.started)
        } else {
            // What cannot be read would look like something else.
            Compared::default()
        };
        tampering.extend(compared.tampering);
        if Identity::of(setup.context.workspace.as_path()) != *place {
            let what = "the workspace was moved or replaced while the run went on, so it was not \
                        searched for what the run left"
                .into();
            let path = setup.context.workspace.to_string();
            tampering.push(Tampering { path, moved_to: None, what });
        }
        let mut replaced = compared.changed;
        replaced.retain(|(changed, _)| !monitor.settled.contains(Path::new(&changed.path)));
        let replaced = replaced.into_iter().enumerate();
        let keep = |(number, (changed, before)): (usize, (Changed, Option<Vec<u8>>))| {
            let place = setup.places.state_dir.join("replaced");
            let name = format!("{}-{number}", monitor.run);
            let look = before.and_then(|text| keep_old(&place, &name, &text, &changed.path));
            Changed { look, ..changed }
        };
        let changed: Vec<_> = replaced.take(MOST_CHANGED).map(keep).collect();
        let run = monitor.run.clone();
        for tampering in tampering.iter().cloned() {
            monitor.emit(Event::Tampering { run: run.clone(), tampering });
        }
        for changed in changed.iter().cloned() {
            monitor.emit(Event::Changed { run: run.clone(), changed });
        }
        if let Some(kept) = &kept {
            monitor.emit(Event::KeptAside { run: run.clone(), kept: KeptAside::new(kept) });
        }
        let (build_files, more_build_files) = self.prepared.build.changes(&build);
        if !build_files.is_empty() {
            let (run, files) = (monitor.run.clone(), build_files.clone());
            monitor.emit(Event::BuildFilesChanged { run, files, more: more_build_files });
        }
        let kept = kept.iter().map(KeptAside::new).collect();
        Found { tampering, changed, build_files, more_build_files, kept, unfinished: !whole }
    }

    /// Measures the private layer, and removes what exceeds the limit.
    fn finish_layer(&self) -> Option<String> {
        let limit = self.prepared.setup.loaded.policy.limits.caches.as_ref();
        let limit = limit.map_or(CACHES, |limit| limit.value);
        self.prepared.layer.as_ref().and_then(|layer| layer.finish(limit))
    }

    /// Keeps a note of what was found before the run, in case it does not come to its end.
    fn keep_note(&self, run: &str, notices: &mut Vec<String>) -> Option<note::HeldNote> {
        let Prepared { setup, machine, dangling, repositories, unfinished, .. } = self.prepared;
        let Prepared { frozen, later, committed, .. } = self.prepared;
        let minimum = setup.loaded.policy.confinement.minimum.value;
        let requested = self.request.mechanisms.enforcement;
        let mounted = [minimum, requested] == [Enforcement::Namespaces; 2];
        let found = note::Found {
            machine,
            dangling,
            repositories,
            unfinished,
            frozen,
            later,
            committed,
            mounted,
        };
        match note::keep(setup, &found, run, self.started) {
            Ok(note) => Some(note),
            Err(error) => {
                let place = setup.places.state_dir.display();
                notices.push(format!(
                    "cannot write {place}: {error}; if this run is killed, nothing searches for \
                     what it left"
                ));
                None
            }
        }
    }

    /// Reports what runs left that were killed.
    fn report_recovered(&self, monitor: &mut Monitor<'_, '_>) -> Vec<Tampering> {
        let found: Vec<_> = self.prepared.recovered.iter().flat_map(Recovered::told).collect();
        for tampering in found.iter().cloned() {
            let run = monitor.run.clone();
            monitor.emit(Event::Tampering { run, tampering });
        }
        found
    }

    /// Reports what was kept of what they left.
    fn recovered_files(&self, monitor: &mut Monitor<'_, '_>) -> Vec<KeptAside> {
        let kept = self.prepared.recovered.iter().filter_map(|it| it.kept.as_ref());
        let kept: Vec<_> = kept.map(KeptAside::new).collect();
        for kept in kept.iter().cloned() {
            monitor.emit(Event::KeptAside { run: monitor.run.clone(), kept });
        }
        kept
    }

    /// Compares the references of a linked worktree's repository.
    fn moved_references(&self, monitor: &mut Monitor<'_, '_>, found: &mut Found) -> Option<Moved> {
        let Prepared { machine, references, .. } = self.prepared;
        let worktree = machine.worktree.as_ref()?;
        let moved = references.as_ref()?.compare(worktree);
        for (name, before) in &moved.unknown {
            let undo = |before: &String| format!("git update-ref {name} {before}");
            let what = "was moved while the run went on".into();
            let look = before.as_ref().map(undo);
            let changed = Changed { path: name.clone(), what, look };
            let run = monitor.run.clone();
            monitor.emit(Event::Changed { run, changed: changed.clone() });
            found.changed.push(changed);
        }
        Some(moved)
    }

    fn record_end(
        &self,
        monitor: &Monitor<'_, '_>,
        suspects: &[Suspect],
        tampering: &[Tampering],
        notices: &mut Vec<String>,
    ) -> Result<(), Error> {
        let denied = |violation: &Violation| {
            let class = match violation.class {
                Class::Probe => "hidden",
                Class::Deny => "denied",
                Class::Stop => "stopped",
            };
            format!("{class}: {} {}", violation.operation.verb(), violation.path)
        };
        let commands = monitor
            .violations
            .iter()
            .filter_map(|violation| violation.reason.as_ref()?.instead.as_ref()?.proposed());
        let quiet = suspects.iter().filter_map(|one| one.allow.clone());
        let commands = commands.chain(quiet).map(|command| format!("{ALLOW_NOTE}{command}"));
        let mut allowed: Vec<_> = Vec::new();
        for command in commands {
            if allowed.len() < MOST_ALLOWED && !allowed.contains(&command) {
                allowed.push(command);
            }
        }
        let tampered = tampering.iter().map(|found| format!("{}: {}", found.what, found.path));
        let notes: Vec<_> =
            tampered.chain(monitor.violations.iter().map(denied)).take(100).collect();
        let verdict = if notes.is_empty() { Verdict::Allow } else { Verdict::Deny };
        let notes = notes.into_iter().chain(allowed).collect();
        let (run, command) = (monitor.run.as_str(), monitor.command.as_slice());
        let of = Recorded { run, command, available: monitor.available.as_ref() };
        self.record(&of, verdict, RUN_ENDED, notes, notices)
    }

    fn record(
        &self,
        of: &Recorded<'_>,
        verdict: Verdict,
        tool: &str,
        mut notes: Vec<String>,
        notices: &mut Vec<String>,
    ) -> Result<(), Error> {
        let Prepared { setup, plan, agent, .. } = self.prepared;
        notes.insert(0, format!("level {}", plan.level));
        if let Some(available) = of.available {
            let words = format!(
                "enforced by {}, attributed by {}",
                available.enforcement, available.attribution
            );
            notes.insert(1, words);
        }
        let command = of.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>();
        let record = Record {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            agent: agent.map_or("", |agent| agent.name).into(),
            session: of.run.into(),
            workspace: setup.context.workspace.to_string(),
            tool: tool.into(),
            actions: vec![model::Action::Run { command: command.join(" "), field: None }],
            verdict,
            rules: Vec::new(),
            config: setup.loaded.fingerprint.clone(),
            micros: 0,
            notes,
        };
        let Err(error) = audit::Log::at(setup.places.audit_dir()).append(&record) else {
            return Ok(());
        };
        let text = format!("cannot write the audit log: {error}");
        match setup.loaded.policy.audit.on_failure.value {
            OnAuditFailure::Deny => Err(Error::unavailable(text)),
            OnAuditFailure::Warn => {
                notices.push(text);
                Ok(())
            }
        }
    }

    /// The newest file of the audit log.
    fn log(&self) -> PathBuf {
        audit::Log::at(self.prepared.setup.places.audit_dir()).path()
    }

    /// Something that exists and that no run may reach: the audit log, and a port of this process.
    fn canary(&self) -> Result<HeldCanary, Error> {
        let log = self.log();
        let hidden = |log: &AbsPath| log.as_path().is_file() && !self.prepared.plan.shows(log);
        let pid = std::process::id();
        let (file, spare) = if AbsPath::lexical(&log).is_ok_and(|log| hidden(&log)) {
            (log, None)
        } else if pid > 9 {
            // A file of this process. The run has processes of its own, and not yet as many.
            (PathBuf::from(format!("/proc/{pid}/comm")), None)
        } else {
            let spare = tempfile::NamedTempFile::new_in("/tmp").map_err(Error::unavailable)?;
            (spare.path().to_path_buf(), Some(spare))
        };
        let file = AbsPath::lexical(&file).map_err(Error::unavailable)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Error::unavailable)?;
        let port = listener.local_addr().map_err(Error::unavailable)?.port();
        Ok(HeldCanary { canary: Canary { file, port }, _listener: listener, _spare: spare })
    }
}

/// What is done while the sandbox is built.
#[derive(Default)]
struct Begun {
    done: bool,
    note: Option<note::HeldNote>,
    notices: Vec<String>,
    /// Why the command must not start.
    failed: Option<Error>,
}

/// Which run a record is about.
struct Recorded<'a> {
    run: &'a str,
    command: &'a [String],
    available: Option<&'a Available>,
}

struct HeldCanary {
    canary: Canary,
    _listener: TcpListener,
    _spare: Option<tempfile::NamedTempFile>,
}

/// What was found at the end of a run.
#[derive(Default)]
struct Found {
    tampering: Vec<Tampering>,
    changed: Vec<Changed>,
    build_files: Vec<BuildFileChange>,
    more_build_files: u64,
    kept: Vec<KeptAside>,
    /// Whether something has to be searched again.
    unfinished: bool,
}

impl Found {
    /// Leaves the note of a run that was not searched to the end.
    fn leave_unfinished(&self, note: &mut Option<note::HeldNote>) {
        if self.unfinished {
            note.take().into_iter().for_each(note::HeldNote::leave);
        }
    }
}

/// What the private caches of a workspace may take, unless configured.
const CACHES: ByteSize = ByteSize(10 << 30);
/// The name under which the end of a run is in the audit log.
pub const RUN_ENDED: &str = "run ended";
/// What a note begins with that holds the command which would have allowed something.
pub const ALLOW_NOTE: &str = "allow: ";
/// How many such notes there are at most.
const MOST_ALLOWED: usize = 50;

/// Replaced files that are reported.
const MOST_CHANGED: usize = 50;

/// Keeps what a file was before it was replaced. Returns the command that shows the difference.
fn keep_old(place: &Path, name: &str, text: &[u8], path: &str) -> Option<String> {
    std::fs::create_dir_all(place).ok()?;
    let old = place.join(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&old).ok()?;
    file.write_all(text).ok()?;
    Some(format!("diff {} {}", printed_word(&old.display().to_string()), printed_word(path)))
}

/// A limit that ended the run, and those that the kernel enforced while it went on.
fn report_limits(monitor: &mut Monitor<'_, '_>, outcome: &Outcome) {
    let ended = match outcome.end {
        End::Limit(limit) => Some(limit),
        _ => None,
    };
    for limit in outcome.reached.iter().copied().chain(ended) {
        let run = monitor.run.clone();
        monitor.emit(Event::Limit { run, limit: limit.into() });
    }
}

/// Whether a writable piece is on a file system that may create names in ways that no call shows.
fn is_of_unknown_kind(piece: &model::Piece) -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAY: u64 = 0x794c_7630;
    let kind = || rustix::fs::statfs(piece.path.as_path()).ok()?.f_type.try_into().ok();
    let known = |kind: u64| [EXT4, XFS, TMPFS, OVERLAY].contains(&kind);
    piece.kind == model::Kind::Write && !kind().is_some_and(known)
}

fn run_id() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", since.as_micros(), std::process::id())
}
