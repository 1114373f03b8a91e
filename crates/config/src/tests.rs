//! Layers, origins, trust and problems, on real files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use facts::Places;
use model::{AbsPath, Level, Verdict};
use policy::{OnError, QuarantineMode};
use serde_json::Value;

use crate::keys::{KEYS, PHASE_KEYS};
use crate::*;

struct Machine {
    _guard: tempfile::TempDir,
    places: Places,
    workspace: PathBuf,
}

fn machine() -> Machine {
    let guard = tempfile::tempdir().unwrap();
    let root = guard.path().canonicalize().unwrap();
    let workspace = root.join("project");
    std::fs::create_dir_all(&workspace).unwrap();
    for dir in ["home/.config/ringwall", "etc/ringwall"] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
    }
    let places = Places {
        home: AbsPath::lexical(&root.join("home")).unwrap(),
        cwd: workspace.clone(),
        system_config: root.join("etc/ringwall/ringwall.toml"),
        config_dir: root.join("home/.config/ringwall"),
        state_dir: root.join("home/.local/state/ringwall"),
    };
    Machine { _guard: guard, places, workspace }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

impl Machine {
    fn project(&self) -> PathBuf {
        self.workspace.join(PROJECT_FILE)
    }

    fn load_with(&self, change: impl FnOnce(&mut Request<'_>)) -> Result<Loaded, LoadError> {
        self.load_from(&self.workspace, change)
    }

    fn load_from(
        &self,
        dir: &Path,
        change: impl FnOnce(&mut Request<'_>),
    ) -> Result<Loaded, LoadError> {
        let workspace = AbsPath::lexical(dir).unwrap();
        let project = Project::around(dir, &self.places.home);
        let mut request = Request {
            places: &self.places,
            workspace: &workspace,
            project: &project,
            explicit: None,
            aliases: Aliases::default(),
            selection: Selection::default(),
        };
        change(&mut request);
        load(&request)
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        self.load_with(|_| {})
    }
}

#[test]
fn later_layers_replace_values_and_extend_lists() {
    let machine = machine();
    write(&machine.places.system_config, "[filesystem]\ndeny_read = [\"**/.env\"]\n");
    write(
        &machine.places.user_config(),
        "level = \"network\"\n[filesystem]\nallow_read = [\"~/lib\"]\n",
    );
    write(
        &machine.project(),
        "level = \"readonly\"\n\n[filesystem]\ndeny_read = [\n  \"**/*.pem\",\n]\n",
    );
    let policy = machine.load().unwrap().policy;
    assert_eq!(policy.level.value, Level::Readonly);
    assert_eq!(policy.level.origin.to_string(), format!("{}:1", machine.project().display()));
    let denied: Vec<_> = policy
        .filesystem
        .deny_read
        .iter()
        .map(|rule| (rule.value.text(), rule.origin.line()))
        .collect();
    assert_eq!(denied, [("**/.env", Some(2)), ("**/*.pem", Some(5))]);
    assert_eq!(policy.filesystem.allow_read[0].value.text(), "~/lib");
}

#[test]
fn what_an_untrusted_project_file_widens_is_ignored_until_its_content_is_trusted() {
    let machine = machine();
    let text = "level = \"full\"\n[filesystem]\nallow_read = [\"/etc\"]\ndeny_write = [\"x\"]\n\
                [guard]\non_error = \"allow\"\non_unknown = \"deny\"\n[quarantine]\ndir = \"q\"\n\
                [phases.plan]\nlevel = \"full\"\nallow_write = [\"src\"]\n";
    write(&machine.project(), text);
    let loaded = machine.load().unwrap();
    let keys: Vec<_> = loaded.ignored.iter().map(|widening| widening.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "level",
            "phases.plan.level",
            "phases.plan.allow_write",
            "filesystem.allow_read",
            "quarantine.dir",
            "guard.on_error"
        ]
    );
    assert_eq!(loaded.policy.level.value, Level::Readwrite);
    assert_eq!(loaded.policy.guard.on_error.value, OnError::Deny);
    // What narrows counts at once.
    assert_eq!(loaded.policy.guard.on_unknown.value, Verdict::Deny);
    assert_eq!(loaded.policy.filesystem.deny_write.len(), 1);

    Trust::at(&machine.places.state_dir).add(&machine.project(), text).unwrap();
    let loaded = machine.load().unwrap();
    assert!(loaded.ignored.is_empty());
    assert_eq!(loaded.policy.level.value, Level::Full);

    // Any edit ends the trust.
    write(&machine.project(), &format!("{text}# one byte more\n"));
    assert!(!machine.load().unwrap().ignored.is_empty());
}

#[test]
fn trust_is_for_one_content_until_another_is_trusted_or_it_is_forgotten() {
    let machine = machine();
    let trust = Trust::at(&machine.places.state_dir);
    let is_trusted = |text: &str| {
        write(&machine.project(), text);
        machine.load().unwrap().ignored.is_empty()
    };
    let [first, second] = ["level = \"full\"\n", "level = \"network\"\n"];
    trust.add(&machine.project(), first).unwrap();
    assert!(is_trusted(first) && !is_trusted(second));
    // Nothing was trusted in between, so going back is going back to what was trusted.
    assert!(is_trusted("level = \"readonly\"\n") && is_trusted(first));
    trust.add(&machine.project(), second).unwrap();
    assert!(is_trusted(second) && !is_trusted(first));
    assert!(trust.forget(&machine.project()).unwrap());
    assert!(!is_trusted(second));
    assert!(!trust.forget(&machine.project()).unwrap());
}

#[test]
fn an_agent_started_below_the_git_root_keeps_the_projects_rules() {
    let machine = machine();
    let below = machine.workspace.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(machine.workspace.join(".git")).unwrap();
    write(&machine.project(), "level = \"readonly\"\n[filesystem]\ndeny_read = [\"x\"]\n");
    let nearest = below.join(PROJECT_FILE);
    let widening = "level = \"readwrite\"\n";
    write(&nearest, &format!("{widening}[filesystem]\ndeny_read = [\"y\"]\n"));
    let loaded = machine.load_from(&below, |_| {}).unwrap();
    assert_eq!(loaded.files, [machine.project(), nearest.clone()]);
    assert_eq!(loaded.policy.level.value, Level::Readonly);
    assert_eq!(loaded.policy.filesystem.deny_read.len(), 2);
    // Each file has a trust of its own, and the nearest has the last word.
    assert_eq!(loaded.ignored[0].origin.file(), Some(nearest.as_path()));
    let text = std::fs::read_to_string(&nearest).unwrap();
    let lines = widening_of(&machine.places, &nearest, &text).unwrap();
    assert_eq!(lines, loaded.ignored);
    Trust::at(&machine.places.state_dir).add(&nearest, &text).unwrap();
    let loaded = machine.load_from(&below, |_| {}).unwrap();
    assert_eq!(loaded.policy.level.value, Level::Readwrite);
}

#[test]
fn a_new_checkout_below_does_not_shake_off_the_rules_around_it() {
    let machine = machine();
    let nested = machine.workspace.join("nested");
    std::fs::create_dir_all(nested.join(".git")).unwrap();
    std::fs::create_dir(machine.workspace.join(".git")).unwrap();
    let text = "[filesystem]\ndeny_read = [\"x\"]\nallow_read = [\"/etc\"]\n";
    write(&machine.project(), text);
    Trust::at(&machine.places.state_dir).add(&machine.project(), text).unwrap();
    let policy = machine.load_from(&nested, |_| {}).unwrap();
    assert_eq!(policy.policy.filesystem.deny_read.len(), 1);
    // What was granted to one repository is not granted to another inside it.
    assert!(policy.policy.filesystem.allow_read.is_empty() && policy.ignored.is_empty());
}

#[test]
fn a_project_file_that_is_a_link_is_a_problem() {
    let machine = machine();
    write(&machine.workspace.join("real.toml"), "");
    for target in ["real.toml", "missing.toml"] {
        std::os::unix::fs::symlink(target, machine.project()).unwrap();
        let error = machine.load().unwrap_err().to_string();
        assert!(
            error.contains("is a symbolic link; a project file must be a regular file"),
            "{error}"
        );
        std::fs::remove_file(machine.project()).unwrap();
    }
}

#[test]
fn a_file_named_by_flag_is_trusted_and_by_variable_only_outside_the_workspace() {
    let machine = machine();
    let inside = machine.workspace.join("other.toml");
    write(&inside, "level = \"full\"\n");
    let flag = machine.load_with(|r| r.explicit = Some(Explicit::Flag(inside.clone()))).unwrap();
    assert_eq!(flag.policy.level.value, Level::Full);
    let variable =
        machine.load_with(|r| r.explicit = Some(Explicit::Environment(inside.clone()))).unwrap();
    assert_eq!(variable.policy.level.value, Level::Readwrite);
    assert_eq!(variable.ignored.len(), 1);
    let outside = machine.places.home.as_path().join("other.toml");
    write(&outside, "level = \"full\"\n");
    let variable = machine.load_with(|r| r.explicit = Some(Explicit::Environment(outside)));
    assert_eq!(variable.unwrap().policy.level.value, Level::Full);
    let missing = machine.load_with(|r| r.explicit = Some(Explicit::Flag("/none.toml".into())));
    assert!(missing.unwrap_err().to_string().contains("/none.toml: no such file"));
}

#[test]
fn no_spelling_of_a_file_in_the_project_makes_a_variable_trusted() {
    let machine = machine();
    let root = machine.workspace.parent().unwrap().to_path_buf();
    let below = machine.workspace.join("below");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(machine.workspace.join(".git")).unwrap();
    write(&machine.workspace.join("evil.toml"), "level = \"full\"\n");
    std::os::unix::fs::symlink(&machine.workspace, root.join("alias")).unwrap();
    let other = root.join("home/../project/evil.toml");
    // The process's own directory is not the workspace here, so `/proc` needs the whole path.
    let proc = format!("/proc/self/root{}", machine.workspace.join("evil.toml").display());
    for path in [root.join("alias/evil.toml"), other, below.join("../evil.toml"), proc.into()] {
        for dir in [&machine.workspace, &below] {
            let explicit = Some(Explicit::Environment(path.clone()));
            let loaded = machine.load_from(dir, |request| request.explicit = explicit).unwrap();
            assert_eq!(loaded.policy.level.value, Level::Readwrite, "{}", path.display());
            assert_eq!(loaded.ignored.len(), 1, "{}", path.display());
        }
    }
    let explicit = Some(Explicit::Environment(root.join("alias/evil.toml")));
    let loaded = machine.load_with(|request| request.explicit = explicit).unwrap();
    let named = loaded.ignored[0].origin.file().map(Path::to_path_buf);
    assert_eq!(named, Some(machine.workspace.join("evil.toml")));
}

#[test]
fn directories_that_variables_move_into_the_project_are_worth_no_more_than_it() {
    let mut machine = machine();
    let brought = machine.workspace.join("cfg/ringwall");
    std::fs::create_dir_all(&brought).unwrap();
    write(&brought.join("ringwall.toml"), "level = \"full\"\n");
    machine.places.config_dir = brought;
    let loaded = machine.load().unwrap();
    assert_eq!((loaded.policy.level.value, loaded.ignored.len()), (Level::Readwrite, 1));
    write(&machine.project(), "level = \"full\"\n");
    machine.places.state_dir = machine.workspace.join("state");
    Trust::at(&machine.places.state_dir).add(&machine.project(), "level = \"full\"\n").unwrap();
    assert_eq!(machine.load().unwrap().policy.level.value, Level::Readwrite);
}

#[test]
fn problems_name_the_line_and_the_nearest_key() {
    let machine = machine();
    for (text, expected) in [
        (
            "[filesystem]\nallow_raed = []\n",
            "2: unknown key `filesystem.allow_raed` (the nearest key is `allow_read`)",
        ),
        ("levle = \"full\"\n", "1: unknown key `levle` (the nearest key is `level`)"),
        (
            "filesystem = { quite = [] }\n",
            "1: unknown key `filesystem.quite` (the nearest key is `quiet`)",
        ),
        (
            "[phases.x]\nlevels = 1\n",
            "2: unknown key `phases.x.levels` (the nearest key is `level`)",
        ),
        (
            "\nlevel = \"root\"\n",
            "2: unknown value `root` for `level` \
             (expected `readonly`, `readwrite`, `network` or `full`)",
        ),
        (
            "[phases.x]\nlevel = 3\n",
            "2: `phases.x.level` must be one of `readonly`, `readwrite`, `network` or `full`",
        ),
        ("[guard]\non_error = \"alow\"\n", "2: unknown value `alow` for `guard.on_error`"),
        ("[filesystem]\nallow_read = \"x\"\n", "2: `filesystem.allow_read` must be a list"),
        ("filesystem = 1\n", "1: `filesystem` must be a table"),
        ("[git]\npin_env = 1\n", "2: `git.pin_env` must be `true` or `false`"),
        ("[limits]\nprocesses = \"x\"\n", "2: `limits.processes` must be a whole number"),
        ("[limits]\nprocesses = -1\n", "2: invalid value: integer `-1`"),
        ("version = 2\n", "1: version 2 is not supported"),
        ("level = \n", "1: "),
        (
            "[network]\nallowed_domains = [\"https://example.org\"]\n",
            "2: `https://example.org` is a URL",
        ),
        ("[limits]\nmemory = \"lots\"\n", "2: invalid size `lots`"),
        (
            "[filesystem]\ndeny_read = [\"a*/../b\"]\n",
            "2: `a*/../b`: `..` cannot follow a wildcard",
        ),
        ("[quarantine]\ndir = \"q/*\"\n", "2: the quarantine must be one directory"),
        ("[quarantine]\ndir = \"/\"\n", "2: `/` cannot be the quarantine: it contains your home"),
        ("[quarantine]\ndir = \"~\"\n", "2: `~` cannot be the quarantine: it contains your home"),
        (
            "[quarantine]\ndir = \"~/.config/ringwall/q\"\n",
            "2: `~/.config/ringwall/q` cannot be the quarantine: it overlaps",
        ),
        (
            "[quarantine]\ndir = \"~/.local\"\n",
            "2: `~/.local` cannot be the quarantine: it overlaps",
        ),
        ("[environment]\npass = [\"A=B\"]\n", "2: `A=B` is not a valid variable name"),
    ] {
        write(&machine.project(), text);
        let error = machine.load().unwrap_err().to_string();
        let expected = format!("{}:{expected}", machine.project().display());
        assert!(error.starts_with(&expected), "{text:?}: {error}");
    }
}

#[test]
fn every_unknown_key_is_named_at_once() {
    let machine = machine();
    write(&machine.project(), "a = 1\nb = 2\n[guard]\nc = 3\n");
    assert_eq!(machine.load().unwrap_err().problems.len(), 3);
}

#[test]
fn an_empty_or_unreadable_file_never_means_allow() {
    let machine = machine();
    write(&machine.project(), "");
    assert_eq!(machine.load().unwrap().policy.guard.on_error.value, OnError::Deny);
    std::fs::write(machine.project(), [0xff, 0x00]).unwrap();
    assert!(machine.load().is_err());
    std::fs::remove_file(machine.project()).unwrap();
    std::fs::create_dir(machine.project()).unwrap();
    assert!(machine.load().is_err());
}

#[test]
fn removed_keys_are_warned_about_and_change_nothing() {
    let machine = machine();
    write(
        &machine.project(),
        "agentForbiddenTools = []\nsandboxApprovedEscalations = [{ from = \"a\", to = \"b\" }]\n",
    );
    let loaded = machine.load().unwrap();
    let texts: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains(":1: `agentForbiddenTools` was removed and is ignored"), "{texts:?}");
}

