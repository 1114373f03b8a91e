//! The one way from a call to its decision, for the live hook, `explain` and the tests.

use model::{Action, Decision, Event, EventKind};
use policy::Scene;

use crate::setup::{Setup, settings_files};

/// A decision and the actions it is about.
pub(crate) struct Judged {
    pub(crate) actions: Vec<Action>,
    pub(crate) decision: Decision,
}

/// Judges one event. Asks the machine once, between lowering and evaluation.
pub(crate) fn judge(setup: &Setup, event: &Event) -> Judged {
    let actions = lower(setup, event);
    let queries = policy::needs(&setup.loaded.policy, &setup.ground, &actions);
    let facts = facts::answer(&queries);
    let decision = policy::evaluate(&setup.loaded.policy, &setup.ground, &actions, &facts);
    let decision = agents::degrade(setup.agent, event, decision);
    Judged { actions, decision }
}

fn lower(setup: &Setup, event: &Event) -> Vec<Action> {
    match &event.kind {
        EventKind::BeforeTool(call) => {
            let workspace = setup.ground.workspace.as_path();
            let cwd = match &event.cwd {
                Some(cwd) if cwd.is_absolute() => cwd.clone(),
                _ => workspace.to_path_buf(),
            };
            let scene = Scene { cwd, home: setup.ground.home.clone() };
            policy::lower(setup.agent.tools, call, &scene)
        }
        // A change that passes makes the agent read all of its settings again, also those whose
        // change was refused before. So all of them are judged every time.
        EventKind::SettingsChanged(changed) => {
            let known =
                settings_files(setup.agent, &setup.places, setup.ground.workspace.as_path());
            let changed = changed.iter().filter(|path| !known.contains(path)).cloned();
            let paths = known.iter().cloned().chain(changed);
            paths.map(|path| Action::ChangeSettings { path }).collect()
        }
        EventKind::Other(name) => vec![Action::NoEffect { tool: name.clone() }],
    }
}
