//! Shell commands through the live hook: the corpus, the false alarms, and redirects run for real.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::{Finished, Server, TestEnv, feed, git, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hook_env::Answer as _;

/// Rows may be added. Taking one out needs a reason, and these lines.
const FEWEST_ROWS: usize = 432;
const FEWEST_COMMANDS: usize = 562;

/// A home with a repository, two linked worktrees of it, and a quarantine.
struct ShellEnv {
    env: TestEnv,
}

impl Deref for ShellEnv {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl ShellEnv {
    fn new() -> Self {
        let env = Self { env: TestEnv::temporary() };
        std::fs::create_dir_all(env.host()).unwrap();
        std::fs::create_dir_all(env.quarantine()).unwrap();
        git(env.host(), &["init", "-q", "-b", "main", "."]);
        env.write("home/u/proj/src/a.txt", "a\n");
        env.write("home/u/proj/.gitignore", ".wt\n");
        git(env.host(), &["add", "."]);
        git(env.host(), &["commit", "-q", "-m", "x"]);
        for (name, branch) in [("a", "agent"), ("b", "sibling")] {
            let path = format!(".wt/{name}");
            git(env.host(), &["worktree", "add", "-q", "-b", branch, &path]);
        }
        env
    }

    fn home(&self) -> PathBuf {
        self.root.join("home/u")
    }

    fn host(&self) -> PathBuf {
        self.home().join("proj")
    }

    fn worktree(&self) -> PathBuf {
        self.host().join(".wt/a")
    }

    fn quarantine(&self) -> PathBuf {
        self.home().join("work/sandbox")
    }

    fn fill(&self, text: &str) -> String {
        let show = |path: PathBuf| path.display().to_string();
        text.replace("{worktree}", &show(self.worktree()))
            .replace("{host}", &show(self.host()))
            .replace("{quarantine}", &show(self.quarantine()))
            .replace("{home}", &show(self.home()))
    }

    /// The hook in the given workspace, with a quarantine in this mode or without one.
    fn hook(&self, workspace: &Path, quarantine: Option<&str>) -> Command {
        let config = self.root.join("config.toml");
        let mut lines = String::from("version = 1\n");
        if let Some(mode) = quarantine {
            let dir = self.quarantine();
            lines +=
                &format!("[quarantine]\ndir = {:?}\nmode = {mode:?}\n", dir.display().to_string());
        }
        std::fs::write(&config, lines).unwrap();
        let mut command = self.command(self.binary());
        command
            .args(["hook", "claude"])
            .env("HOME", self.home())
            .env("RINGWALL_CONFIG", config)
            .env("CLAUDE_PROJECT_DIR", workspace)
            .current_dir(self.worktree());
        command
    }

    /// The first reason in a few words, with this ground's paths taken out.
    fn because(&self, reason: &str) -> String {
        let first = reason.split(" [rule").next().unwrap_or(reason);
        let first = first.trim_start_matches("ringwall: ");
        [
            ("{worktree}", self.worktree()),
            ("{host}", self.host()),
            ("{quarantine}", self.quarantine()),
            ("{home}", self.home()),
        ]
        .iter()
        .fold(first.to_owned(), |text, (name, path)| {
            text.replace(&path.display().to_string(), name)
        })
    }

    fn judge(&self, command: &str, cwd: &Path, workspace: &Path, mode: Option<&str>) -> Judged {
        let event = json!({
            "session_id": "corpus", "cwd": cwd, "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": command, "description": "d", "timeout": 5000},
        });
        Judged::read(feed(self.hook(workspace, mode), event.to_string().as_bytes()))
    }
}

struct Judged {
    verdict: &'static str,
    corrected: Option<String>,
    reason: String,
    stderr: String,
}

