//! Commands of a shell text: downloads, what cannot be known, and the corrected text.

use std::path::Path;

use model::{AbsPath, Action, Edit, Facts, Fetch, Moved, Origin, Reason, Redirect, Remedy, Rule};

use super::{allow, paths};
use crate::shell::{Move, Scene, follow};
use crate::{Context, Policy, QuarantineMode};

/// A download: allowed in quarantine, corrected or denied elsewhere.
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
        return allow(Rule::QuarantineDir, format!("`{}` writes to quarantine", fetch.by));
    }
    if !fetch.edits.is_empty() && policy.quarantine.mode.value == QuarantineMode::Redirect {
        let text = moved(fetch).to_string();
        return Reason {
            instead: fetch.instead.clone().map(Remedy::Advice),
            ..Reason::allow(Rule::QuarantineDir, dir.origin.clone(), text)
        };
    }
    let text = format!(
        "`{}` would write downloaded content to {}, which is not in quarantine",
        fetch.by,
        fetch.to.at.display()
    );
    let here = || format!("write it to {}", fetch.corrected.display());
    let advice = fetch.instead.clone().unwrap_or_else(here);
    Reason::deny(Rule::QuarantineDir, dir.origin.clone(), text).with(Remedy::Advice(advice))
}

fn moved(fetch: &Fetch) -> Moved {
    let (by, from, to) = (fetch.by.clone(), fetch.to.at.clone(), fetch.corrected.clone());
    Moved { by, from, to }
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

/// Running downloaded content that no one has reviewed.
pub(super) fn run_fetched(part: &str) -> Reason {
    let text = format!("`{part}` runs downloaded content that no one has reviewed");
    let advice = "download it to quarantine, read it, and run it from there";
    Reason::deny(Rule::RunFetched, Origin::BuiltIn, text).with(Remedy::advice(advice))
}

/// What cannot be known gets the verdict that the user chose for it.
pub(super) fn opaque(policy: &Policy, part: &str, why: &str) -> Reason {
    let rule = &policy.guard.on_unknown;
    let tried = format!("`{part}` cannot be judged");
    let advice = Remedy::advice("use literal words and paths, one step at a time");
    Reason {
        verdict: rule.value,
        ..Reason::deny_because(Rule::OnUnknown, rule.origin.clone(), &tried, why).with(advice)
    }
}

/// The corrected call, where fetches were redirected. What cannot be corrected as a whole is denied.
pub(super) fn redirect(
    policy: &Policy,
    scene: &Scene,
    actions: &[Action],
    facts: &Facts,
    reasons: &mut Vec<Reason>,
) -> Option<Redirect> {
    policy.quarantine.dir.as_ref()?;
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
    let (field, text) = match the_command(actions)
        .and_then(|(field, command)| Ok((field, corrected(command, scene, &fetches)?)))
    {
        Ok(corrected) => corrected,
        Err(why) => {
            let text = format!("the command cannot be corrected: {why}");
            let advice =
                "split the command: download to quarantine first, then use the download there";
            let reason = Reason::deny(Rule::QuarantineDir, Origin::BuiltIn, text);
            reasons.push(reason.with(Remedy::advice(advice)));
            return None;
        }
    };
    if policy.quarantine.mode.value == QuarantineMode::Block {
        for reason in reasons.iter_mut().filter(|reason| reason.rule == Rule::QuarantineDir) {
            reason.instead = Some(Remedy::Run(text.clone()));
        }
        return None;
    }
    let Some(field) = field else {
        let why = "the command cannot be corrected: it is nested inside another field of the call";
        let reason = Reason::deny(Rule::QuarantineDir, Origin::BuiltIn, why);
        reasons.push(reason.with(Remedy::Run(text)));
        return None;
    };
    let moves = fetches.into_iter().map(moved).collect();
    Some(Redirect { field: field.to_owned(), value: text, moves })
}

/// The one shell text of a call, and the field that holds it. The edits of a fetch say where in
/// the text they belong, but not in which text.
fn the_command(actions: &[Action]) -> Result<(Option<&str>, &str), String> {
    let mut commands = actions.iter().filter_map(|action| match action {
        Action::Run { command, field } => Some((field.as_deref(), command.as_str())),
        _ => None,
    });
    match (commands.next(), commands.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err("the call holds more than one command".into()),
        (None, _) => Err("the call holds no command".into()),
    }
}

fn corrected(command: &str, scene: &Scene, fetches: &[&Fetch]) -> Result<String, String> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut moves: Vec<Move> = Vec::new();
    for fetch in fetches {
        edits.extend(fetch.edits.iter().cloned());
        let one = Move { from: fetch.to.at.clone(), to: fetch.corrected.clone(), at: fetch.at };
        if collides(&one, &moves, scene) {
            return Err(format!("two downloads would both be written to {}", one.to.display()));
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
    Edit::apply(command, &edits).ok_or_else(|| "two corrections change the same words".to_owned())
}

/// Two different sources under one name. Everything may share the quarantine itself.
fn collides(one: &Move, others: &[Move], scene: &Scene) -> bool {
    let quarantine = scene.quarantine.as_ref().map(AbsPath::as_path);
    let whole = Some(one.to.as_path()) == quarantine;
    !whole && others.iter().any(|other| other.to == one.to && other.at != one.at)
}
