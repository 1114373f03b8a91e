//! [`Explainer`]: why a plan does not let something be read or written, and what would allow it.

use model::{AbsPath, Access, Cause, Level, Origin, Piece, Plan, Reason, Verdict};
use policy::protected::{protecting, shadows};
use policy::{Context, Policy};

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
const NO_GRANT: &str = "only the user can change it, outside the agent; no grant covers it";

impl Explainer<'_> {
    /// Why a path is denied. A final slash marks a directory that does not exist yet.
    pub fn explain(&self, access: Access, path: &AbsPath, new_directory: bool) -> Reason {
        if access == Access::Write
            && let Some(reason) = self.protected(path)
        {
            return reason;
        }
        self.denied_by_rule(access, path)
            .or_else(|| self.piece_allows_nothing(access, path))
            .or_else(|| self.holds_protected(access, path))
            .unwrap_or_else(|| self.not_granted(access, path, new_directory))
    }

    fn protected(&self, path: &AbsPath) -> Option<Reason> {
        if self.context.own_files.iter().any(|own| path.is_within(own)) {
            let instead = "only the user can change it, outside the agent";
            return Some(deny("protected", Origin::BuiltIn, "it belongs to Ringwall", instead));
        }
        let name = protecting(path)?;
        let why = format!("`{}` is a protected name: {}", name.path.join("/"), name.why);
        Some(deny("protected", Origin::BuiltIn, &why, NO_GRANT))
    }

    fn denied_by_rule(&self, access: Access, path: &AbsPath) -> Option<Reason> {
        let hidden = self.protections.hidden_by(path).map(|rule| ("filesystem.deny_read", rule));
        let frozen = || self.protections.read_only_by(path);
        let frozen = (access == Access::Write).then(frozen).flatten();
        let frozen = frozen.map(|rule| ("filesystem.deny_write", rule));
        let (key, rule) = hidden.or(frozen)?;
        let why = format!("the rule `{}` denies it", rule.value.text());
        let instead = format!("remove that entry ({}) to allow it", rule.origin);
        Some(deny(key, rule.origin.clone(), &why, &instead))
    }

    /// Inside what the plan shows, the cause of the innermost piece decides.
    fn piece_allows_nothing(&self, access: Access, path: &AbsPath) -> Option<Reason> {
        if self.plan.allows(path, access == Access::Write) {
            return None;
        }
        let why = match self.plan.piece(path).map(|Piece { why, .. }| why)? {
            Cause::OtherCheckout => "it belongs to another checkout of the repository",
            Cause::Protected => "it is what a protected name leads to",
            _ => return None,
        };
        Some(deny("protected", Origin::BuiltIn, why, NO_GRANT))
    }

    /// The path can be written, and is denied all the same: moving it would move a protected name.
    fn holds_protected(&self, access: Access, path: &AbsPath) -> Option<Reason> {
        let inside = path.is_within(&self.context.workspace);
        if !inside || !self.plan.allows(path, access == Access::Write) {
            return None;
        }
        let why = match shadows(path) {
            Some(name) => format!("it contains the protected name `{}`", name.path.join("/")),
            None => "it contains a protected name".into(),
        };
        Some(deny("protected", Origin::BuiltIn, &why, NO_GRANT))
    }

    fn not_granted(&self, access: Access, path: &AbsPath, new_directory: bool) -> Reason {
        let level = &self.policy.level;
        let entry = if new_directory { path.as_path().join("") } else { path.as_path().into() };
        let instead = policy::remedy(self.context, access, &entry);
        let within = path.is_within(&self.context.workspace);
        if level.value == Level::Full {
            let why = format!("level `{}` allows only the user's own files", level.value);
            return deny("level", level.origin.clone(), &why, &instead);
        }
        if within {
            let why = format!("level `{}` does not allow writing", level.value);
            return deny("level", level.origin.clone(), &why, &instead);
        }
        let why = format!("outside the workspace {}", self.context.workspace);
        deny("workspace", Origin::BuiltIn, &why, &instead)
    }
}

fn deny(rule: &str, origin: Origin, why: &str, instead: &str) -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: rule.into(),
        origin,
        text: why.into(),
        instead: Some(instead.into()),
    }
}