impl Judged {
    fn read(answer: Finished) -> Self {
        let value: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let output = &value["hookSpecificOutput"];
        let corrected = output["updatedInput"]["command"].as_str().map(str::to_owned);
        if corrected.is_some() {
            assert_eq!(output["updatedInput"]["timeout"], 5000, "a rewrite echoes the whole input");
        }
        let verdict = if corrected.is_some() { "redirect" } else { answer.verdict() };
        let reason = output["permissionDecisionReason"].as_str().unwrap_or_default().to_owned();
        Self { verdict, corrected, reason, stderr: answer.stderr }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    area: String,
    command: String,
    cwd: Option<String>,
    mode: Option<String>,
    expect: String,
    corrected: Option<String>,
    #[serde(default)]
    or: Vec<String>,
    #[serde(default)]
    debatable: bool,
    why: String,
}

fn rows<T: for<'de> Deserialize<'de>>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_of_the_shell_corpus_is_decided_as_expected() {
    let env = ShellEnv::new();
    let rows: Vec<Row> = rows("shell.jsonl");
    let mut misses = Vec::new();
    let mut debatable = 0;
    for row in &rows {
        let command = env.fill(&row.command);
        let cwd = row.cwd.as_ref().map_or_else(|| env.worktree(), |cwd| env.fill(cwd).into());
        let mode = row.mode.as_deref().unwrap_or("redirect");
        let judged = env.judge(&command, &cwd, &env.worktree(), Some(mode));
        let corrected = row.corrected.as_ref().map(|text| env.fill(text));
        if let Some(text) = &judged.corrected {
            let valid = Command::new("bash").args(["-n", "-c", text]).status().unwrap();
            assert!(valid.success(), "{}: {text}", row.id);
        }
        let exact = judged.verdict == row.expect
            && (row.expect != "redirect" || corrected.is_none() || judged.corrected == corrected);
        // A refusal that spells out the corrected command does the same job.
        let told = row.expect == "redirect"
            && judged.verdict == "deny"
            && corrected.as_ref().is_some_and(|text| judged.reason.contains(text));
        let stricter = row.expect == "ask" && judged.verdict == "deny";
        let other = row.or.iter().any(|other| other == judged.verdict);
        let silent = row.area == "evasion" && judged.verdict == "allow" && row.expect != "allow";
        if exact || ((told || stricter || other) && !silent) {
            continue;
        }
        if row.debatable && !silent {
            debatable += 1;
            continue;
        }
        let Row { id, expect, why, .. } = row;
        let got = judged.corrected.unwrap_or_default();
        misses.push(format!(
            "{id}: {} instead of {expect} ({why})\n    {command:?}\n    {got:?}",
            judged.verdict
        ));
    }
    assert!(misses.is_empty(), "{} misses\n{}", misses.len(), misses.join("\n"));
    assert!(rows.len() >= FEWEST_ROWS, "{} rows are left", rows.len());
    assert!(debatable <= 4, "{debatable} debatable rows are decided otherwise");
}

#[derive(Deserialize)]
struct Ordinary {
    id: usize,
    command: String,
    /// What it gets where that is not `allow`, and why that is right.
    #[serde(default)]
    expect: Option<String>,
    /// The reason that the agent is given then.
    #[serde(default, rename = "because")]
    _because: Option<String>,
}

#[test]
fn every_ordinary_command_is_read_by_the_parser() {
    let dir = Path::new("/w");
    let surroundings = ::shell::Surroundings { dir, home: dir, top: None };
    for row in rows::<Ordinary>("commands.jsonl") {
        let analysis = ::shell::analyse(&row.command, &surroundings);
        let unread = analysis.unknown.iter().find(|unknown| unknown.why.contains("not valid bash"));
        assert!(unread.is_none(), "{}: {}", row.id, row.command);
    }
}

/// Run with `RINGWALL_BLESS=1` to write down what is decided now; read the difference before
/// committing it.
#[test]
fn ordinary_commands_pass_and_the_exceptions_are_written_down() {
    let env = ShellEnv::new();
    let rows: Vec<Ordinary> = rows("commands.jsonl");
    let mut verdicts = BTreeMap::new();
    let mut changed = Vec::new();
    let mut lines = String::new();
    for row in &rows {
        let command = env.fill(&row.command);
        let judged = env.judge(&command, &env.host(), &env.host(), None);
        *verdicts.entry(judged.verdict).or_insert(0) += 1;
        let expected = row.expect.as_deref().unwrap_or("allow");
        if judged.verdict != expected {
            changed.push(format!(
                "{}: {} instead of {expected}: {}",
                row.id, judged.verdict, row.command
            ));
        }
        let mut line = json!({"id": row.id, "command": row.command});
        if judged.verdict != "allow" {
            line["expect"] = json!(judged.verdict);
            line["because"] = json!(env.because(&judged.reason));
        }
        lines += &format!("{line}\n");
    }
    if std::env::var_os("RINGWALL_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/commands.jsonl");
        std::fs::write(path, lines).unwrap();
        return;
    }
    assert!(changed.is_empty(), "{verdicts:?}\n{}", changed.join("\n"));
    assert!(rows.len() >= FEWEST_COMMANDS, "{} commands are left", rows.len());
    let allowed = verdicts.get("allow").copied().unwrap_or(0);
    assert!(allowed * 100 >= rows.len() * 85, "{verdicts:?}");
}

