use std::path::{Path, PathBuf};

use model::{AbsPath, Kind, Level, Net, Plan, Sourced};
use proptest::prelude::*;

use super::*;
use policy::{SettingsContext, ViolationAction};

pub(crate) fn at(path: &str) -> AbsPath {
    AbsPath::lexical(Path::new(path)).unwrap()
}

pub(crate) fn context() -> Context {
    Context {
        workspace: at("/home/u/proj"),
        home: at("/home/u"),
        closed: Vec::new(),
        unfit: None,
        agent_files: Vec::new(),
        own_files: vec![at("/home/u/proj/ringwall.toml")],
        grant_file: PathBuf::from("/home/u/proj/ringwall.toml"),
        settings: SettingsContext::default(),
    }
}

fn marked(path: &str, mark: Mark, entry: Entry) -> Marked {
    Marked { path: at(path), mark, entry }
}

pub(crate) fn machine() -> Machine {
    let entries = [
        ("/usr", Entry::Directory),
        ("/bin", Entry::Link("usr/bin".into())),
        ("/etc/ssl/certs", Entry::Directory),
        ("/home/u/.cargo", Entry::Directory),
        ("/home/u/.cargo/credentials.toml", Entry::File),
        ("/home/u/.local/bin", Entry::Directory),
        ("/home/u/proj/ringwall.toml", Entry::File),
    ];
    Machine {
        entries: entries.into_iter().map(|(path, entry)| (path.into(), entry)).collect(),
        marked: vec![
            marked("/home/u/proj/.git", Mark::Pinned, Entry::Directory),
            marked("/home/u/proj/.git/config", Mark::ReadOnly, Entry::File),
            marked("/home/u/proj/sub/deep/.git/hooks", Mark::ReadOnly, Entry::Directory),
            marked("/home/u/proj/.env", Mark::Hidden, Entry::File),
        ],
        environment: vec![
            ("PATH".into(), "/usr/bin".into()),
            ("AWS_SECRET_ACCESS_KEY".into(), "s".into()),
            ("CARGO_HOME".into(), "/".into()),
        ],
        ..Machine::default()
    }
}

fn plan(level: Level) -> Plan {
    let mut policy = Policy::built_in();
    policy.level = Sourced::built_in(level);
    compiled(&policy, &context(), &machine())
}

pub(crate) fn compiled(policy: &Policy, context: &Context, machine: &Machine) -> Plan {
    let network = NetworkRules::new(policy, &[], context.grant_file.clone());
    compile(policy, context, &network, &context.workspace, machine)
}

fn kind<'a>(plan: &'a Plan, path: &str) -> Option<&'a Kind> {
    plan.pieces.iter().find(|piece| piece.path == at(path)).map(|piece| &piece.kind)
}

#[test]
fn the_workspace_is_writable_and_home_is_not_there() {
    let plan = plan(Level::Readwrite);
    let allows = |path: &str, write| plan.allows(&at(path), write);
    for (path, read, write) in [
        ("/home/u/proj/src/main.rs", true, true),
        ("/home/u/proj/.git/objects/ab", true, true),
        ("/home/u/proj/.git/config", true, false),
        ("/home/u/proj/sub/deep/.git/hooks/pre-commit", true, false),
        ("/home/u/proj/.env", false, false),
        ("/home/u/proj/ringwall.toml", true, false),
        ("/home/u/.ssh/id_ed25519", false, false),
        ("/home/u/.cargo/registry/index", true, true),
        ("/home/u/.cargo/credentials.toml", false, false),
        ("/home/u/.local/bin/tool", true, true),
        ("/home/u/.cache/tool/x", true, true),
        ("/usr/bin/cat", true, false),
        ("/etc/ssl/certs/ca.pem", true, false),
        ("/etc/shadow", false, false),
        ("/tmp/x", true, true),
        ("/home/v/x", false, false),
        ("/home/u/proj-evil/x", false, false),
    ] {
        assert_eq!((allows(path, false), allows(path, true)), (read, write), "{path}");
    }
    assert_eq!(plan.network, Net::Own);
}

#[test]
fn everything_above_a_protected_name_is_held_in_place() {
    let plan = plan(Level::Readwrite);
    for path in [
        "/home/u/proj/.git",
        "/home/u/proj/sub",
        "/home/u/proj/sub/deep",
        "/home/u/proj/sub/deep/.git",
    ] {
        assert_eq!(kind(&plan, path), Some(&Kind::Pinned), "{path}");
    }
    assert_eq!(kind(&plan, "/home/u/proj"), Some(&Kind::Write));
}

