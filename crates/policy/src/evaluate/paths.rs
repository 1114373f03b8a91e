//! Paths: deny rules apply to every reading of a path; what allows it must cover its real target.

use std::path::Path;

use model::{
    AbsPath, Access, Facts, Level, Origin, PathRef, Reason, Remedy, Rule, Sourced, Unresolvable,
    Verdict,
};

use super::message;
use crate::needs::readings;
use crate::pattern::Case;
use crate::protected::{protecting, secret, shadows};
use crate::{Context, PathRule, Policy};

/// A path of a tool.
pub(super) fn judge(
    policy: &Policy,
    context: &Context,
    access: Access,
    path: &PathRef,
    facts: &Facts,
) -> Reason {
    let judge = Judge { policy, context, access, path, facts };
    judge.every(|reading| judge.reading(reading))
}

/// A path in a command. Commands may use temporary files. Reads are denied only for secrets and by
/// deny rules, because the sandbox enforces what programs read.
pub(super) fn judge_command(
    policy: &Policy,
    context: &Context,
    access: Access,
    path: &PathRef,
    facts: &Facts,
) -> Reason {
    let judge = Judge { policy, context, access, path, facts };
    judge.every(|reading| match access {
        _ if judge.is_yet_to_come(reading) => judge.allow(Rule::Path, &Origin::BuiltIn),
        Access::Write if judge.is_scratch(reading) => judge.allow(Rule::Scratch, &Origin::BuiltIn),
        Access::Write => judge.reading(reading),
        Access::Read => judge.command_read(reading),
    })
}

/// A directory that a command works in.
pub(super) fn judge_enter(
    policy: &Policy,
    context: &Context,
    path: &PathRef,
    by: &str,
    facts: &Facts,
) -> Reason {
    let judge = Judge { policy, context, access: Access::Read, path, facts };
    for reading in readings(path) {
        if judge.is_yet_to_come(&reading) {
            continue;
        }
        if let Some(why) = judge.closed(&reading) {
            let tried = format!("`{by}` cannot work in {}", path.at.display());
            let stay = Remedy::advice(format!("stay in {}", context.workspace));
            let (rule, origin) = (Rule::Workspace, Origin::BuiltIn);
            return Reason::deny_because(rule, origin, &tried, why).with(stay);
        }
    }
    judge.allow(Rule::Workspace, &Origin::BuiltIn)
}

/// A whole tree that comes or goes: it must not be the directory of a protected name.
pub(super) fn judge_place(
    policy: &Policy,
    context: &Context,
    path: &PathRef,
    facts: &Facts,
) -> Reason {
    let judge = Judge { policy, context, access: Access::Write, path, facts };
    for reading in readings(path) {
        let literal = AbsPath::lexical(&reading).ok();
        let target = facts.resolved(&reading).ok();
        let name = literal.iter().chain(target).find_map(shadows);
        if let Some(name) = name {
            let text =
                format!("it contains the protected name `{}`: {}", name.path.join("/"), name.why);
            let instead =
                Some(Remedy::advice("only the user can move or remove it, outside the agent"));
            return judge.deny(Rule::Protected, &Origin::BuiltIn, &text, instead);
        }
    }
    judge.allow(Rule::Protected, &Origin::BuiltIn)
}

/// Directories of the system that commands may work in.
const SYSTEM: &[&str] = &[
    "/bin", "/dev", "/etc", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/sys", "/tmp", "/usr",
    "/var",
];
/// Directories for temporary files.
const SCRATCH: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"];

struct Judge<'a> {
    policy: &'a Policy,
    context: &'a Context,
    access: Access,
    path: &'a PathRef,
    facts: &'a Facts,
}