#[test]
fn a_redirect_says_what_moved_and_makes_the_quarantine() {
    let env = ShellEnv::new();
    std::fs::remove_dir_all(env.home().join("work")).unwrap();
    let judged = env.judge(
        "git clone https://example.org/o/r.git",
        &env.worktree(),
        &env.worktree(),
        Some("redirect"),
    );
    assert_eq!(judged.verdict, "redirect");
    let old = env.worktree().join("r");
    let new = env.quarantine().join("r");
    let line = format!(
        "[ringwall] redirected git clone to quarantine: {} -> {}",
        old.display(),
        new.display()
    );
    assert!(judged.stderr.contains(&line), "{}", judged.stderr);
    let mode = env.quarantine().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_quarantine_that_cannot_be_created_is_a_denial_and_recorded_as_one() {
    let env = ShellEnv::new();
    // No one, not even root, can create a directory in sysfs.
    let lines = "version = 1\n[quarantine]\ndir = \"/sys/ringwall-quarantine\"\n";
    let config = env.root.join("sysfs.toml");
    std::fs::write(&config, lines).unwrap();
    let mut hook = env.hook(&env.worktree(), None);
    hook.env("RINGWALL_CONFIG", config);
    let event = json!({
        "session_id": "s", "cwd": env.worktree(), "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "git clone https://example.org/o/r.git", "description": "d"},
    });
    let judged = Judged::read(feed(hook, event.to_string().as_bytes()));
    assert_eq!(judged.verdict, "deny");
    assert!(judged.reason.contains("cannot create the quarantine directory"), "{}", judged.reason);
    assert!(!judged.stderr.contains("redirected"), "{}", judged.stderr);
    let log = env.home().join(".local/state/ringwall/audit/log.jsonl");
    let log = std::fs::read_to_string(log).unwrap();
    let record: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&record["verdict"], &record["tool"]), (&json!("deny"), &json!("Bash")));
    assert!(record["rules"].to_string().contains("quarantine.dir"), "{record}");
}

#[test]
fn two_downloads_under_one_name_are_refused() {
    let env = ShellEnv::new();
    let command = "git clone https://example.org/a/r; git clone https://example.org/b/r";
    let judged = env.judge(command, &env.worktree(), &env.worktree(), Some("redirect"));
    assert_eq!(judged.verdict, "deny");
    assert!(judged.reason.contains("would both be written to"), "{}", judged.reason);
}

