//! `ringwall explain`: what the hook would decide, what the sandbox would do, and why.

mod sandbox;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use model::{Action, Decision, Event, EventKind, Mode, Reason, Rule, ToolCall, Verdict};
use serde_json::{Map, Value, json};

use self::sandbox::Sandbox;
use super::{describe, setup_failed};
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::pipeline::{self, Judged};
use crate::setup::Setup;
use crate::terminal::{self, Paint};

pub(super) fn run(args: ExplainArgs) -> Result<ExitCode, Failure> {
    let agent = agents::find(&args.agent)
        .ok_or_else(|| Failure::usage(format!("unknown agent `{}`", args.agent)))?;
    let event = event(&args, agent)?;
    let mut setup =
        Setup::prepare(agent, &args.common.clone().into(), &event.session).map_err(setup_failed)?;
    crate::installs::look_up(&mut setup);
    let judged = pipeline::judge(&setup, &event);
    let sandbox = sandbox::look(&args, &judged.actions);
    let shown = if args.json {
        let mut shown = as_json(&judged.decision);
        if let Some(object) = shown.as_object_mut() {
            object.insert("sandbox".into(), sandbox.as_json());
        }
        format!("{shown}\n")
    } else {
        as_text(&setup, &event, &judged, &sandbox)
    };
    terminal::print(&shown);
    Ok(ExitCode::SUCCESS)
}

fn event(args: &ExplainArgs, agent: &agents::Agent) -> Result<Event, Failure> {
    if args.command.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err(Failure::usage("no command and no call to explain")
                .hint("pass a command: `ringwall explain -- git status`"));
        }
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(Failure::new)?;
        return (agent.decode)(&bytes).map_err(|error| {
            Failure::usage(error).hint(
                r#"a call looks like {"tool_name":"Read","tool_input":{"file_path":"/etc/hosts"}}"#,
            )
        });
    }
    let shell = agent.tools.iter().find_map(|tool| match tool.effects {
        [model::Effect::Command { field, .. }] => Some((tool, *field)),
        _ => None,
    });
    let (shell, field) = shell.ok_or_else(|| {
        Failure::usage("this agent has no shell tool, so pass a call as JSON on stdin")
    })?;
    let input = Map::from_iter([(field.to_owned(), json!(args.command.join(" ")))]);
    Ok(Event {
        session: String::new(),
        cwd: std::env::current_dir().ok(),
        mode: Mode::Asks,
        kind: EventKind::BeforeTool(ToolCall { tool: shell.name.into(), input }),
    })
}

fn as_json(decision: &Decision) -> Value {
    let because: Vec<_> = decision
        .reasons()
        .iter()
        .map(|reason| {
            json!({
                "rule": reason.rule,
                "verdict": reason.verdict,
                "file": reason.origin.file(),
                "line": reason.origin.line(),
                "text": reason.text,
                "instead": reason.instead,
            })
        })
        .collect();
    json!({
        "verdict": decision.verdict(),
        "redirect": decision.redirect().map(|redirect| &redirect.value),
        "because": because,
        "opaque": decision.opaque(),
    })
}

fn as_text(setup: &Setup, event: &Event, judged: &Judged, sandbox: &Sandbox) -> String {
    let decision = &judged.decision;
    let mut rows = vec![vec!["workspace".to_owned(), setup.context.workspace.to_string()]];
    if let EventKind::BeforeTool(call) = &event.kind {
        rows.push(vec!["tool".into(), call.tool.clone()]);
    }
    for action in &judged.actions {
        if let Action::Run { command, .. } = action {
            rows.extend(commands(command, &pipeline::scene(setup, event)));
        }
        rows.push(vec!["action".into(), terminal::plain(&describe(action))]);
    }
    let colour = match decision.verdict() {
        Verdict::Allow => Paint::Green,
        Verdict::Ask => Paint::Yellow,
        Verdict::Deny => Paint::Red,
    };
    rows.push(vec!["verdict".into(), terminal::paint(&decision.verdict().to_string(), colour)]);
    // Where something is denied, the reasons that allow the rest are noise.
    let refused = decision.verdict() > Verdict::Allow;
    let speaks = |reason: &&Reason| {
        !refused || reason.verdict > Verdict::Allow || reason.rule == Rule::QuarantineDir
    };
    for reason in decision.reasons().iter().filter(speaks) {
        rows.push(vec!["because".into(), terminal::plain(&because(reason))]);
        if let Some(instead) = &reason.instead {
            rows.push(vec!["instead".into(), terminal::plain(&instead.to_string())]);
        }
    }
    for opaque in decision.opaque() {
        rows.push(vec!["opaque".into(), format!("{}: {}", opaque.part, opaque.why)]);
    }
    if let Some(redirect) = decision.redirect() {
        rows.push(vec!["corrected".into(), redirect.value.clone()]);
    }
    for ignored in setup.loaded.untrusted() {
        let line = terminal::plain(&ignored.to_string());
        rows.push(vec!["untrusted".into(), format!("{line} (`ringwall policy check` shows more)")]);
    }
    rows.extend(sandbox.rows());
    terminal::table(&rows)
}

/// Each command as it was parsed, with its directory where that is not the current one.
fn commands(text: &str, scene: &policy::Scene) -> Vec<Vec<String>> {
    let row = |one: policy::Outline| {
        let place = match one.dir {
            Ok(dir) if dir == scene.cwd => String::new(),
            Ok(dir) => format!("  in {}", dir.display()),
            Err(why) => format!("  in an unknown directory: {why}"),
        };
        let place = terminal::paint(&place, Paint::Dim);
        vec!["command".to_owned(), terminal::plain(&one.words) + &place]
    };
    policy::outline(text, scene).into_iter().map(row).collect()
}

fn because(reason: &Reason) -> String {
    format!("{} [rule {}, {}]", reason.text, reason.rule, reason.origin)
}
