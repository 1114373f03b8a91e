//! `ringwall hook AGENT`: one call on stdin, one answer on stdout.
//!
//! The exit status is always 0 or 2. Every failure blocks the call with a line on stderr, because
//! agents run the tool when their hook fails in any other way.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant, SystemTime};

use agents::Agent;
use clap::Parser;
use model::{
    Access, Action, Decision, Event, EventKind, Origin, Reason, Record, Remedy, Rule, Verdict,
};
use policy::{OnAuditFailure, OnError};

use crate::args::{Args, Verb};
use crate::files;
use crate::pipeline::{self, Judged};
use crate::setup::{Options, Setup, SetupError};
use crate::start;
use crate::terminal;

/// The call is blocked if there is no answer by then. Agents wait far longer.
const DEADLINE: Duration = Duration::from_millis(900);
/// Real calls are far smaller.
const LARGEST_INPUT: u64 = 16 << 20;
/// The exit status that makes agents block the call.
const BLOCK: u8 = 2;

/// The exit status of a failure: it blocks until the configuration has been read and allows otherwise.
static ON_ERROR: AtomicU8 = AtomicU8::new(BLOCK);

/// Runs the hook from `main`, without the parser where the arguments are the usual ones.
pub(crate) fn from_command_line() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(2).collect();
    if let [agent] = words.as_slice()
        && let Some(agent) = agent.to_str().filter(|agent| agents::find(agent).is_some())
    {
        return run(agent, &Options::default());
    }
    match Args::try_parse() {
        Ok(Args { verb: Verb::Hook(args) }) => run(&args.agent, &args.common.into()),
        Ok(_) => block("unknown arguments"),
        Err(error) if error.use_stderr() => block(error.render().to_string().trim_end()),
        Err(error) => {
            terminal::print(&error.render().to_string());
            ExitCode::SUCCESS
        }
    }
}

/// Answers one call.
pub(crate) fn run(agent: &str, options: &Options) -> ExitCode {
    let started = Instant::now();
    fail_closed_on_panic();
    fail_closed_on_deadline();
    let Some(agent) = agents::find(agent) else {
        return block(&format!("unknown agent `{agent}`"));
    };
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut input) {
        return block(&format!("cannot read the call: {error}"));
    }
    if input.len() as u64 > LARGEST_INPUT {
        return block("the call is larger than 16 MiB");
    }
    inject_fault();
    let decoded = (agent.decode)(&input);
    let session = decoded.as_ref().map_or("", |event| event.session.as_str());
    if matches!(&decoded, Ok(Event { kind: EventKind::Other(_), .. })) {
        return ExitCode::SUCCESS;
    }
    let setup = Setup::prepare(agent, options, session);
    if let Ok(setup) = &setup
        && setup.loaded.policy.guard.on_error.value == OnError::Allow
    {
        ON_ERROR.store(0, Ordering::Relaxed);
    }
    match (decoded, setup) {
        (Ok(Event { kind: EventKind::Started(name), .. }), Ok(setup)) => {
            start::pin_git(&setup);
            send((agent.tell)(&name, &start::rules(&setup)).stdout)
        }
        (Ok(event), Ok(setup)) => answer(&event, setup, started),
        (Ok(event), Err(error)) => refuse(agent, &event, &error),
        (Err(error), Ok(setup)) => {
            let notes = vec![error.to_string()];
            if let Err(unrecorded) = record(&setup, &Event::unknown(), &[], None, notes, started) {
                terminal::error_line(&format!(
                    "ringwall: cannot write to the audit log: {unrecorded}"
                ));
            }
            block(&error.to_string())
        }
        (Err(error), Err(_)) => block(&error.to_string()),
    }
}

fn answer(event: &Event, mut setup: Setup, started: Instant) -> ExitCode {
    if matches!(event.kind, EventKind::SettingsChanged(_)) {
        crate::installs::look_up(&mut setup);
    }
    let Judged { actions, decision } = pipeline::judge(&setup, event);
    let mut decision = with_quarantine(&setup, decision);
    let mut notices = Vec::new();
    let notes = notes(&setup);
    match record(&setup, event, &actions, Some(&decision), notes.clone(), started) {
        Ok(repairs) => notices.extend(repairs),
        Err(error) => {
            let text = format!("cannot write to the audit log: {error}");
            let rule = &setup.loaded.policy.audit.on_failure;
            if rule.value == OnAuditFailure::Deny {
                decision =
                    decision.and(Reason::deny(Rule::AuditOnFailure, rule.origin.clone(), text));
            } else {
                terminal::error_line(&format!("ringwall: {text}"));
                notices.push(text);
            }
        }
    }
    if decision.verdict() > Verdict::Allow {
        notices.extend(notes);
    } else if decision.redirect().is_some() {
        report_redirect(&decision);
    }
    send((setup.agent.encode)(event, &decision, &notices).stdout)
}

/// Creates the quarantine that a corrected call needs. Done before the decision is recorded, because
/// the call is denied if this fails.
fn with_quarantine(setup: &Setup, decision: Decision) -> Decision {
    if decision.verdict() > Verdict::Allow || decision.redirect().is_none() {
        return decision;
    }
    if let Some(dir) = &setup.loaded.policy.quarantine.dir
        && let Some(path) = dir.value.prefix(&setup.context.workspace)
        && let Err(error) = files::private_dir(path.as_path())
    {
        let text = format!("cannot create the quarantine directory {path}: {error}");
        return decision.and(Reason::deny(Rule::QuarantineDir, Origin::BuiltIn, text));
    }
    decision
}