#[test]
fn half_a_correction_is_never_sent() {
    let env = ShellEnv::new();
    for command in [
        "git clone https://example.org/o/r; cd r; rm -rf .git",
        "git clone https://example.org/o/r /tmp/x && ls /tmp/x/src",
        "curl -o f.tgz https://example.org/f.tgz && tar xzf f.tgz",
    ] {
        let judged = env.judge(command, &env.worktree(), &env.worktree(), Some("redirect"));
        if let Some(corrected) = &judged.corrected {
            assert!(
                !corrected.contains("cd r;") && !corrected.contains("/tmp/x/src"),
                "{corrected}"
            );
            let again = env.judge(corrected, &env.worktree(), &env.worktree(), Some("redirect"));
            assert_eq!(again.verdict, "allow", "{corrected}: {}", again.reason);
        } else {
            assert_eq!(judged.verdict, "deny", "{command}");
        }
    }
}

#[test]
fn a_correction_that_does_not_come_out_clean_is_refused() {
    let env = ShellEnv::new();
    let spaced = env.home().join("my quarantine").display().to_string();
    let judge = |command: &str| {
        let hook = env.hook(&env.worktree(), None);
        let lines = format!("[quarantine]\ndir = {spaced:?}\n");
        std::fs::write(env.root.join("config.toml"), lines).unwrap();
        let event = json!({
            "session_id": "s", "cwd": env.worktree(), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": command, "timeout": 5000},
        });
        Judged::read(feed(hook, event.to_string().as_bytes()))
    };
    // Quotes inside quotes end the outer ones, so the corrected text would mean something else.
    let nested = judge("bash -c 'git clone https://example.org/o/r'");
    assert_eq!(nested.verdict, "deny", "{:?}", nested.corrected);
    // Outside of other quotes the same directory is no trouble.
    let plain = judge("git clone https://example.org/o/r");
    assert_eq!(plain.corrected, Some(format!("git clone https://example.org/o/r '{spaced}/r'")));
}

/// Runs commands in real bash as they are corrected: bytes land in quarantine and nowhere else.
/// `FILES` and `SITE` stand for the same files, on disk and served on loopback.
fn run_corrected(cases: &[(&str, &str)]) {
    let env = ShellEnv::new();
    let source = env.root.join("source");
    std::fs::create_dir_all(&source).unwrap();
    git(&source, &["init", "-q", "-b", "main", "repo"]);
    std::fs::write(source.join("repo/file.txt"), "content\n").unwrap();
    git(source.join("repo"), &["add", "."]);
    git(source.join("repo"), &["commit", "-q", "-m", "x"]);
    git(source.join("repo"), &["update-server-info"]);
    let tar =
        Command::new("tar").args(["czf", "a.tgz", "repo/file.txt"]).current_dir(&source).status();
    assert!(tar.unwrap().success());
    std::fs::write(source.join("plain.txt"), "plain\n").unwrap();
    let server = Server::plain(&source);
    for (command, landed) in cases {
        let command = command
            .replace("SITE", &server.url())
            .replace("FILES", &format!("file://{}", source.display()));
        let _ = std::fs::remove_dir_all(env.quarantine());
        let before = listing(&env.worktree());
        let judged = env.judge(&command, &env.worktree(), &env.worktree(), Some("redirect"));
        let corrected = judged
            .corrected
            .unwrap_or_else(|| panic!("{command}: {} {}", judged.verdict, judged.reason));
        let output = Command::new("bash")
            .args(["-c", &corrected])
            .env("HOME", env.home())
            .env("no_proxy", "127.0.0.1")
            .current_dir(env.worktree())
            .output()
            .unwrap();
        assert!(output.status.success(), "{corrected}: {}", text(&output.stderr));
        assert!(env.quarantine().join(landed).is_file(), "{corrected}");
        assert_eq!(listing(&env.worktree()), before, "{corrected} left something behind");
    }
}

#[test]
fn redirected_clones_land_in_quarantine_only() {
    run_corrected(&[
        ("git clone -q FILES/repo", "repo/file.txt"),
        ("git clone -q FILES/repo elsewhere && ls", "elsewhere/file.txt"),
        ("git clone -q SITE/repo/.git r2", "r2/file.txt"),
    ]);
}