#[test]
fn parents_come_before_what_lies_in_them() {
    for level in [Level::Readonly, Level::Readwrite, Level::Network, Level::Full] {
        let plan = plan(level);
        for (number, piece) in plan.pieces.iter().enumerate() {
            let later = plan.pieces.iter().skip(number);
            let parent = later.filter(|other| piece.path.is_within(&other.path)).count();
            assert_eq!(parent, 1, "{}", piece.path);
        }
    }
}

#[test]
fn the_environment_is_built_from_nothing() {
    let plan = plan(Level::Readwrite);
    let names: Vec<_> =
        plan.environment.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    assert!(!names.contains(&"AWS_SECRET_ACCESS_KEY".to_owned()), "{names:?}");
    for name in ["PATH", "HOME", "TMPDIR", "GIT_CEILING_DIRECTORIES"] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
    // A variable that names the root does not open it.
    assert!(kind(&plan, "/").is_none());
}

#[test]
fn what_is_denied_holds_whatever_else_is_said_of_what_lies_in_it() {
    let policy = Policy::built_in();
    let link = |path| marked(path, Mark::ReadOnly, Entry::File);
    let marks = [
        // A protected name that is a link may lead there, and may be found first.
        link("/home/u/proj/secrets/key"),
        marked("/home/u/proj/secrets", Mark::Hidden, Entry::Directory),
        link("/home/u/proj/secrets/other"),
        marked("/home/u/.cargo", Mark::Hidden, Entry::Directory),
        // What the host has where the run has its own is not there.
        link("/tmp/secret"),
        marked("/proc", Mark::Hidden, Entry::Directory),
        marked("/dev/null", Mark::Hidden, Entry::File),
    ];
    let machine = Machine { marked: marks.into(), ..machine() };
    let plan = compiled(&policy, &context(), &machine);
    for path in ["/home/u/proj/secrets", "/home/u/proj/secrets/key", "/home/u/.cargo/registry"] {
        assert!(!plan.allows(&at(path), false), "{path}");
    }
    for path in ["/home/u/proj/secrets/key", "/home/u/proj/secrets/other", "/tmp/secret"] {
        assert_eq!(kind(&plan, path), None, "{path}");
    }
    assert_eq!(kind(&plan, "/proc"), Some(&Kind::Processes));
    assert_eq!(kind(&plan, "/dev/null"), Some(&Kind::Device));
}

#[test]
fn a_place_in_the_middle_of_private_ground_stays_outside() {
    let mut context = context();
    context.workspace = at("/tmp/a/proj");
    context.home = at("/tmp/a/home");
    let plan = compiled(&Policy::built_in(), &context, &Machine::default());
    assert_eq!(kind(&plan, "/tmp/a"), Some(&Kind::Outside));
    assert!(!plan.allows(&at("/tmp/a/other/x"), false));
    assert!(plan.allows(&at("/tmp/a/proj/x"), true));
    assert!(plan.allows(&at("/tmp/b"), true));
}

#[test]
fn a_phase_lets_its_own_file_be_made_in_a_read_only_workspace() {
    let mut policy = Policy::built_in();
    policy.level = Sourced::built_in(Level::Readonly);
    let grant = Grant {
        path: at("/home/u/proj/TODO.md"),
        write: true,
        entry: None,
        named: true,
        directory: false,
        why: Cause::Words("phase".into()),
    };
    let machine = Machine { grants: vec![grant], ..machine() };
    let plan = compiled(&policy, &context(), &machine);
    assert_eq!(plan.granted_later, [at("/home/u/proj/TODO.md")]);
    assert!(plan.allows(&at("/home/u/proj/TODO.md"), true));
    assert!(!plan.allows(&at("/home/u/proj/src/main.rs"), true));
}

#[test]
fn a_read_grant_takes_no_write_away() {
    let grant = |path: &str, write| Grant {
        path: at(path),
        write,
        named: true,
        directory: false,
        entry: Some(Entry::Directory),
        why: Cause::Words("rule".into()),
    };
    let grants = vec![grant("/data", true), grant("/data/in", false), grant("/lib2", false)];
    let plan = compiled(&Policy::built_in(), &context(), &Machine { grants, ..machine() });
    assert!(plan.allows(&at("/data/in/x"), true));
    assert!(plan.allows(&at("/lib2/x"), false) && !plan.allows(&at("/lib2/x"), true));
}