#[test]
fn variables_of_the_older_system_stand_below_every_file() {
    let machine = machine();
    let aliases = Aliases::from_environment(|name| match name {
        "CONTENT_FILTER_SHARED_DIR" => Some("~/shared".into()),
        "CONTENT_FILTER_ENFORCER_MODE" => Some("block".into()),
        _ => None,
    });
    let load = || machine.load_with(|request| request.aliases = aliases.clone()).unwrap().policy;
    let policy = load();
    assert_eq!(policy.quarantine.mode.value, QuarantineMode::Block);
    let dir = policy.quarantine.dir.unwrap();
    assert_eq!(dir.origin.to_string(), "$CONTENT_FILTER_SHARED_DIR");
    write(&machine.places.user_config(), "[quarantine]\ndir = \"~/q\"\n");
    assert_eq!(load().quarantine.dir.unwrap().value.text(), "~/q");
}

#[test]
fn a_variable_gives_no_ground_that_matters() {
    let machine = machine();
    let root = machine.workspace.parent().unwrap();
    std::os::unix::fs::symlink("/", machine.places.home.as_path().join("everything")).unwrap();
    let inside = machine.workspace.join("q");
    let load = |value: &str| {
        let set = |name: &str| (name == "CONTENT_FILTER_SANDBOX_DIR").then(|| value.to_owned());
        let aliases = Aliases::from_environment(set);
        machine.load_with(|request| request.aliases = aliases).unwrap()
    };
    for value in [
        "/",
        "~",
        "q",
        "~/everything",
        "~/.ssh",
        "~/.config/ringwall",
        "~/q/../..",
        "/proc/self/cwd",
        root.to_str().unwrap(),
        machine.workspace.to_str().unwrap(),
        inside.to_str().unwrap(),
    ] {
        let loaded = load(value);
        assert!(loaded.policy.quarantine.dir.is_none(), "{value}");
        assert_eq!(loaded.ignored[0].origin.to_string(), "$CONTENT_FILTER_SANDBOX_DIR");
        assert_eq!(loaded.untrusted().count(), 0, "no trust helps");
        assert!(loaded.warnings[0].to_string().contains(value), "{}", loaded.warnings[0]);
    }
    // A wildcard in a variable is a character like any other.
    let rule = load("/*").policy.quarantine.dir.unwrap().value;
    assert!(!rule.is_pattern());
}