// Where there is no curl or no wget, `cargo xtask test` leaves these out and says so.
#[test]
fn redirected_by_curl_lands_in_quarantine_only() {
    run_corrected(&[
        ("curl -s -O SITE/plain.txt", "plain.txt"),
        ("curl -s -o sub/c.txt SITE/plain.txt", "c.txt"),
        ("curl -s SITE/plain.txt > d.txt", "d.txt"),
        ("curl -s SITE/plain.txt | tee e.txt | wc -c", "e.txt"),
        ("curl -s SITE/a.tgz | tar -xz", "repo/file.txt"),
        ("bash -c 'curl -s -O SITE/plain.txt'", "plain.txt"),
    ]);
}

#[test]
fn redirected_by_wget_lands_in_quarantine_only() {
    run_corrected(&[
        ("wget -q SITE/plain.txt", "plain.txt"),
        ("wget -qO g.txt SITE/plain.txt", "g.txt"),
    ]);
}

fn listing(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn the_host_checkout_stays_as_it_was() {
    let env = ShellEnv::new();
    let host = env.host().display().to_string();
    for command in [
        format!("cd {host} && git commit -am x"),
        "cd ../.. && git commit -am x".to_owned(),
        format!("git -C {host} commit -am x"),
        format!("GIT_DIR={host}/.git git update-ref HEAD HEAD~1"),
    ] {
        let judged = env.judge(&command, &env.worktree(), &env.worktree(), None);
        assert_eq!(judged.verdict, "deny", "{command}");
        assert!(judged.reason.contains("another checkout"), "{}", judged.reason);
    }
    for command in ["git commit -am x", "git status", "git -C src log", "cd src && git diff"] {
        let judged = env.judge(command, &env.worktree(), &env.worktree(), None);
        assert_eq!(judged.verdict, "allow", "{command}: {}", judged.reason);
    }
}

#[test]
fn the_rules_are_told_at_the_start_and_by_prompt() {
    let env = ShellEnv::new();
    for name in ["SessionStart", "SubagentStart"] {
        let event = json!({"session_id": "s", "cwd": env.worktree(), "hook_event_name": name});
        let answer =
            feed(env.hook(&env.worktree(), Some("redirect")), event.to_string().as_bytes());
        let value: Value = serde_json::from_str(&answer.stdout).unwrap();
        let told = value["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert_eq!(value["hookSpecificOutput"]["hookEventName"], name);
        for part in [
            "isolated git worktree",
            env.worktree().to_str().unwrap(),
            env.quarantine().to_str().unwrap(),
            "A denial begins with `ringwall:`",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}

#[test]
fn git_is_pinned_to_the_worktree_only_where_the_user_wants_it() {
    let env = ShellEnv::new();
    let file = env.root.join("env-file");
    let start = |pin: bool| {
        let mut command = env.hook(&env.worktree(), None);
        std::fs::write(env.root.join("config.toml"), format!("[git]\npin_env = {pin}\n")).unwrap();
        command.env("CLAUDE_ENV_FILE", &file);
        let event = json!({"session_id": "s", "hook_event_name": "SessionStart", "cwd": "/"});
        feed(command, event.to_string().as_bytes());
        std::fs::read_to_string(&file).unwrap_or_default()
    };
    assert_eq!(start(false), "");
    let lines = start(true);
    assert!(
        lines.contains(&format!("export GIT_WORK_TREE={}\n", env.worktree().display())),
        "{lines}"
    );
    let output = Command::new("bash")
        .args(["-c", &format!(". {}; git rev-parse --abbrev-ref HEAD", file.display())])
        .env("HOME", env.home())
        .current_dir(env.root.join("home"))
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout).trim(), "agent", "{}", text(&output.stderr));
}