/// Shows the user what a corrected call moves.
fn report_redirect(decision: &Decision) {
    for moved in decision.redirect().into_iter().flat_map(|redirect| &redirect.moves) {
        terminal::error_line(&format!("[ringwall] {moved}"));
    }
}

/// Denies a call because the configuration cannot be used.
fn refuse(agent: &Agent, event: &Event, error: &SetupError) -> ExitCode {
    let reason = Reason::deny(Rule::Config, Origin::BuiltIn, error.to_string())
        .with(Remedy::advice("only the user can fix this; `ringwall policy check` shows where"));
    terminal::error_line(&format!("ringwall: {error}"));
    send((agent.encode)(event, &Decision::single(reason), &[]).stdout)
}

/// What every record and every denial reports about the configuration itself.
fn notes(setup: &Setup) -> Vec<String> {
    let mut notes = Vec::new();
    let mut untrusted = BTreeMap::new();
    for file in setup.loaded.untrusted().filter_map(|line| line.origin.file()) {
        *untrusted.entry(file).or_insert(0) += 1;
    }
    for (file, lines) in untrusted {
        notes.push(format!(
            "{lines} line(s) of {} would allow more than your own configuration and are not \
             trusted; `ringwall policy check` shows them",
            terminal::plain(&file.display().to_string())
        ));
    }
    let variables = setup.loaded.warnings.iter().filter(|w| w.origin.file().is_none());
    notes.extend(variables.map(|warning| terminal::plain(&warning.to_string())));
    if setup.loaded.policy.guard.on_error.value == OnError::Allow {
        notes.push("guard.on_error is \"allow\": calls run even if checking them fails".into());
    }
    notes
}

/// Appends to the audit log. `Ok` holds what was repaired in the log.
fn record(
    setup: &Setup,
    event: &Event,
    actions: &[Action],
    decision: Option<&Decision>,
    notes: Vec<String>,
    started: Instant,
) -> Result<Vec<String>, String> {
    let tool = match &event.kind {
        EventKind::BeforeTool(call) => call.tool.clone(),
        EventKind::SettingsChanged(_) => "settings change".to_owned(),
        EventKind::Started(name) | EventKind::Other(name) => name.clone(),
    };
    let rules = decision.into_iter().flat_map(Decision::deciding);
    // Not every action is kept, so the log says in words what was not allowed.
    let stopped = decision.filter(|decision| decision.verdict() > Verdict::Allow);
    let why = stopped.into_iter().flat_map(Decision::deciding).map(|reason| reason.text.clone());
    let notes = why.chain(notes).collect();
    let record = Record {
        time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        agent: setup.agent.name.into(),
        session: event.session.clone(),
        workspace: setup.context.workspace.to_string(),
        tool,
        actions: actions.iter().filter(|action| worth_keeping(action)).cloned().collect(),
        verdict: decision.map_or(Verdict::Deny, Decision::verdict),
        rules: rules.map(|reason| format!("{} ({})", reason.rule, reason.origin)).collect(),
        config: setup.loaded.fingerprint.clone(),
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        notes,
    };
    let log = audit::Log::at(setup.places.audit_dir());
    log.append(&record).map(|appended| appended.notices).map_err(|error| error.to_string())
}

/// Commands read many files, and most of these reads are harmless. The record keeps the command
/// itself, and the rule that denied it.
fn worth_keeping(action: &Action) -> bool {
    !matches!(action, Action::Path { access: Access::Read, by: Some(_), .. } | Action::Place { .. })
}

/// Writes the whole answer. An agent ignores half an answer, so a failure blocks the call.
fn send(answer: Vec<u8>) -> ExitCode {
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return block(&format!("cannot write the answer: {error}")),
        }
    }
    ExitCode::SUCCESS
}

fn block(why: &str) -> ExitCode {
    ExitCode::from(blocked(why))
}

/// Prints why, and returns the exit status: blocking, or not where the user has set that.
fn blocked(why: &str) -> u8 {
    let code = ON_ERROR.load(Ordering::Relaxed);
    let outcome = if code == BLOCK { "blocked" } else { "allowed (guard.on_error)" };
    terminal::error_line(&format!("ringwall: the call is {outcome}: {why}"));
    code
}

fn fail_closed_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        std::process::exit(i32::from(blocked(&format!("internal error{place}"))));
    }));
}

fn fail_closed_on_deadline() {
    let watch = std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
        std::thread::sleep(deadline());
        std::process::exit(i32::from(blocked("no decision within the time limit")));
    });
    if let Err(error) = watch {
        std::process::exit(i32::from(blocked(&format!(
            "cannot start the watchdog thread: {error}"
        ))));
    }
}

/// Tests start hundreds of hooks at once on a busy machine, and wait longer.
fn deadline() -> Duration {
    let patient =
        cfg!(feature = "test-hooks") && std::env::var("RINGWALL_FAULT").as_deref() == Ok("patient");
    if patient { DEADLINE * 30 } else { DEADLINE }
}

/// Lets tests cause a panic or a stall.
fn inject_fault() {
    #[cfg(feature = "test-hooks")]
    match std::env::var("RINGWALL_FAULT").as_deref() {
        #[expect(clippy::panic, reason = "this is the fault to inject")]
        Ok("panic") => panic!("injected"),
        Ok("stall") => std::thread::sleep(DEADLINE * 100),
        _ => {}
    }
}
