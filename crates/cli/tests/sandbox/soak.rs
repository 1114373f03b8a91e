//! Random acts by a hostile program while a user works in the same project: nothing of it shows outside,
//! no event is lost, the supervisor does not grow, and every run ends.
//!
//! The test command gives it some seconds. `cargo xtask soak` lets it run as long as one likes, with
//! a seed of one's own: a run is repeated by its seed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fixtures::{TestEnv, User, has_python, users};
use rustix::pty::OpenptFlags;
use serde_json::Value;

use crate::traces::Traces;

/// Protected names. The host writes the first three itself while a run goes on.
const PROTECTED: &[&str] = &[
    ".git/config",
    ".envrc",
    ".mcp.json",
    ".git/hooks/pre-commit",
    ".git/hooks/post-checkout",
    ".git/info/attributes",
    ".git/commondir",
    ".claude/settings.json",
    ".vscode/tasks.json",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".hg/hgrc",
    ".kiro/hooks/x",
    "ringwall.toml",
    "sub/.envrc",
    "sub/.git/config",
    "sub/.git/hooks/pre-commit",
    "other.git/config",
];

/// The limits end a run that has been stopped; the rest of it is refused.
const CONFIG: &str = r#"version = 1
[violation]
action = "deny"
[filesystem]
deny_read = ["**/*.pem"]
[limits]
wall_seconds = 3
processes = 200
memory = "600MiB"
file_size = "16MiB"
"#;

/// No run takes as long as this, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much the supervisor may grow while a run goes on, in KiB.
const GROWTH: u64 = 16 * 1024;

/// How long, how often, and from which seed on.
struct Soak {
    seconds: Option<u64>,
    runs: u64,
    seed: u64,
}

impl Soak {
    fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
        let now = || u64::from(std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos());
        let runs = number("RINGWALL_SOAK_RUNS");
        Self {
            seconds: runs.is_none().then_some(20),
            runs: runs.unwrap_or(u64::MAX),
            seed: number("RINGWALL_SOAK_SEED").unwrap_or_else(now),
        }
    }
}

#[test]
fn a_hostile_program_among_a_users_work_changes_nothing_outside() {
    if !has_python() {
        return;
    }
    let soak = Soak::from_environment();
    eprintln!("soak: the first seed is {}", soak.seed);
    std::thread::scope(|scope| {
        for who in users() {
            let soak = &soak;
            scope.spawn(move || {
                let started = Instant::now();
                let ground = Ground::new(who);
                let mut worst = 0;
                let mut count = 0;
                for seed in soak.seed..soak.seed.saturating_add(soak.runs) {
                    if soak.seconds.is_some_and(|most| started.elapsed().as_secs() >= most) {
                        break;
                    }
                    worst = worst.max(ground.run(seed));
                    count += 1;
                }
                eprintln!(
                    "soak: {count} runs as {who:?}; a supervisor grew by {worst} KiB at most"
                );
            });
        }
    });
}

/// Where the runs of one user happen.
struct Ground {
    env: TestEnv,
    who: User,
}

impl Ground {
    fn new(who: User) -> Self {
        let env = TestEnv::new(who);
        for (path, text) in [
            ("deny.toml", CONFIG),
            ("hostile.py", include_str!("soak/hostile.py")),
            ("host.sh", include_str!("soak/host.sh")),
            ("canary", "unharmed\n"),
            ("outside/victim.txt", "unharmed\n"),
            ("home/.bashrc", "# unharmed\n"),
            ("decoy/x", "unharmed\n"),
            // Ringwall keeps its log beside it.
            ("home/.local/state/other", "unharmed\n"),
        ] {
            env.write(path, text);
        }
        env.prepare(
            "git init -q . && echo '# host' > .envrc && echo '{}' > .mcp.json && echo x > key.pem
            mkdir -p sub .vscode .husky && echo '{}' > .vscode/tasks.json && git init -q sub
            echo '# host' > sub/.envrc; echo '#!/bin/sh' > .husky/pre-commit
            git add hello.txt && git -c user.name=H -c user.email=h@example.org commit -qm first
            mv ../project ../kept",
        );
        Self { env, who }
    }