#[test]
fn the_schema_knows_no_null() {
    let schema = schema().to_string();
    assert!(!schema.contains("null"), "{schema}");
}

/// The names of the keys below a schema, such as `phases.*.level`.
fn schema_keys(root: &Value, schema: &Value, at: &str, keys: &mut BTreeSet<String>) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let schema = reference.map_or(schema, |to| root.pointer(to.trim_start_matches('#')).unwrap());
    let fixed = schema.get("properties").and_then(Value::as_object);
    let free = schema.get("additionalProperties").filter(|extra| extra.is_object());
    if fixed.is_none() && free.is_none() {
        keys.insert(at.to_owned());
    }
    for (key, child) in fixed.into_iter().flatten() {
        let name = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        schema_keys(root, child, &name, keys);
    }
    if let Some(child) = free {
        schema_keys(root, child, &format!("{at}.*"), keys);
    }
}

#[test]
fn every_key_of_the_schema_is_in_the_table_and_is_shown() {
    let schema = schema();
    let mut in_schema = BTreeSet::new();
    schema_keys(&schema, &schema, "", &mut in_schema);
    // The version describes the file, not the policy.
    assert!(in_schema.remove("version"));

    let phase_keys = PHASE_KEYS.iter().map(|key| format!("phases.*.{}", key.name));
    let keys = KEYS.iter().map(|key| key.name.to_owned()).filter(|name| name != "phases");
    let in_table: BTreeSet<_> = keys.chain(phase_keys).collect();
    assert_eq!(in_schema, in_table);

    let shown: BTreeSet<_> = rows(&policy::Policy::built_in())
        .into_iter()
        .map(|row| match row.key.split('.').collect::<Vec<_>>().as_slice() {
            ["phases", _, key] => format!("phases.*.{key}"),
            _ => row.key,
        })
        .collect();
    assert_eq!(in_schema, shown);
}

