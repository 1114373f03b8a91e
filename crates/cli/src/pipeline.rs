//! From a call to its decision: the same code for the hook, `explain` and the tests.

use model::{Action, Decision, Event, EventKind, Verdict};
use policy::Scene;
use serde_json::Value;

use crate::setup::{Setup, settings_files};

/// A decision and the actions it is about.
pub(crate) struct Judged {
    pub(crate) actions: Vec<Action>,
    pub(crate) decision: Decision,
}

/// A corrected command is judged again, and may be corrected again at most this many times.
const MOST_PASSES: usize = 4;

/// Judges one event. Facts about the machine are looked up once per pass, between lowering and
/// evaluation.
///
/// A corrected command is judged like any other. If it is not allowed as a whole, the call is denied,
/// because half a correction can be worse than none.
pub(crate) fn judge(setup: &Setup, event: &Event) -> Judged {
    let Judged { actions, mut decision } = pass(setup, event);
    if decision.redirect().is_some() && decision.verdict() < Verdict::Deny {
        decision = judge_again(setup, event, decision);
    }
    let decision = agents::degrade(setup.agent, event, decision);
    Judged { actions, decision }
}

/// Judges a decision's corrected command, and every further correction of it.
fn judge_again(setup: &Setup, event: &Event, mut decision: Decision) -> Decision {
    let mut last = decision.clone();
    let mut again = event.clone();
    let mut value = None;
    for _ in 0..MOST_PASSES {
        let Some(redirect) = last.redirect().filter(|_| last.verdict() < Verdict::Deny) else {
            break;
        };
        value = Some(redirect.value.clone());
        let EventKind::BeforeTool(call) = &mut again.kind else { break };
        call.input.insert(redirect.field.clone(), Value::String(redirect.value.clone()));
        last = pass(setup, &again).decision;
    }
    let Some(value) = value else { return decision };
    for reason in last.reasons().iter().filter(|reason| reason.verdict > Verdict::Allow) {
        decision = decision.and(reason.clone());
    }
    if last.redirect().is_none() && decision.verdict() < Verdict::Deny {
        decision.redirected(value)
    } else {
        decision.corrected_by(&value)
    }
}

/// One pass over one text.
fn pass(setup: &Setup, event: &Event) -> Judged {
    let scene = scene(setup, event);
    let actions = lower(setup, event, &scene);
    let queries = policy::needs(&setup.loaded.policy, &setup.context, &actions);
    let facts = facts::answer_with(&mut setup.resolver.borrow_mut(), &queries);
    let decision = policy::evaluate(&setup.loaded.policy, &setup.context, &scene, &actions, &facts);
    Judged { actions, decision }
}

/// Where the shell text of an event would run.
pub(crate) fn scene(setup: &Setup, event: &Event) -> Scene {
    let workspace = &setup.context.workspace;
    let cwd = match &event.cwd {
        Some(cwd) if cwd.is_absolute() => cwd.clone(),
        _ => workspace.as_path().to_path_buf(),
    };
    let quarantine = setup.loaded.policy.quarantine.dir.as_ref();
    Scene {
        cwd,
        home: setup.context.home.clone(),
        top: Some(workspace.clone()),
        quarantine: quarantine.and_then(|dir| dir.value.prefix(workspace)),
    }
}

fn lower(setup: &Setup, event: &Event, scene: &Scene) -> Vec<Action> {
    match &event.kind {
        EventKind::BeforeTool(call) => policy::lower(setup.agent.tools, call, scene),
        // After an allowed change the agent reads all of its settings again, including those whose
        // change was denied before. So all of them are judged every time.
        EventKind::SettingsChanged(changed) => {
            let known =
                settings_files(setup.agent, &setup.places, setup.context.workspace.as_path());
            let changed = changed.iter().filter(|path| !known.contains(path)).cloned();
            let paths = known.iter().cloned().chain(changed);
            paths.map(|path| Action::ChangeSettings { path }).collect()
        }
        EventKind::Started(name) | EventKind::Other(name) => {
            vec![Action::NoEffect { tool: name.clone() }]
        }
    }
}