    /// One run with everything that is checked after it. Returns how much the supervisor grew.
    fn run(&self, seed: u64) -> u64 {
        let env = &self.env;
        let case = format!(
            "seed {seed} as {:?} (again: `cargo xtask soak --runs 1 --seed {seed}`)",
            self.who
        );
        env.command("cp")
            .args(["-a", "kept", "project"])
            .current_dir(env.path(""))
            .status()
            .unwrap();
        let events = env.path("events.jsonl");
        let _ = fs::remove_file(&events);
        let outside = self.outside();
        let traces = Traces::before(env);
        fs::write(env.path("running"), "").unwrap();
        let mut host = env.command("bash").arg(env.path("host.sh")).spawn().unwrap();
        let mut run = self.start(seed, &events);
        let since = Instant::now();
        let (mut first, mut last) = (None, 0);
        let status = loop {
            if let Some(status) = run.try_wait().unwrap() {
                break status;
            }
            if let Some(peak) = peak(&run).filter(|_| events.exists()) {
                first.get_or_insert(peak);
                last = peak;
            }
            if since.elapsed() > PATIENCE {
                let state = fs::read_to_string(format!("/proc/{}/wchan", run.id()));
                let _ = run.kill();
                panic!("{case}: the run did not end; its supervisor is in {state:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        fs::remove_file(env.path("running")).unwrap();
        host.wait().unwrap();
        traces.nothing_but_files(&case, &[run.id()]);
        let said = fs::read_to_string(env.path("said")).unwrap_or_default();
        assert!(status.code().is_some_and(|code| code != 69), "{case}: {status}: {said}");
        self.check_events(&case, &events);
        self.check_protected(&case);
        let now = self.outside();
        let differs = |(path, look): &(&PathBuf, &String)| now.get(*path) != Some(*look);
        let gone: Vec<_> = outside.iter().filter(differs).collect();
        let new: Vec<_> = now.iter().filter(|(path, _)| !outside.contains_key(*path)).collect();
        assert!(gone.is_empty() && new.is_empty(), "{case}: {gone:?}, {new:?}");
        let grew = last.saturating_sub(first.unwrap_or(last));
        assert!(grew < GROWTH, "{case}: the supervisor grew by {grew} KiB");
        env.prepare("cd ..; chmod -R u+rwx project; rm -rf project decoy; mkdir project decoy; echo unharmed > decoy/x; rmdir project");
        grew
    }

    /// Half of the runs have a terminal.
    fn start(&self, seed: u64, events: &Path) -> Child {
        let env = &self.env;
        let on_terminal = seed % 2 == 1;
        let mut command = if on_terminal {
            let mut command = env.command("setsid");
            command.arg("--ctty").arg(env.binary());
            command
        } else {
            env.command(env.binary())
        };
        command.args(["run", "--config"]).arg(env.path("deny.toml")).arg("--events").arg(events);
        command.args(["--allow-read"]).arg(env.path("hostile.py"));
        command.args(["--", "/usr/bin/python3", "-IS"]).arg(env.path("hostile.py"));
        command.args([seed.to_string(), "60".into()]);
        command.arg(env.path("outside")).arg(env.path("decoy")).args(PROTECTED);
        if on_terminal {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let master = rustix::pty::openpt(flags).unwrap();
            rustix::pty::grantpt(&master).unwrap();
            rustix::pty::unlockpt(&master).unwrap();
            let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
            let end =
                || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
            command.stdin(end()).stdout(end()).stderr(end());
            // Somebody looks at the screen as long as there is one.
            let mut screen = File::from(master);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while screen.read(&mut bytes).is_ok_and(|length| length > 0) {}
            });
        } else {
            let said = File::create(env.path("said")).unwrap();
            command.stdout(Stdio::null()).stderr(said);
        }
        command.spawn().unwrap()
    }

    /// The first is `started` and the last `stopped`, every line is whole, and what was counted was
    /// reported: each attempt once.
    fn check_events(&self, case: &str, events: &Path) {
        let text = fs::read_to_string(events).unwrap_or_default();
        let parse = |line| serde_json::from_str::<Value>(line);
        let all: Vec<_> = text
            .lines()
            .map(|line| parse(line).unwrap_or_else(|error| panic!("{case}: {error}: {line}")))
            .collect();
        let kind =
            |event: Option<&Value>| event.map(|event| event["event"].as_str().unwrap().to_owned());
        assert_eq!(kind(all.first()).as_deref(), Some("started"), "{case}: {text}");
        assert_eq!(kind(all.last()).as_deref(), Some("stopped"), "{case}: {text}");
        assert!(all.iter().all(|event| event["run"] == all[0]["run"]), "{case}");
        let counts = &all.last().unwrap()["violations"];
        for class in ["probe", "deny", "stop"] {
            let of_class =
                |event: &&Value| event["event"] == "violation" && event["class"] == class;
            let reported = all.iter().filter(of_class).count() as u64;
            let counted = counts[class].as_u64().unwrap();
            assert!(reported <= counted, "{case}: {class}: {reported} of {counted}");
            assert_eq!(reported == 0, counted == 0, "{case}: {class}: {reported} of {counted}");
        }
        let _ = self;
    }

    /// Protected names are what the host made them, or not there.
    fn check_protected(&self, case: &str) {
        for name in PROTECTED {
            let path = self.env.path("project").join(name);
            let Ok(found) = path.symlink_metadata() else { continue };
            // In a repository that the run created, what names no program may be there.
            let (now, was) = (fs::read(&path), fs::read(self.env.path("kept").join(name)));
            let text = String::from_utf8_lossy(now.as_deref().unwrap_or_default()).into_owned();
            assert!(!text.contains("EVIL"), "{case}: {name} says {text}");
            let by_host = PROTECTED.iter().take(3).any(|own| own == name);
            if was.is_ok() && !by_host {
                assert_eq!(was.ok(), now.ok(), "{case}: {name} was changed");
            }
            assert!(was_regular(&found) || found.is_dir(), "{case}: {name} is {found:?}");
        }
    }

    /// Everything beside the project that a run must not change, as it looks.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut looks = BTreeMap::new();
        let mut todo = vec![self.env.path("")];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                // What the host and Ringwall write themselves. What the decoy is for is seen below.
                let own = ["project", "events.jsonl", "running", "said", "ringwall"];
                if own.contains(&name.as_str()) || name.starts_with("saved.") {
                    continue;
                }
                let found = path.symlink_metadata().unwrap();
                if path.starts_with(self.env.path("decoy")) {
                    let text =
                        String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                    assert!(!text.contains("EVIL"), "{}: {text}", path.display());
                    continue;
                }
                let text = if found.is_file() {
                    String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
                } else {
                    String::new()
                };
                if found.is_dir() {
                    todo.push(path.clone());
                }
                let times = if found.is_dir() { 0 } else { found.mtime() };
                let (mode, owner) = (found.permissions().mode(), found.uid());
                looks.insert(path, format!("{mode:o} {owner} {times} {text}"));
            }
        }
        looks
    }
}

fn was_regular(found: &fs::Metadata) -> bool {
    found.is_file()
}

/// The most memory that a process has had so far, in KiB.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
