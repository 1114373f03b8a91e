//! [`Explainer`]: why a plan does not allow a path to be read or written, and what would allow it.

use model::{AbsPath, Access, Cause, Level, Origin, Plan, Reason, Remedy, Rule, Sourced};
use policy::protected::{protecting, shadows};
use policy::{Context, PathRule, Policy};

use crate::Protections;

/// Answers for one plan. It uses the plan and the rules that the plan was made from, so an answer
/// cannot contradict what the sandbox does.
pub struct Explainer<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The policy that it was made from.
    pub policy: &'a Policy,
    /// The places that the policy was applied to.
    pub context: &'a Context,
    /// The names that the plan protects, also where nothing exists yet.
    pub protections: &'a Protections<'a>,
}

/// What a user can do about something that no grant covers.
const NO_GRANT: &str = "only the user can change it, outside the agent; no grant can allow it";

impl Explainer<'_> {
    /// Why a path is denied. `new_directory` says that the attempt was to create a directory.
    pub fn explain(&self, access: Access, path: &AbsPath, new_directory: bool) -> Reason {
        let tried = format!("{} {path} is denied", access.gerund());
        let deny = |rule: Rule, origin: Origin, cause: String, remedy: Remedy| {
            Reason::deny_because(rule, origin, &tried, cause).with(remedy)
        };
        if let Some((cause, advice)) = self.protected(access, path) {
            return deny(Rule::Protected, Origin::BuiltIn, cause, Remedy::advice(advice));
        }
        if let Some((rule, entry)) = self.denied_by(access, path) {
            let cause = format!("the rule `{}` denies it", entry.value.text());
            let origin = entry.origin.clone();
            return deny(rule, origin.clone(), cause, Remedy::RemoveEntry(origin));
        }
        if let Some(cause) = self.kept(access, path) {
            return deny(Rule::Protected, Origin::BuiltIn, cause, Remedy::advice(NO_GRANT));
        }
        let (rule, origin, cause) = self.not_granted(path);
        let entry = if new_directory { path.as_path().join("") } else { path.as_path().into() };
        deny(rule, origin, cause, policy::remedy(self.context, access, &entry))
    }

    /// Why a socket cannot be connected to.
    pub fn connection(&self, path: &AbsPath) -> Reason {
        let tried = format!("connecting to {path} is denied");
        let deny = |rule: Rule, origin: Origin, cause: String, remedy: Remedy| {
            Reason::deny_because(rule, origin, &tried, cause).with(remedy)
        };
        if let Some((rule, entry)) = self.denied_by(Access::Read, path) {
            let cause = format!("the rule `{}` denies it", entry.value.text());
            let origin = entry.origin.clone();
            return deny(rule, origin.clone(), cause, Remedy::RemoveEntry(origin));
        }
        let cause = Cause::HostSocket.to_string();
        let remedy = match policy::gives_away(path.as_path()) {
            Some(what) => Remedy::advice(format!(
                "{what}; only the user can decide to allow it, with network.allow_unix"
            )),
            None => policy::unix_remedy(self.context, path),
        };
        deny(Rule::AllowUnix, Origin::BuiltIn, cause, remedy)
    }

    /// A protected name or a file of Ringwall, wherever it is.
    fn protected(&self, access: Access, path: &AbsPath) -> Option<(String, &'static str)> {
        if access == Access::Read {
            return None;
        }
        if self.context.own_files.iter().any(|own| path.is_within(own)) {
            let advice = "only the user can change it, outside the agent";
            return Some(("it belongs to Ringwall".into(), advice));
        }
        let name = protecting(path)?;
        let shown = name.path.join("/");
        let cause =
            format!("`{}` is a protected name: {}", shown.trim_start_matches('*'), name.why);
        Some((cause, NO_GRANT))
    }

    /// The deny rule that covers a path. What may not be read may not be written either.
    fn denied_by(&self, access: Access, path: &AbsPath) -> Option<(Rule, &Sourced<PathRule>)> {
        let hidden = self.protections.hidden_by(path).map(|rule| (Rule::DenyRead, rule));
        let read_only = || self.protections.read_only_by(path).map(|rule| (Rule::DenyWrite, rule));
        hidden.or_else(|| (access == Access::Write).then(read_only).flatten())
    }

    /// Why the plan keeps a path as it is, whatever is granted.
    fn kept(&self, access: Access, path: &AbsPath) -> Option<String> {
        if !self.plan.allows(path, access == Access::Write) {
            return match self.plan.piece(path).map(|piece| &piece.why)? {
                Cause::OtherCheckout => {
                    Some("it belongs to another checkout of the repository".into())
                }
                Cause::HostSocket => Some("a program outside the sandbox serves it".into()),
                Cause::EventsFile => Some("the events of this run are written there".into()),
                Cause::Protected => {
                    Some("a protected name or the configuration of git leads to it".into())
                }
                _ => None,
            };
        }
        // References of other branches are beside the worktree's own, and outside the workspace.
        if matches!(self.plan.piece(path)?.why, Cause::Worktree(_)) {
            return None;
        }
        // The path can be written, so it is denied because moving it would move a protected name.
        Some(match shadows(path) {
            Some(name) => format!("it contains the protected name `{}`", name.path.join("/")),
            None => "it contains a protected name".into(),
        })
    }

    fn not_granted(&self, path: &AbsPath) -> (Rule, Origin, String) {
        let level = &self.policy.level;
        let origin = level.origin.clone();
        if level.value == Level::Full {
            (Rule::Level, origin, format!("level `{}` allows only your own files", level.value))
        } else if path.is_within(&self.context.workspace) {
            (Rule::Level, origin, format!("level `{}` does not allow writing", level.value))
        } else {
            let cause = format!("outside the workspace {}", self.context.workspace);
            (Rule::Workspace, Origin::BuiltIn, cause)
        }
    }
}

#[cfg(test)]
mod tests;