#[test]
fn habits_are_quiet_and_secrets_are_not() {
    let (policy, context) = (Policy::built_in(), context());
    assert_eq!(policy.violation.action.value, ViolationAction::Stop);
    let quiet = QuietList::new(&policy, &context);
    for path in [
        "/home/u/.gitconfig",
        "/home/u/package.json",
        "/home/node_modules/x",
        "/etc/ssh/ssh_config",
        "/home/u/.config/git/config",
    ] {
        assert!(quiet.covers(&at(path)), "{path}");
    }
    for path in [
        "/home/u/.ssh/id_ed25519",
        "/home/u/.aws/credentials",
        "/home/u/.config/gh/hosts.yml",
        "/etc/shadow",
        "/home/u/notes.txt",
        "/home/v/.gitconfig",
    ] {
        assert!(!quiet.covers(&at(path)), "{path}");
    }
    assert!(quiet.covers_write(&at("/usr/lib/python3/__pycache__/x.pyc")));
    assert!(!quiet.covers_write(&at("/home/u/.bashrc")));
    for path in [
        "/home/u/.config",
        "/home/u/.config/procps",
        "/home/u/.java",
        "/home/u/.local",
        "/_tmp_3_2c79c019",
        "/home/u/_tmp_3_2c79c019",
    ] {
        assert!(quiet.covers_new_directory(&at(path)), "{path}");
    }
    for path in [
        "/home/u/notes",
        "/home/u/other/_tmp_3_2c79c019",
        "/home/u/.ssh",
        "/home/u/.claude",
        "/home/u/.config/git",
        "/home/u/.config/gh",
        "/home/u/.config/autostart/x",
        "/home/v/.java",
        "/srv/.java",
    ] {
        assert!(!quiet.covers_new_directory(&at(path)), "{path}");
    }
}

#[test]
fn a_variable_opens_a_toolchain_and_nothing_around_it() {
    let mut machine = machine();
    let mut name = |variable: &str, path: &str| {
        machine.environment.push((variable.into(), path.into()));
        machine.entries.insert(path.into(), Entry::Directory);
    };
    name("CARGO_HOME", "/data/cargo");
    name("GOPATH", "/home/u");
    name("RUSTUP_HOME", "/home");
    name("VIRTUAL_ENV", "/home/u/proj/.venv");
    name("JAVA_HOME", "/home/u/.ssh");
    machine.environment.retain(|(_, value)| value != "/");
    machine.entries.insert("/data/cargo/credentials.toml".into(), Entry::File);
    let plan = compiled(&Policy::built_in(), &context(), &machine);
    for (path, read, write) in [
        ("/data/cargo/registry", true, true),
        ("/data/cargo/credentials.toml", false, false),
        ("/home/u/notes.txt", false, false),
        ("/home/v/notes.txt", false, false),
        ("/home/u/proj/.venv/bin/python", true, true),
        ("/home/u/.ssh/id_ed25519", false, false),
    ] {
        assert_eq!(plan.allows(&at(path), false), read, "{path}");
        assert_eq!(plan.allows(&at(path), true), write, "{path}");
    }
}

#[test]
fn a_row_of_the_system_may_stand_for_any_ending() {
    let mut machine = machine();
    for path in ["/etc/java.13", "/etc/java-21-openjdk", "/etc/java.13/below"] {
        machine.entries.insert(path.into(), Entry::Directory);
    }
    let plan = compiled(&Policy::built_in(), &context(), &machine);
    assert_eq!(kind(&plan, "/etc/java.13"), Some(&Kind::Read));
    assert_eq!(kind(&plan, "/etc/java-21-openjdk"), Some(&Kind::Read));
    assert_eq!(kind(&plan, "/etc/java.13/below"), None);
}

prop_compose! {
    fn path()(parts in prop::collection::vec(
        prop::sample::select(vec![
            "home", "u", "proj", ".git", "config", "hooks", "sub", "deep", "src", ".env", ".ssh",
            ".cargo", ".cache", "usr", "bin", "etc", "tmp", "dev", "null", "x", "ringwall.toml",
            "credentials.toml", "proc", "var",
        ]), 0..7)) -> AbsPath {
        at(&format!("/{}", parts.join("/")))
    }
}

proptest! {
    #[test]
    fn a_level_allows_whatever_the_one_below_allows(path in path(), write in any::<bool>()) {
        let levels = [Level::Readonly, Level::Readwrite, Level::Network, Level::Full];
        let allowed = levels.map(|level| plan(level).allows(&path, write));
        prop_assert!(allowed.is_sorted(), "{path} {write}: {allowed:?}");
    }

    #[test]
    fn protected_names_and_deny_rules_hold_at_every_level(path in path()) {
        let held = ["/home/u/proj/.git/config", "/home/u/proj/.env", "/home/u/proj/sub/deep/.git/hooks"];
        if held.iter().any(|held| path.is_within(&at(held))) {
            for level in [Level::Readonly, Level::Readwrite, Level::Network, Level::Full] {
                prop_assert!(!plan(level).allows(&path, true), "{path} at {level}");
            }
        }
    }
}
