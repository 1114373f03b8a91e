//! Every configuration key, one row each.
//!
//! A row holds the documentation of a key, its name, how its value is written, and which change of
//! it allows more. The name is also the name of the field in [`Policy`] that the key sets. The
//! tables below become the structs that read a file, and so the JSON schema, and the list [`KEYS`]
//! that merging, `policy show` and `policy check` go through. To add a key, add a row here and a
//! field in `policy/src/rules.rs`.

use model::{Enforcement, Level, Origin, Verdict};
use policy::{OnAuditFailure, OnError, PathRule, Phase, Policy, QuarantineMode, ViolationAction};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::File;
use crate::setting::{
    Domains, Incoming, Kind, List, Maybe, One, Paths, Publish, QuarantineDir, Row, Size, Variable,
    Wider,
};

/// A key: `F` is what a file says, `P` is what the policy holds.
pub(crate) struct Key<F, P> {
    /// The full name, such as `filesystem.allow_read`.
    pub(crate) name: &'static str,
    /// Merges a layer into the policy.
    pub(crate) merge: fn(&F, &mut P, &str, &mut Incoming<'_>),
    /// The rows of the effective values.
    pub(crate) rows: fn(&P, &str) -> Vec<Row>,
    /// The effective path rules.
    pub(crate) paths: fn(&P) -> Vec<(&PathRule, &Origin)>,
}

/// Every effective value: one row for a single value, one for each entry of a list.
pub fn rows(policy: &Policy) -> Vec<Row> {
    KEYS.iter().flat_map(|key| (key.rows)(policy, key.name)).collect()
}

macro_rules! key {
    ($name:expr, $($field:ident).+, $Kind:ident<$Format:ty>, $wider:ident) => {
        Key {
            name: $name,
            merge: |file, policy, key, from| {
                file.$($field).+.merge(&mut policy.$($field).+, key, Wider::$wider, from);
            },
            rows: |policy, key| $Kind::<$Format>::rows(&policy.$($field).+, key),
            paths: |policy| $Kind::<$Format>::paths(&policy.$($field).+),
        }
    };
}

/// The struct of one table.
macro_rules! table {
    ($(#[$about:meta])* $Table:ident { $( $(#[$doc:meta])* $key:ident: $Kind:ident<$Format:ty> )* }) => {
        $(#[$about])*
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $Table {
            $( $(#[$doc])* pub(crate) $key: $Kind<$Format>, )*
        }
    };
}

macro_rules! tables {
    ($(
        $(#[$about:meta])*
        $table:ident: $Table:ident {
            $( $(#[$doc:meta])* $key:ident: $Kind:ident<$Format:ty>, $wider:ident; )*
        }
    )*) => {
        $( table! { $(#[$about])* $Table { $( $(#[$doc])* $key: $Kind<$Format> )* } } )*

        /// Every key of a file, in the order in which they are shown.
        pub(crate) const KEYS: &[Key<File, Policy>] = &[
            key!("level", level, One<Level>, Higher),
            PHASES,
            $($( key!(
                concat!(stringify!($table), ".", stringify!($key)),
                $table.$key,
                $Kind<$Format>,
                $wider
            ), )*)*
        ];
    };
}

tables! {
    /// Paths: `~` is home, relative paths start at this file's directory, `**/` matches anywhere.
    filesystem: FilesystemTable {
        /// Readable besides the workspace.
        allow_read: List<Paths>, Always;
        /// Readable and writable besides the workspace.
        allow_write: List<Paths>, Always;
        /// Neither readable nor writable, even in the workspace.
        deny_read: List<Paths>, Never;
        /// Not writable, even in the workspace.
        deny_write: List<Paths>, Never;
        /// Hidden, and trying to read it is not a violation.
        quiet: List<Paths>, Always;
        /// Decides every open in a run before the file is handed out, so that `deny_read` also holds
        /// for files that the host creates or replaces meanwhile. Opens take several times as long.
        strict_deny: One<bool>, Lower;
    }

    /// Hosts: `example.org`, `*.example.org` for subdomains only, with `:port` where it is not 80 or
    /// 443.
    network: NetworkTable {
        /// Reachable besides the agent's own essential domains.
        allowed_domains: List<Domains>, Always;
        /// Never reachable.
        denied_domains: List<Domains>, Never;
        /// Granted names that may resolve to private or loopback addresses.
        private_domains: List<Domains>, Always;
        /// Ports of the host's loopback that may be reached.
        allow_local_ports: List<u16>, Always;
        /// Ports of this machine that lead to servers inside, as `[ADDRESS:]PORT[:INSIDE]`. Without an
        /// address, only this machine's loopback accepts connections.
        publish: List<Publish>, Always;
        /// Unix sockets of programs on the host that may be connected to, by path, also in directories
        /// that can be read or written.
        allow_unix: List<Paths>, Always;
        /// Allows TLS connections that do not name their server (no SNI).
        allow_without_sni: One<bool>, Higher;
    }

    /// Environment variables.
    environment: EnvironmentTable {
        /// Variables that are passed into the sandbox.
        pass: List<Variable>, Always;
    }

    /// Where downloaded content must go.
    quarantine: QuarantineTable {
        /// The directory. Without one, downloads are not redirected.
        // The agent can write there, so every value widens.
        dir: Maybe<QuarantineDir>, Always;
        /// `redirect` corrects the call; `block` only denies it.
        mode: One<QuarantineMode>, Lower;
    }

    /// What the guard does when it cannot decide.
    guard: GuardTable {
        /// The verdict for a part of a command that cannot be known before it runs.
        on_unknown: One<Verdict>, Lower;
        /// The verdict for a call when judging it fails.
        on_error: One<OnError>, Lower;
    }

    /// What happens when a process in the sandbox tries what is not allowed.
    violation: ViolationTable {
        /// `stop` kills the process tree before the call returns; `deny` only denies the call.
        action: One<ViolationAction>, Lower;
        /// The same for a DNS lookup, before anything connects. Tools look up names that they do not
        /// need, so the default is `deny`.
        lookups: One<ViolationAction>, Lower;
    }

    /// Limits on what a run may use.
    limits: LimitsTable {
        /// Memory of the whole process tree, such as `8GiB`.
        memory: Maybe<Size>, Higher;
        /// What `/tmp` and the other directories that are private to the run hold together. They are
        /// in memory: unless set, `memory` if that is set, and otherwise half of the machine's
        /// memory, at most 8 GiB.
        private_files: Maybe<Size>, Higher;
        /// What the private caches of one workspace may take on the disk. At the end of a run, at most
        /// once an hour, what was not written for the longest time is removed. 10 GiB unless set.
        caches: Maybe<Size>, Higher;
        /// Processes and threads of the whole tree.
        processes: Maybe<u32>, Higher;
        /// The largest file that can be written, such as `2GiB`.
        file_size: Maybe<Size>, Higher;
        /// Seconds after which a run is ended.
        wall_seconds: Maybe<u64>, Higher;
        /// Seconds without output or event after which a run is ended.
        idle_seconds: Maybe<u64>, Higher;
    }

    /// What happens when the audit log cannot be written.
    audit: AuditTable {
        /// `warn` reports it with every decision; `deny` denies the call.
        on_failure: One<OnAuditFailure>, Lower;
    }

    /// Git.
    git: GitTable {
        /// Exports `GIT_DIR` and `GIT_WORK_TREE` for a linked worktree.
        pin_env: One<bool>, Lower;
    }

    /// The weakest sandbox that is accepted.
    confinement: ConfinementTable {
        /// A run that would get a weaker sandbox is not started.
        minimum: One<Enforcement>, Lower;
    }
}

table! {
    /// A stage of work.
    PhaseTable {
        /// The level of this stage.
        level: One<Level>
        /// Files that may be written in this stage whatever its level.
        allow_write: List<Paths>
    }
}

/// The keys of one phase, below `phases.NAME.`.
pub(crate) const PHASE_KEYS: &[Key<PhaseTable, Phase>] = &[
    key!("level", level, One<Level>, Higher),
    key!("allow_write", allow_write, List<Paths>, Always),
];

/// All phases as one key: their names are free.
const PHASES: Key<File, Policy> = Key {
    name: "phases",
    merge: |file, policy, key, from| {
        for (name, table) in &file.phases {
            let level = &policy.level;
            let new = || Phase { level: level.clone(), allow_write: Vec::new() };
            let phase = policy.phases.entry(name.clone()).or_insert_with(new);
            for inner in PHASE_KEYS {
                (inner.merge)(table, phase, &format!("{key}.{name}.{}", inner.name), from);
            }
        }
    },
    rows: |policy, key| {
        let phases = policy.phases.iter();
        phases
            .flat_map(|(name, phase)| {
                let rows = move |inner: &Key<PhaseTable, Phase>| {
                    (inner.rows)(phase, &format!("{key}.{name}.{}", inner.name))
                };
                PHASE_KEYS.iter().flat_map(rows)
            })
            .collect()
    },
    // A phase writes its own file first, so that it does not exist is no mistake.
    paths: |_| Vec::new(),
};
