//! Commands of a shell text: content from outside, what nobody can know, and the corrected text.

use std::path::Path;

use model::{AbsPath, Action, Edit, Facts, Fetch, Origin, Reason, Verdict};

use super::{allow, paths};
use crate::shell::{Move, Scene, follow};
use crate::{Context, Policy, QuarantineMode};

/// Content from outside: fine in quarantine, corrected or refused elsewhere.
pub(super) fn judge_fetch(
    policy: &Policy,
    context: &Context,
    fetch: &Fetch,
    facts: &Facts,
) -> Reason {
    let Some(dir) = &policy.quarantine.dir else {
        // Without a quarantine it is a write like any other.
        return paths::judge_command(policy, context, model::Access::Write, &fetch.to, facts);
    };
    if !leaves_quarantine(policy, fetch, facts) {
        return allow("quarantine.dir", &format!("`{}` lands in quarantine", fetch.by));
    }
    let mut reason = Reason {
        verdict: Verdict::Deny,
        rule: "quarantine.dir".into(),
        origin: dir.origin.clone(),
        text: format!(
            "`{}` would put content from outside at {}, which is not in quarantine",
            fetch.by,
            fetch.to.at.display()
        ),
        instead: fetch.instead.clone(),
    };
    if !fetch.edits.is_empty() && policy.quarantine.mode.value == QuarantineMode::Redirect {
        reason.verdict = Verdict::Allow;
        reason.text = format!(
            "redirected {} to quarantine: {} -> {}",
            fetch.by,
            fetch.to.at.display(),
            fetch.corrected.display()
        );
    } else if fetch.instead.is_none() {
        reason.instead = Some(format!("let it land at {}", fetch.corrected.display()));
    }
    reason
}

fn leaves_quarantine(policy: &Policy, fetch: &Fetch, facts: &Facts) -> bool {
    let dir = policy.quarantine.dir.as_ref().and_then(|dir| dir.value.prefix(&AbsPath::root()));
    let Some(dir) = dir else { return false };
    let within = |path: &AbsPath| {
        let resolved = facts.resolved(dir.as_path());
        path.is_within(&dir) || resolved.is_ok_and(|resolved| path.is_within(resolved))
    };
    !facts.resolved(&fetch.to.at).is_ok_and(within)
}

/// Running what nobody has seen.
pub(super) fn run_fetched(part: &str) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: "run-fetched".into(),
        origin: Origin::BuiltIn,
        text: format!("`{part}` runs content from outside that nobody has seen"),
        instead: Some("download it to quarantine, read it, and run it from there".into()),
    }
}

/// What nobody can know gets what the user decided for that.
pub(super) fn opaque(policy: &Policy, part: &str, why: &str) -> Reason {
    let rule = &policy.guard.on_unknown;
    Reason {
        verdict: rule.value,
        rule: "guard.on_unknown".into(),
        origin: rule.origin.clone(),
        text: format!("`{part}` cannot be judged: {why}"),
        instead: Some("write it with plain words and paths, one step at a time".into()),
    }
}

/// The corrected text, where fetches were redirected. What cannot be corrected whole is refused.
pub(super) fn redirect(
    policy: &Policy,
    scene: &Scene,
    actions: &[Action],
    facts: &Facts,
    reasons: &mut Vec<Reason>,
) -> Option<String> {
    policy.quarantine.dir.as_ref()?;
    let command = actions.iter().find_map(|action| match action {
        Action::Run { command } => Some(command),
        _ => None,
    })?;
    let fetches: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Fetch(fetch) => Some(&**fetch),
            _ => None,
        })
        .filter(|fetch| !fetch.edits.is_empty() && leaves_quarantine(policy, fetch, facts))
        .collect();
    if fetches.is_empty() {
        return None;
    }
    match corrected(command, scene, &fetches) {
        Ok(text) if policy.quarantine.mode.value == QuarantineMode::Block => {
            for reason in reasons.iter_mut().filter(|reason| reason.rule == "quarantine.dir") {
                reason.instead = Some(format!("run this instead: {text}"));
            }
            None
        }
        Ok(text) => Some(text),
        Err(why) => {
            reasons.push(Reason {
                verdict: Verdict::Deny,
                rule: "quarantine.dir".into(),
                origin: Origin::BuiltIn,
                text: format!("the command cannot be corrected: {why}"),
                instead: Some("split it up: fetch into quarantine first, then use it there".into()),
            });
            None
        }
    }
}

fn corrected(command: &str, scene: &Scene, fetches: &[&Fetch]) -> Result<String, String> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut moves: Vec<Move> = Vec::new();
    for fetch in fetches {
        edits.extend(fetch.edits.iter().cloned());
        let one = Move { from: fetch.to.at.clone(), to: fetch.corrected.clone(), at: fetch.at };
        if collides(&one, &moves, scene) {
            return Err(format!("two downloads would both become {}", one.to.display()));
        }
        if !moves.contains(&one) {
            moves.push(one);
        }
    }
    // A whole directory that everything was to land in does not move; only named things do.
    let quarantine = scene.quarantine.as_ref().map(|dir| dir.as_path().to_path_buf());
    moves.retain(|one| Some(&one.to) != quarantine.as_ref() && one.to != Path::new("/"));
    for edit in follow(command, scene, &moves)? {
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }
    Edit::apply(command, &edits).ok_or_else(|| "two corrections fall on the same words".to_owned())
}

/// Two different sources under one name. Everything may share the quarantine itself.
fn collides(one: &Move, others: &[Move], scene: &Scene) -> bool {
    let quarantine = scene.quarantine.as_ref().map(AbsPath::as_path);
    let whole = Some(one.to.as_path()) == quarantine;
    !whole && others.iter().any(|other| other.to == one.to && other.at != one.at)
}
