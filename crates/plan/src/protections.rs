//! [`Protections`]: which entries of a tree the sandbox must hide or protect.

use model::{AbsPath, Sourced};

use policy::pattern::{Case, fold};
use policy::protected::{Cover, held_by, protecting, shadows};
use policy::{Context, PathRule, Policy, protected_names};

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

    /// The same for protected names only.
    pub fn protects(&self, path: &AbsPath) -> Option<Mark> {
        if !self.may_be_protected(path) {
            return None;
        }
        let name = protecting(path)?;
        Some(if name.cover == Cover::Itself { Mark::Pinned } else { Mark::ReadOnly })
    }

    /// Whether a directory moved to this path, or away from it, could contain a protected name.
    pub fn shadows(&self, path: &AbsPath) -> bool {
        shadows(path).is_some()
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
        let Some(name) = path.as_path().file_name() else { return false };
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