#[test]
fn the_direction_that_widens_is_the_one_in_the_table() {
    let machine = machine();
    // The user's file, a project file that narrows it, and one that widens it.
    for (below, narrower, wider) in [
        ("level = \"network\"", "level = \"readonly\"", "level = \"full\""),
        (
            "[limits]\nmemory = \"2GiB\"",
            "[limits]\nmemory = \"1GiB\"",
            "[limits]\nmemory = \"3GiB\"",
        ),
        ("[limits]\nprocesses = 5", "[limits]\nprocesses = 4", "[limits]\nprocesses = 6"),
        ("", "[limits]\nidle_seconds = 9", "[network]\nallow_local_ports = [80]"),
        ("", "[network]\ndenied_domains = [\"a.org\"]", "[network]\nallowed_domains = [\"a.org\"]"),
        ("", "[filesystem]\ndeny_write = [\"x\"]", "[filesystem]\nquiet = [\"x\"]"),
        ("", "[git]\npin_env = true", "[network]\nallow_without_sni = true"),
        ("[git]\npin_env = true", "[violation]\nlookups = \"stop\"", "[git]\npin_env = false"),
        ("", "[filesystem]\nstrict_deny = true", "[filesystem]\nallow_read = [\"/x\"]"),
        ("[filesystem]\nstrict_deny = true", "", "[filesystem]\nstrict_deny = false"),
        ("", "[audit]\non_failure = \"deny\"", "[violation]\naction = \"deny\""),
        ("", "[quarantine]\nmode = \"block\"", "[quarantine]\ndir = \"~/q\""),
        ("", "[guard]\non_unknown = \"deny\"", "[guard]\non_unknown = \"allow\""),
        ("", "", "[confinement]\nminimum = \"landlock\""),
        ("", "", "[environment]\npass = [\"A\"]"),
    ] {
        write(&machine.places.user_config(), below);
        for (text, ignored) in [(narrower, 0), (wider, 1)] {
            write(&machine.project(), text);
            assert_eq!(machine.load().unwrap().ignored.len(), ignored, "{below:?} {text:?}");
        }
    }
}

