//! [`Protections`]: which entries of a tree the sandbox must hide or protect.

use std::ffi::OsStr;
use std::path::Path;

use model::{AbsPath, Sourced};

use policy::pattern::{Case, fold};
use policy::protected::{Cover, held_by, protecting_in, shadows_in};
use policy::{Acts, Context, PathRule, Policy, protected_names};

/// What the sandbox does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Must not be read.
    Hidden,
    /// Must not be written, nor anything below it.
    ReadOnly,
    /// Must not be renamed or replaced; entries in it are judged one by one.
    Pinned,
}

/// The protected names and the deny rules, prepared for checking many paths.
pub struct Protections<'a> {
    hidden: Vec<Denial<'a>>,
    read_only: Vec<Denial<'a>>,
    /// The last components of protected paths, sorted, to skip the many entries that are not
    /// protected; and the endings of those with wildcards.
    last_names: Vec<&'static str>,
    endings: Vec<&'static str>,
    workspace: AbsPath,
    home: AbsPath,
}

/// A rule, the literal prefix of its path, and where that prefix really leads.
struct Denial<'a> {
    rule: &'a Sourced<PathRule>,
    prefixes: Vec<Option<AbsPath>>,
}

impl<'a> Protections<'a> {
    /// Takes the rules from a policy. `leads` says where a path really leads.
    pub fn new(
        policy: &'a Policy,
        context: &Context,
        mut leads: impl FnMut(&AbsPath) -> Option<AbsPath>,
    ) -> Self {
        let mut denials = |rules: &'a [Sourced<PathRule>]| {
            let denial = |rule: &'a Sourced<PathRule>| {
                let prefix = rule.value.prefix(&context.workspace);
                let real = prefix.as_ref().and_then(&mut leads);
                let real = real.filter(|real| Some(real) != prefix.as_ref()).map(Some);
                Denial { rule, prefixes: [prefix].into_iter().chain(real).collect() }
            };
            rules.iter().map(denial).collect()
        };
        let last = |name: &policy::ProtectedName| name.path.last().copied();
        let (mut last_names, mut endings) = (Vec::new(), Vec::new());
        for name in protected_names().iter().filter_map(last) {
            match name.strip_prefix('*') {
                Some(ending) => endings.push(ending),
                None => last_names.push(name),
            }
        }
        last_names.sort_unstable();
        endings.dedup();
        Self {
            hidden: denials(&policy.filesystem.deny_read),
            read_only: denials(&policy.filesystem.deny_write),
            last_names,
            endings,
            workspace: context.workspace.clone(),
            home: context.home.clone(),
        }
    }

    /// The rule that denies reading a path.
    pub fn hidden_by(&self, path: &AbsPath) -> Option<&'a Sourced<PathRule>> {
        covering(&self.hidden, path)
    }

    /// The rule that denies writing a path.
    pub fn read_only_by(&self, path: &AbsPath) -> Option<&'a Sourced<PathRule>> {
        covering(&self.read_only, path)
    }

    /// What the sandbox does with an entry; `None` if nothing.
    pub fn mark(&self, path: &AbsPath) -> Option<Mark> {
        if self.hidden_by(path).is_some() {
            return Some(Mark::Hidden);
        }
        if covering(&self.read_only, path).is_some() {
            return Some(Mark::ReadOnly);
        }
        self.protects(path)
    }

    /// The same for protected names that act at once.
    pub fn protects(&self, path: &AbsPath) -> Option<Mark> {
        if !self.may_be_protected(path) {
            return None;
        }
        let name = protecting_in(path, &self.workspace)?;
        if name.acts == Acts::Later && self.is_judged(path) {
            return None;
        }
        Some(if name.cover == Cover::Itself { Mark::Pinned } else { Mark::ReadOnly })
    }

    /// Whether a path is, or is in, a protected name that acts only later: a run can write it, and at
    /// its end it is judged.
    pub fn acts_later(&self, path: &AbsPath) -> bool {
        let later =
            || protecting_in(path, &self.workspace).is_some_and(|it| it.acts == Acts::Later);
        self.is_judged(path) && self.may_be_within_protected(path) && later()
    }

    /// Whether a path ends in the name of one of those.
    pub fn begins_later(&self, path: &AbsPath) -> bool {
        let later =
            || protecting_in(path, &self.workspace).is_some_and(|it| it.acts == Acts::Later);
        self.may_be_protected(path) && later() && self.is_judged(path)
    }

    /// Whether a path is, or is in, a protected name that acts at once and may be content of a project:
    /// whoever unpacks one goes on without it.
    pub fn is_diverted(&self, path: &AbsPath) -> bool {
        let is = |name: &policy::ProtectedName| matches!(name.acts, Acts::AtOnce | Acts::Rules);
        let at_once = || protecting_in(path, &self.workspace).is_some_and(is);
        self.is_judged(path)
            && self.may_be_within_protected(path)
            && self.hidden_by(path).is_none()
            && self.read_only_by(path).is_none()
            && at_once()
    }

    /// Whether whatever a run leaves at a path is looked at when it ends. What is in the home directory
    /// itself acts whatever the user does, and other directories are not searched for it.
    fn is_judged(&self, path: &AbsPath) -> bool {
        let in_home = || {
            let below = path.as_path().strip_prefix(self.home.as_path()).ok();
            let below = below.and_then(|below| AbsPath::lexical(&Path::new("/").join(below)).ok());
            below.is_some_and(|below| {
                let first = below.as_path().components().nth(1).map(|it| it.as_os_str().to_owned());
                let first = first.and_then(|it| AbsPath::lexical(&Path::new("/").join(it)).ok());
                first.is_some_and(|first| {
                    protecting_in(&first, &AbsPath::root()).is_some()
                        || shadows_in(&first, &AbsPath::root()).is_some()
                })
            })
        };
        path.is_within(&self.workspace) && !(self.home.is_within(&self.workspace) && in_home())
    }

    /// Whether a directory moved to this path, or away from it, could contain a protected name that
    /// acts at once.
    pub fn shadows(&self, path: &AbsPath) -> bool {
        let judged = self.is_judged(path);
        shadows_in(path, &self.workspace).is_some_and(|it| it.acts != Acts::Later || !judged)
    }

    /// Where protected names would be in a directory moved to this path, relative to it.
    pub fn held_by(&self, path: &AbsPath) -> Vec<std::path::PathBuf> {
        held_by(path)
    }

    /// Whether a deny rule is a pattern, which can match files that do not exist yet.
    pub fn has_patterns(&self) -> bool {
        self.hidden.iter().any(|denial| denial.rule.value.is_pattern())
    }

    /// The paths that rules hide by name.
    pub fn hidden_by_name(&self) -> impl Iterator<Item = &AbsPath> {
        let named = self.hidden.iter().filter(|denial| !denial.rule.value.is_pattern());
        named.flat_map(|denial| denial.prefixes.iter().flatten())
    }

    fn may_be_protected(&self, path: &AbsPath) -> bool {
        path.as_path().file_name().is_some_and(|name| self.ends_protected(name))
    }

    /// The same for a path in a protected tree.
    fn may_be_within_protected(&self, path: &AbsPath) -> bool {
        path.as_path().components().any(|part| self.ends_protected(part.as_os_str()))
    }

    fn ends_protected(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let name = fold(&name);
        self.last_names.binary_search(&&*name).is_ok()
            || self.endings.iter().any(|ending| name.ends_with(ending))
    }
}

fn covering<'a>(denials: &[Denial<'a>], path: &AbsPath) -> Option<&'a Sourced<PathRule>> {
    let covers = |denial: &&Denial<'a>| {
        let mut prefixes = denial.prefixes.iter();
        prefixes.any(|prefix| denial.rule.value.covers(path, prefix.as_ref(), Case::Fold))
    };
    denials.iter().find(covers).map(|denial| denial.rule)
}

/// The names in a git directory that the sandbox must protect, below it.
pub const GIT_NAMES: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info/attributes",
    "objects/info/alternates",
    "modules",
    "worktrees",
];
