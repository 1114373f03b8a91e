//! `ringwall hook AGENT`: one call on stdin, one answer on stdout.
//!
//! Exits with 0 or 2 and nothing else. Whatever goes wrong ends as a block with a line on stderr,
//! because every agent runs the tool when its hook fails in any other way.

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

/// An answer later than this is no answer: the call is blocked. Clients wait far longer.
const DEADLINE: Duration = Duration::from_millis(900);
/// No honest call is larger.
const LARGEST_INPUT: u64 = 16 << 20;
/// The status with which clients block.
const BLOCK: u8 = 2;

/// What a failure ends with: blocking, until the configuration says otherwise.
static ON_ERROR: AtomicU8 = AtomicU8::new(BLOCK);

/// The way from `main` that skips the parser where the words are the usual ones.
pub(crate) fn from_command_line() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(2).collect();
    if let [agent] = words.as_slice()
        && let Some(agent) = agent.to_str().filter(|agent| agents::find(agent).is_some())
    {
        return run(agent, &Options::default());
    }
    match Args::try_parse() {
        Ok(Args { verb: Verb::Hook(args) }) => run(&args.agent, &args.common.into()),
        Ok(_) => block("the command line was not understood"),
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
        return block(&format!("there is no agent `{agent}`"));
    };
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut input) {
        return block(&format!("the call could not be read: {error}"));
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
                    "ringwall: this could not be recorded: {unrecorded}"
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
    let mut decision = decision;
    let mut notices = Vec::new();
    let notes = notes(&setup);
    match record(&setup, event, &actions, Some(&decision), notes.clone(), started) {
        Ok(repairs) => notices.extend(repairs),
        Err(error) => {
            let text = format!("this decision could not be recorded: {error}");
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
    } else if decision.redirect().is_some()
        && let Err(error) = redirected(&setup, &decision)
    {
        let text = format!("the quarantine cannot be made: {error}");
        decision = decision.and(Reason::deny(Rule::QuarantineDir, Origin::BuiltIn, text));
    }
    send((setup.agent.encode)(event, &decision, &notices).stdout)
}

/// A corrected call: the quarantine is there before it runs, and the user sees what moved.
fn redirected(setup: &Setup, decision: &Decision) -> std::io::Result<()> {
    if let Some(dir) = &setup.loaded.policy.quarantine.dir
        && let Some(path) = dir.value.prefix(&setup.context.workspace)
    {
        files::private_dir(path.as_path())?;
    }
    for moved in decision.redirect().into_iter().flat_map(|redirect| &redirect.moves) {
        terminal::error_line(&format!("[ringwall] {moved}"));
    }
    Ok(())
}

/// Refuses a call because nothing can be judged.
fn refuse(agent: &Agent, event: &Event, error: &SetupError) -> ExitCode {
    let reason = Reason::deny(Rule::Config, Origin::BuiltIn, error.to_string())
        .with(Remedy::advice("only the user can mend it; `ringwall policy check` says how"));
    terminal::error_line(&format!("ringwall: {error}"));
    send((agent.encode)(event, &Decision::single(reason), &[]).stdout)
}

/// What every record, and every refusal, has to say about the policy itself.
fn notes(setup: &Setup) -> Vec<String> {
    let mut notes = Vec::new();
    let mut untrusted = BTreeMap::new();
    for file in setup.loaded.untrusted().filter_map(|line| line.origin.file()) {
        *untrusted.entry(file).or_insert(0) += 1;
    }
    for (file, lines) in untrusted {
        notes.push(format!(
            "{lines} line(s) of {} would allow more and are not trusted; `ringwall policy check` \
             shows them",
            terminal::plain(&file.display().to_string())
        ));
    }
    let variables = setup.loaded.warnings.iter().filter(|w| w.origin.file().is_none());
    notes.extend(variables.map(|warning| terminal::plain(&warning.to_string())));
    if setup.loaded.policy.guard.on_error.value == OnError::Allow {
        notes.push("guard.on_error is \"allow\": calls run when judging them fails".into());
    }
    notes
}

/// Appends to the audit log. `Ok` holds what was repaired on the way.
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

/// Reads by commands are many and mostly harmless; the command itself is kept, and the rule that
/// refused one.
fn worth_keeping(action: &Action) -> bool {
    !matches!(action, Action::Path { access: Access::Read, by: Some(_), .. } | Action::Place { .. })
}

/// Writes the answer in one piece; half an answer would count as none.
fn send(answer: Vec<u8>) -> ExitCode {
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return block(&format!("the answer could not be written: {error}")),
        }
    }
    ExitCode::SUCCESS
}

fn block(why: &str) -> ExitCode {
    ExitCode::from(blocked(why))
}

/// Says why, and gives the status that blocks, or lets pass where the user wants that.
fn blocked(why: &str) -> u8 {
    let code = ON_ERROR.load(Ordering::Relaxed);
    let outcome = if code == BLOCK { "blocked" } else { "let through (guard.on_error)" };
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
        std::process::exit(i32::from(blocked("no decision in time")));
    });
    if let Err(error) = watch {
        std::process::exit(i32::from(blocked(&format!("no watchdog could be started: {error}"))));
    }
}

/// Tests of debug builds that start hundreds of hooks at once on a busy machine are patient.
fn deadline() -> Duration {
    let patient =
        cfg!(debug_assertions) && std::env::var("RINGWALL_FAULT").as_deref() == Ok("patient");
    if patient { DEADLINE * 30 } else { DEADLINE }
}

/// Lets tests of debug builds see what a panic and a stall end as.
fn inject_fault() {
    #[cfg(debug_assertions)]
    match std::env::var("RINGWALL_FAULT").as_deref() {
        #[expect(clippy::panic, reason = "this is the fault to inject")]
        Ok("panic") => panic!("injected"),
        Ok("stall") => std::thread::sleep(DEADLINE * 100),
        _ => {}
    }
}