#[test]
fn a_phase_picks_its_level_and_files_and_a_level_flag_beats_it() {
    let machine = machine();
    let phase = |name: &str, level| Selection { phase: Some(name.into()), level };
    let plan = machine.load_with(|r| r.selection = phase("plan", None)).unwrap().policy;
    assert_eq!(plan.level.value, Level::Readonly);
    assert_eq!(plan.filesystem.allow_write[0].value.text(), "TODO.md");
    let raised =
        machine.load_with(|r| r.selection = phase("plan", Some(Level::Network))).unwrap().policy;
    assert_eq!(raised.level.value, Level::Network);
    let unknown = machine.load_with(|r| r.selection = phase("deploy", None)).unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("unknown phase `deploy` (expected `build`, `learn` or `plan`)")
    );
}

#[test]
fn rules_that_can_match_nothing_are_named() {
    let machine = machine();
    write(
        &machine.project(),
        "[filesystem]\ndeny_read = [\"**/.env\", \"no/such/dir/x\", \"new.txt\", \"gone/*.txt\"]\n",
    );
    let loaded = machine.load().unwrap();
    let workspace = AbsPath::lexical(&machine.workspace).unwrap();
    let warnings = check(&loaded.policy, &workspace);
    let texts: Vec<_> = warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("`no/such/dir/x` in filesystem.deny_read matches nothing"));
    assert!(texts[1].starts_with("`gone/*.txt` in filesystem.deny_read matches nothing"));
}
