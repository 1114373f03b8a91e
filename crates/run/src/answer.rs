//! [`Answer`]: what the sandbox of a planned run would say to a read or a write, without running anything.
//!
//! In the order of `sandbox::monitor::rule`, and with the same plan, explanations and remedies.

use std::path::Path;

use model::{AbsPath, Access, Reason};
use plan::{Explainer, Protections, QuietList};
use sandbox::Operation;

use crate::host_permissions;
use crate::prepare::Prepared;
use crate::remedies::Remedies;

/// What becomes of a read or a write.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is allowed.
    Allowed,
    /// The path is hidden from the run, which goes on.
    Hidden,
    /// It fails as it does outside, and the run goes on.
    FailsAsOutside,
    /// It is a violation.
    Denied(Reason),
}

impl Prepared {
    /// What this run would say to a read or a write.
    pub fn answer(&self, access: Access, path: &Path) -> Answer {
        let Self { setup, plan, .. } = self;
        let resolved = setup.resolver.borrow_mut().resolve(path);
        let Ok(path) = resolved else { return Answer::FailsAsOutside };
        let (policy, context) = (&setup.loaded.policy, &setup.context);
        let protections = Protections::new(policy, context, |path| {
            setup.resolver.borrow_mut().resolve(path.as_path()).ok()
        });
        let write = access == Access::Write;
        let ruled = match access {
            Access::Write => protections.mark(&path).is_some(),
            Access::Read => protections.hidden_by(&path).is_some(),
        };
        if own_to_the_run(&path) || (plan.allows(&path, write) && !ruled) {
            return Answer::Allowed;
        }
        let exists = path.as_path().symlink_metadata().is_ok();
        let quiet = QuietList::new(policy, context);
        let habitual = if write { quiet.covers_write(&path) } else { quiet.covers(&path) };
        if habitual || (!write && !exists) {
            return Answer::Hidden;
        }
        let operation = match (access, exists) {
            (Access::Read, _) if path.as_path().is_dir() => Operation::List,
            (Access::Read, _) => Operation::Read,
            (Access::Write, true) => Operation::Write,
            (Access::Write, false) => Operation::Create,
        };
        let own = context.own_files.iter().any(|own| path.is_within(own));
        if !ruled
            && !own
            && !quiet.is_secret(&path)
            && host_permissions::refusal(operation, &path).is_some()
        {
            return Answer::FailsAsOutside;
        }
        let protections = &protections;
        let reason = Explainer { plan, policy, context, protections }.explain(access, &path, false);
        Answer::Denied(Remedies::new(self).improve(reason, operation))
    }
}

/// `/proc` and `/dev` belong to the run.
fn own_to_the_run(path: &AbsPath) -> bool {
    ["/proc", "/dev"].iter().any(|place| path.as_path().starts_with(place))
}
