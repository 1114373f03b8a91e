//! Actions and facts become a [`Decision`].

mod message;
mod paths;
mod settings;

use model::{Action, Decision, Facts, Origin, Reason, Verdict};

use crate::{Ground, Policy};

/// Judges all actions of one call. Total: whatever cannot be judged is refused.
pub fn evaluate(policy: &Policy, ground: &Ground, actions: &[Action], facts: &Facts) -> Decision {
    let mut reasons = Vec::with_capacity(actions.len());
    for action in actions {
        reasons.push(judge(policy, ground, action, facts));
    }
    if let Some(problem) = &ground.unfit
        && actions.iter().any(|action| !matches!(action, Action::NoEffect { .. }))
    {
        reasons.push(Reason {
            verdict: Verdict::Deny,
            rule: "workspace".into(),
            origin: Origin::BuiltIn,
            text: problem.clone(),
            instead: Some("start the agent in a project directory".into()),
        });
    }
    Decision::new(reasons, Vec::new(), None)
}

fn judge(policy: &Policy, ground: &Ground, action: &Action, facts: &Facts) -> Reason {
    match action {
        Action::Path { access, path } => paths::judge(policy, ground, *access, path, facts),
        Action::ChangeSettings { path } => settings::judge(ground, path, facts),
        Action::Connect { target } => connect(policy, target),
        Action::Run { .. } => allow("command", "the shell's files and network are held by the OS"),
        Action::NoEffect { tool } => {
            allow("no-effect", &format!("`{tool}` reaches nothing that the policy governs"))
        }
        Action::LeaveSandbox { field } => Reason {
            verdict: Verdict::Deny,
            rule: "sandbox-switch".into(),
            origin: Origin::BuiltIn,
            text: format!("`{field}` asks to run outside the sandbox, which no call may do"),
            instead: Some(format!(
                "repeat the call without `{field}`; if the sandbox blocks something the task \
                 needs, say so and go on with the rest"
            )),
        },
        Action::AskPerson { tool } => Reason {
            verdict: Verdict::Deny,
            rule: "interactive-tool".into(),
            origin: Origin::BuiltIn,
            text: format!("`{tool}` waits for a person, and nobody is there to answer"),
            instead: Some(
                "use your best judgement, go on, and note the assumption you made".into(),
            ),
        },
        Action::Invalid { field, problem } => Reason {
            verdict: Verdict::Deny,
            rule: "malformed-call".into(),
            origin: Origin::BuiltIn,
            text: format!("the field `{field}` cannot be judged: {problem}"),
            instead: Some(format!("repeat the call with a usable `{field}`")),
        },
    }
}

/// Fetches by the agent itself: refused where a rule denies the host. What may be reached at all
/// is held by the network wall of a run.
fn connect(policy: &Policy, target: &str) -> Reason {
    let host = host_of(target);
    let denied = policy.network.denied_domains.iter().find(|rule| rule.value.matches_name(host));
    match denied {
        Some(rule) => Reason {
            verdict: Verdict::Deny,
            rule: "network.denied_domains".into(),
            origin: rule.origin.clone(),
            text: format!("connecting to `{host}` is refused by the rule `{}`", rule.value),
            instead: Some(format!("remove that entry ({}) to allow it", rule.origin)),
        },
        None => allow("network", &format!("no rule denies `{host}`")),
    }
}

/// The host in a URL, by its text.
fn host_of(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    host.split(':').next().unwrap_or(host)
}

fn allow(rule: &str, text: &str) -> Reason {
    Reason {
        verdict: Verdict::Allow,
        rule: rule.into(),
        origin: Origin::BuiltIn,
        text: text.into(),
        instead: None,
    }
}

#[cfg(test)]
mod tests;