impl Judge<'_> {
    /// Judges every way of reading the path; the first denial decides.
    fn every(&self, judge: impl Fn(&Path) -> Reason) -> Reason {
        let mut allowed = None;
        for reading in readings(self.path) {
            match judge(&reading) {
                denied @ Reason { verdict: Verdict::Ask | Verdict::Deny, .. } => return denied,
                reason => allowed = Some(reason),
            }
        }
        // There is always one reading; were there none, nothing would have been judged.
        allowed
            .unwrap_or_else(|| self.deny(Rule::Path, &Origin::BuiltIn, "it cannot be read", None))
    }

    /// Whether a path climbs out of a directory that the text itself may make before. Links that it
    /// makes are followed, so the directory will be one, and the path's text is judged anyway.
    fn is_yet_to_come(&self, reading: &Path) -> bool {
        matches!(self.facts.resolved(reading), Err(Unresolvable::ClimbsFromMissing))
    }

    /// Whether a path is among temporary files, and neither protected nor the user's own.
    fn is_scratch(&self, reading: &Path) -> bool {
        let Ok(target) = self.facts.resolved(reading) else { return false };
        let Ok(literal) = AbsPath::lexical(reading) else { return false };
        self.is_neutral(target, SCRATCH)
            && protecting(&literal).is_none()
            && protecting(target).is_none()
            && !self.is_own(target)
            && self.denied(&literal, target).is_none()
    }

    fn is_neutral(&self, target: &AbsPath, places: &[&str]) -> bool {
        let ours = |dir: &AbsPath| target.is_within(dir);
        places.iter().any(|place| target.as_path().starts_with(place))
            && !ours(&self.context.home)
            && !ours(&self.context.workspace)
            && !self.context.closed.iter().any(ours)
    }

    /// Why no command may work in a directory.
    fn closed(&self, reading: &Path) -> Option<String> {
        let target = match self.facts.resolved(reading) {
            Ok(target) => target,
            Err(error) => return Some(format!("it cannot be resolved: {error}")),
        };
        if target.is_within(&self.context.workspace) {
            return None;
        }
        if self.context.closed.iter().any(|closed| target.is_within(closed)) {
            return Some("it belongs to another checkout of this repository".into());
        }
        let granted = matches!(self.context(target).verdict, Verdict::Allow);
        if granted || self.is_neutral(target, SYSTEM) {
            return None;
        }
        Some(format!("outside the workspace {}", self.context.workspace))
    }

    /// A read by a command: denied for secrets and by deny rules.
    fn command_read(&self, reading: &Path) -> Reason {
        let (Ok(literal), Ok(target)) = (AbsPath::lexical(reading), self.facts.resolved(reading))
        else {
            // What cannot be resolved cannot be opened either.
            return self.allow(Rule::Read, &Origin::BuiltIn);
        };
        if let Some(denied) = self.denied(&literal, target) {
            return denied;
        }
        let inside = target.is_within(&self.context.workspace);
        let secret =
            [&literal, target].into_iter().find_map(|path| secret(path, &self.context.home));
        match secret {
            Some(what) if !inside && !matches!(self.context(target).verdict, Verdict::Allow) => {
                let text = format!("it holds {what}");
                let instead = Some(message::grant(self.context, Access::Read, target.as_path()));
                self.deny(Rule::Secrets, &Origin::BuiltIn, &text, instead)
            }
            _ => self.allow(Rule::Read, &Origin::BuiltIn),
        }
    }

    /// One way of reading the path. Deny rules see its text and its target; only the target
    /// can be allowed.
    fn reading(&self, reading: &Path) -> Reason {
        let literal = match AbsPath::lexical(reading) {
            Ok(literal) => literal,
            Err(error) => {
                return self.deny(Rule::Path, &Origin::BuiltIn, &error.to_string(), None);
            }
        };
        let target = match self.facts.resolved(reading) {
            Ok(target) => target,
            Err(error) => {
                let text = format!("it cannot be resolved: {error}");
                return self.deny(Rule::Path, &Origin::BuiltIn, &text, None);
            }
        };
        if self.access == Access::Write
            && let Some(denied) = self.protected(&literal, target)
        {
            return denied;
        }
        if let Some(denied) = self.denied(&literal, target) {
            return denied;
        }
        self.context(target)
    }

    fn protected(&self, literal: &AbsPath, target: &AbsPath) -> Option<Reason> {
        let candidates = [literal, target];
        if candidates.iter().any(|path| self.is_own(path)) {
            let text = "it belongs to Ringwall itself";
            let instead = Some(Remedy::advice("only the user can change it, outside the agent"));
            return Some(self.deny(Rule::Protected, &Origin::BuiltIn, text, instead));
        }
        let name = candidates.iter().find_map(|path| protecting(path))?;
        let text = format!("the name `{}` is protected: {}", name.path.join("/"), name.why);
        let instead = "only the user can change it, outside the agent; no grant can allow it";
        Some(self.deny(Rule::Protected, &Origin::BuiltIn, &text, Some(Remedy::advice(instead))))
    }

    /// Whether a path is one of Ringwall's own files.
    fn is_own(&self, path: &AbsPath) -> bool {
        self.context.own_files.iter().any(|own| path.is_within(own))
    }

    fn denied(&self, literal: &AbsPath, target: &AbsPath) -> Option<Reason> {
        let files = &self.policy.filesystem;
        // What may not be read may not be written either: an edit shows what it changes.
        let hidden = files.deny_read.iter().map(|rule| (Rule::DenyRead, rule));
        let frozen = files.deny_write.iter().map(|rule| (Rule::DenyWrite, rule));
        let frozen = frozen.filter(|_| self.access == Access::Write);
        let (key, rule) = hidden.chain(frozen).find(|(_, rule)| {
            [literal, target].iter().any(|path| self.covers(&rule.value, path, Case::Fold))
        })?;
        let text = format!("it matches the rule `{}`", rule.value.text());
        let instead = Some(Remedy::RemoveEntry(rule.origin.clone()));
        Some(self.deny(key, &rule.origin, &text, instead))
    }

    /// Whether something allows this access to the target.
    fn context(&self, target: &AbsPath) -> Reason {
        let Self { policy, context, access, .. } = *self;
        let within = target.is_within(&context.workspace);
        if within && (access == Access::Read || policy.level.value >= Level::Readwrite) {
            return self.allow(Rule::Workspace, &Origin::BuiltIn);
        }
        let files = &policy.filesystem;
        let mut grants = vec![(Rule::AllowWrite, &files.allow_write)];
        if access == Access::Read {
            grants.push((Rule::AllowRead, &files.allow_read));
        }
        for (key, rules) in grants {
            if let Some(rule) = rules.iter().find(|rule| self.allows(rule, target)) {
                return self.allow(key, &rule.origin);
            }
        }
        // The agent's own places count as they are named: a link planted in them leads nowhere.
        let own = |rule: &&Sourced<PathRule>| {
            rule.value.covers(target, rule.value.prefix(&context.workspace).as_ref(), Case::Exact)
        };
        if access == Access::Read
            && let Some(rule) = context.agent_files.iter().find(own)
        {
            return self.allow(Rule::AgentFiles, &rule.origin);
        }
        if let Some(dir) = &policy.quarantine.dir
            && self.allows(dir, target)
        {
            return self.allow(Rule::QuarantineDir, &dir.origin);
        }
        if policy.level.value == Level::Full {
            return self.allow(Rule::Level, &policy.level.origin);
        }
        let instead = Some(message::grant(context, access, target.as_path()));
        if within {
            let text = format!("the level `{}` does not allow writing", policy.level.value);
            return self.deny(Rule::Level, &policy.level.origin, &text, instead);
        }
        let text = format!("outside the workspace {}", context.workspace);
        self.deny(Rule::Workspace, &Origin::BuiltIn, &text, instead)
    }

    /// Whether a grant covers a path. One that is written inside the workspace stays there: a
    /// repository can bring a link under any name.
    fn allows(&self, rule: &Sourced<PathRule>, target: &AbsPath) -> bool {
        let workspace = &self.context.workspace;
        let inside = |path: AbsPath| path.is_within(workspace);
        let stays =
            !rule.value.prefix(workspace).is_some_and(inside) || target.is_within(workspace);
        stays && self.covers(&rule.value, target, Case::Exact)
    }

    /// Whether a rule covers a path, with the rule's own prefix as written or as it resolves.
    /// An allow rule counts only where it resolves; a deny rule counts in both.
    fn covers(&self, rule: &PathRule, path: &AbsPath, case: Case) -> bool {
        let prefix = rule.prefix(&self.context.workspace);
        let resolved = prefix.as_ref().and_then(|path| self.facts.resolved(path.as_path()).ok());
        rule.covers(path, resolved, case)
            || (case == Case::Fold && rule.covers(path, prefix.as_ref(), case))
    }

    fn allow(&self, rule: Rule, origin: &Origin) -> Reason {
        let text = format!("{} {} is allowed", self.access.gerund(), self.path.at.display());
        Reason::allow(rule, origin.clone(), text)
    }

    fn deny(&self, rule: Rule, origin: &Origin, why: &str, instead: Option<Remedy>) -> Reason {
        let at = self.path.at.display();
        let leads = match self.facts.resolved(&self.path.at) {
            Ok(target) if Some(target) != AbsPath::lexical(&self.path.at).ok().as_ref() => {
                format!(", which leads to {target},")
            }
            _ => String::new(),
        };
        let tried = format!("{} {at}{leads} is denied", self.access.gerund());
        Reason { instead, ..Reason::deny_because(rule, origin.clone(), &tried, why) }
    }
}
