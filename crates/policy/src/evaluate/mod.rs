//! Actions and facts become a [`Decision`].

mod commands;
mod message;
mod paths;
mod settings;

pub use message::{grant as remedy, grant_unix as unix_remedy};
use model::{Action, Decision, Facts, Host, Opaque, Origin, Reason, Remedy, Rule};

use crate::shell::Scene;
use crate::{Context, Policy, network};

/// Judges all actions of one call. Total: whatever cannot be judged is denied.
///
/// `scene` is where shell text runs; a correction of it needs to read the text once more.
pub fn evaluate(
    policy: &Policy,
    context: &Context,
    scene: &Scene,
    actions: &[Action],
    facts: &Facts,
) -> Decision {
    let mut reasons = Vec::with_capacity(actions.len());
    for action in actions {
        reasons.push(judge(policy, context, action, facts));
    }
    if let Some(problem) = &context.unfit
        && actions.iter().any(|action| !matches!(action, Action::NoEffect { .. }))
    {
        let reason = Reason::deny(Rule::Workspace, Origin::BuiltIn, problem.as_str());
        reasons.push(reason.with(Remedy::advice("start the agent in a project directory")));
    }
    let opaque = actions.iter().filter_map(|action| match action {
        Action::Opaque { part, why } => Some(Opaque { part: part.clone(), why: why.clone() }),
        _ => None,
    });
    let opaque = opaque.collect();
    let redirect = commands::redirect(policy, scene, actions, facts, &mut reasons);
    Decision::new(reasons, opaque, redirect)
}

fn judge(policy: &Policy, context: &Context, action: &Action, facts: &Facts) -> Reason {
    match action {
        Action::Path { access, path, by: None } => {
            paths::judge(policy, context, *access, path, facts)
        }
        Action::Path { access, path, by: Some(_) } => {
            paths::judge_command(policy, context, *access, path, facts)
        }
        Action::Enter { path, by } => paths::judge_enter(policy, context, path, by, facts),
        Action::Place { path, .. } => paths::judge_place(policy, context, path, facts),
        Action::Fetch(fetch) => commands::judge_fetch(policy, context, fetch, facts),
        Action::RunFetched { part } => commands::run_fetched(part),
        Action::Opaque { part, why } => commands::opaque(policy, part, why),
        Action::ChangeSettings { path } => settings::judge(context, path, facts),
        Action::Connect { target } => connect(policy, target),
        Action::Run { .. } => allow(Rule::Command, "each command in it is judged separately"),
        Action::NoEffect { tool } => {
            allow(Rule::NoEffect, format!("`{tool}` does nothing that the policy covers"))
        }
        Action::LeaveSandbox { field } => {
            let text =
                format!("`{field}` would run the call outside the sandbox, which is never allowed");
            deny(Rule::SandboxSwitch, text).with(Remedy::Advice(format!(
                "repeat the call without `{field}`; if the sandbox blocks something the task \
                 needs, report it and continue with the rest"
            )))
        }
        Action::AskPerson { tool } => {
            let text = format!("`{tool}` waits for a person, and no one is there to answer");
            let advice = "use your best judgement, continue, and note the assumption you made";
            deny(Rule::InteractiveTool, text).with(Remedy::advice(advice))
        }
        Action::Invalid { field, problem } => {
            let text = format!("cannot judge the field `{field}`: {problem}");
            let advice = format!("repeat the call with a valid `{field}`");
            deny(Rule::MalformedCall, text).with(Remedy::Advice(advice))
        }
    }
}

/// Fetches by the agent itself: denied where a rule denies the host, or where the host cannot be
/// determined. The sandbox of a run enforces what can be reached at all.
fn connect(policy: &Policy, target: &str) -> Reason {
    let rules = &policy.network.denied_domains;
    let host = match Host::in_url(target) {
        Ok(host) => host,
        Err(_) if rules.is_empty() => {
            return allow(Rule::Network, format!("no rule denies `{target}`"));
        }
        Err(_) => {
            let text = format!("cannot determine the host in `{target}`");
            let advice = "write a plain URL such as https://example.org/";
            return deny(Rule::DeniedDomains, text).with(Remedy::advice(advice));
        }
    };
    match rules.iter().find(|rule| rule.value.names(&host)) {
        Some(rule) => network::denied(rule, &host.to_string()),
        None => allow(Rule::Network, format!("no rule denies `{host}`")),
    }
}

fn allow(rule: Rule, text: impl Into<String>) -> Reason {
    Reason::allow(rule, Origin::BuiltIn, text)
}

fn deny(rule: Rule, text: impl Into<String>) -> Reason {
    Reason::deny(rule, Origin::BuiltIn, text)
}

#[cfg(test)]
mod tests;
