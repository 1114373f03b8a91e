//! Actions and facts become a [`Decision`].

mod commands;
mod message;
mod paths;
mod settings;

pub use message::grant as remedy;
use model::{Action, Decision, Facts, Opaque, Origin, Reason, Redirect, Verdict};

use crate::shell::Scene;
use crate::{Context, Policy};

/// Judges all actions of one call. Total: whatever cannot be judged is refused.
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
        reasons.push(Reason {
            verdict: Verdict::Deny,
            rule: "workspace".into(),
            origin: Origin::BuiltIn,
            text: problem.clone(),
            instead: Some("start the agent in a project directory".into()),
        });
    }
    let opaque = actions.iter().filter_map(|action| match action {
        Action::Opaque { part, why } => Some(Opaque { part: part.clone(), why: why.clone() }),
        _ => None,
    });
    let opaque = opaque.collect();
    let redirect = commands::redirect(policy, scene, actions, facts, &mut reasons);
    let redirect = redirect.map(|value| Redirect { field: "command".into(), value });
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
        Action::Run { .. } => allow("command", "each command of it is judged by itself"),
        Action::NoEffect { tool } => {
            allow("no-effect", &format!("`{tool}` reaches nothing that the policy governs"))
        }
        Action::LeaveSandbox { field } => Reason {
            verdict: Verdict::Deny,
            rule: "sandbox-switch".into(),
            origin: Origin::BuiltIn,
            text: format!(
                "`{field}` would take the agent out of its sandbox, which no call may do"
            ),
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

/// Fetches by the agent itself: refused where a rule denies the host, or where it cannot be told
/// which host is meant. What may be reached at all is held by the network wall of a run.
fn connect(policy: &Policy, target: &str) -> Reason {
    let rules = &policy.network.denied_domains;
    let host = host_of(target);
    if !rules.is_empty() && !is_plain_host(&host) {
        return Reason {
            verdict: Verdict::Deny,
            rule: "network.denied_domains".into(),
            origin: Origin::BuiltIn,
            text: format!("which host `{target}` means cannot be told"),
            instead: Some("write the address plainly, such as https://example.org/".into()),
        };
    }
    match rules.iter().find(|rule| rule.value.matches_name(&host)) {
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

/// The host in a URL as browsers read it: blanks vanish, backslashes are slashes, any number of
/// slashes may follow the scheme.
fn host_of(target: &str) -> String {
    let target: String =
        target.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let lower = target.to_lowercase();
    let rest =
        lower.strip_prefix("https:").or_else(|| lower.strip_prefix("http:")).unwrap_or(&lower);
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    host.split(':').next().unwrap_or(host).to_owned()
}

fn is_plain_host(host: &str) -> bool {
    !host.is_empty()
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
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
