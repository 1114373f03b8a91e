//! Layers, origins, trust and problems, on real files.

use std::path::{Path, PathBuf};

use facts::Places;
use model::{AbsPath, Level, Verdict};
use policy::{OnError, QuarantineMode};

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
    std::fs::create_dir_all(root.join("home/.config/ringwall")).unwrap();
    let places = Places {
        home: AbsPath::lexical(&root.join("home")).unwrap(),
        cwd: workspace.clone(),
        system_config: root.join("etc.toml"),
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
        let mut request = Request {
            places: &self.places,
            workspace: &self.workspace,
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
    let missing = machine.load_with(|r| r.explicit = Some(Explicit::Flag("/none.toml".into())));
    assert!(missing.unwrap_err().to_string().contains("/none.toml: there is no such file"));
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
        ("\nlevel = \"root\"\n", "2: unknown variant `root`"),
        ("[filesystem]\nallow_read = \"x\"\n", "2: invalid type"),
        ("version = 2\n", "1: version 2 is not understood"),
        ("level = \n", "1: "),
        (
            "[network]\nallowed_domains = [\"https://example.org\"]\n",
            "2: `https://example.org` is a URL",
        ),
        ("[limits]\nmemory = \"lots\"\n", "2: `lots` is no size"),
        ("[filesystem]\ndeny_read = [\"a*/../b\"]\n", "2: `a*/../b`: `..` behind a wildcard"),
        ("[quarantine]\ndir = \"q/*\"\n", "2: the quarantine must be one directory"),
        ("[environment]\npass = [\"A=B\"]\n", "2: `A=B` is no variable name"),
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
            .contains("there is no phase `deploy` (the phases are build, learn, plan)")
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
    assert!(texts[0].starts_with("`no/such/dir/x` in deny_read matches nothing"));
    assert!(texts[1].starts_with("`gone/*.txt` in deny_read matches nothing"));
}
