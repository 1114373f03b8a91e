//! [`EscapeEnv`]: a test environment with everything in it that an attempt could be after, and a neighbour on the
//! host who holds secrets and would hear of what comes out.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fixtures::{TestEnv, User};

use super::neighbour::Neighbour;
use super::renewal::{Looks, RENEWED, renew};
use super::row::{How, Row, Sign};

/// Everything that exists for one series of attempts.
pub(crate) struct EscapeEnv {
    /// Ends before its place is taken away.
    neighbour: Neighbour,
    pub(crate) env: TestEnv,
    pub(crate) is_root: bool,
    pub(crate) mark: String,
    secret: String,
    python: PathBuf,
    facts: BTreeMap<String, String>,
    shared: Shared,
    /// How everything looked when it was new.
    looks: Looks,
}

/// What is built around an attempt.
pub(crate) struct Wall {
    /// Options of `ringwall run`.
    pub(crate) options: &'static [&'static str],
    /// Layers that are left out.
    pub(crate) omit: &'static str,
}

/// How an attempt went.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) ran: bool,
    pub(crate) escaped: bool,
    pub(crate) output: Output,
}

/// What the wall is told. `deny`: the script goes on to its end.
const CONFIG: &str = r#"
version = 1
[violation]
action = "deny"
[filesystem]
allow_write = ["ground"]
deny_read = ["**/*.pem"]
deny_write = ["project/frozen.txt", "project/frozen"]
[limits]
processes = 150
memory = "400MiB"
file_size = "8MiB"
"#;

impl EscapeEnv {
    /// Nothing if this machine lacks what the attempts are written in.
    pub(crate) fn new(who: User) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(python) = program("python3") else {
            eprintln!("skipped: no python3 in /usr/bin or /usr/local/bin to try escapes with");
            return None;
        };
        let Some(compiler) = program("gcc").or_else(|| program("cc")) else {
            eprintln!("skipped: no C compiler to try escapes with");
            return None;
        };
        let env = TestEnv::new(who);
        let name =
            format!("ringwall-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let secret = format!("kept{:x}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
        let is_root = who == User::Me && rustix::process::geteuid().is_root();
        env.write("wall.toml", CONFIG);
        env.write("weak.toml", &format!("{CONFIG}[confinement]\nminimum = \"landlock\"\n"));
        env.write("run/secret.txt", &secret);
        for dir in RENEWED {
            std::fs::remove_dir_all(env.path(dir)).unwrap_or_default();
        }
        for dir in ["kept", "ground"] {
            std::fs::create_dir_all(env.path(dir)).unwrap();
        }
        env.own();
        let made = env
            .command("/bin/bash")
            .current_dir(env.path("kept"))
            .args(["-c", include_str!("setup.sh")])
            .envs([("SECRET", &secret), ("PYTHON", &python.display().to_string())])
            .env("YARD", env.path(""))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        compile(&compiler, &env);
        let shared = ["/tmp", "/var/tmp", "/dev/shm"].map(|dir| Path::new(dir).join(&name));
        let shared = Shared(shared.into());
        for dir in &shared.0 {
            let made = env.command("mkdir").arg(dir).current_dir("/").status().unwrap();
            assert!(made.success());
            std::fs::write(dir.join("secret.txt"), &secret).unwrap();
        }
        let looks = renew(&env, &Looks::new());
        let mut facts: BTreeMap<String, String> = [
            ("YARD", env.path("")),
            ("PROJECT", env.project()),
            ("OUTSIDE", env.path("outside")),
            ("HOMEDIR", env.home()),
            ("RUN", env.path("run")),
            ("PYTHON", python.clone()),
            ("NAME", name.clone().into()),
            ("DEVICE", device(&env.path("run")).into()),
        ]
        .map(|(name, value)| {
            (name.to_owned(), value.display().to_string().trim_end_matches('/').to_owned())
        })
        .into();
        let neighbour = Neighbour::start(&env, &python, &name, &secret, &mut facts);
        let mark = String::new();
        Some(Self { neighbour, env, is_root, mark, secret, python, facts, shared, looks })
    }

    /// A number that the neighbour told, such as its process.
    pub(crate) fn fact(&self, name: &str) -> &str {
        &self.facts[name]
    }

    /// Tries a row, behind a wall or with nothing around it.
    pub(crate) fn attempt(&mut self, row: &Row, wall: Option<&Wall>) -> Tried {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        self.looks = renew(&self.env, &self.looks);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        self.mark = format!("mark{}x{number}x", std::process::id());
        self.neighbour.forget();
        let output = self.command(row, wall).output().unwrap();
        if matches!(row.sign, Sign::Heard | Sign::Host(_)) {
            self.neighbour.catch_up();
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        let says = |word: &str| stdout.lines().any(|line| line.trim_end() == word);
        let escaped = match row.sign {
            Sign::Secret => stdout.contains(&self.secret),
            Sign::Says => says("OPEN"),
            Sign::Mark(file) => {
                let text = std::fs::read(self.env.path(file)).unwrap_or_default();
                String::from_utf8_lossy(&text).contains(&self.mark)
            }
            Sign::Heard => self.neighbour.heard(&self.mark),
            Sign::Host(changed) => changed(self),
        };
        let ran = says("RAN");
        self.clear_up(row);
        Tried { ran, escaped, output }
    }

    /// Whether the neighbour heard something.
    pub(crate) fn heard(&self, text: &str) -> bool {
        self.neighbour.heard(text)
    }

    /// The processes of the host that carry the mark of this attempt.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let carries = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.mark)
        };
        entries
            .filter(carries)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn command(&self, row: &Row, wall: Option<&Wall>) -> Command {
        let python = self.python.to_str().unwrap();
        let mut words: Vec<String> = Vec::new();
        if row.terminal {
            let spawn = "import pty, sys; pty.spawn(sys.argv[1:])";
            words.extend([python, "-c", spawn].map(String::from));
        }
        let (before, after) = (row.before, row.after);
        // A shell stands for the supervisor where there is none.
        let around = format!("{}\n{before}\n\"$@\"\n{after}", self.bash_facts());
        words.extend(["timeout", "--foreground", "-k", "5", "120"].map(String::from));
        words.extend(["/bin/bash".into(), "-c".into(), around, "around".into()]);
        if let Some(wall) = wall {
            let weak = wall.options.contains(&"landlock");
            let config = self.env.path(if weak { "weak.toml" } else { "wall.toml" });
            let binary = self.env.binary();
            words.extend([binary.display().to_string(), "run".into(), "--config".into()]);
            words.extend([config.display().to_string()]);
            words.extend(wall.options.iter().map(|word| String::from(*word)));
            words.push("--".into());
        }
        words.extend(match row.how {
            How::Bash(text) => {
                let facts = self.bash_facts();
                let text = format!("exec 2>&1; echo RAN\n{facts}\n{text}");
                ["/bin/bash".into(), "-c".into(), text]
            }
            How::Python(text) => {
                let facts = self.python_facts();
                let calls = include_str!("calls.py");
                let start = "os.dup2(1, 2)\nprint('RAN', flush=True)";
                [python.into(), "-ISc".into(), format!("{calls}\n{start}\n{facts}\n{text}")]
            }
        });
        let mut words = words.into_iter();
        let mut command = self.env.command(words.next().unwrap());
        command.args(words).env("API_TOKEN", &self.secret);
        command.env("RINGWALL_OMIT", wall.map_or("", |wall| wall.omit));
        command
    }

    fn bash_facts(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("{name}='{value}'\n"));
        format!("{}MARK={}", facts.collect::<String>(), self.mark)
    }

    fn python_facts(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| match value.parse::<u64>() {
            Ok(number) => format!("{name} = {number}\n"),
            Err(_) => format!("{name} = '{value}'\n"),
        });
        format!("{}MARK = '{}'", facts.collect::<String>(), self.mark)
    }

    fn clear_up(&self, row: &Row) {
        if matches!(row.sign, Sign::Host(_)) {
            for pid in self.survivors() {
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
        }
        let _ = std::fs::remove_file(self.env.path("run/new"));
        for dir in &self.shared.0 {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                if entry.file_name() != "secret.txt" {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// Directories of the attempt in places that belong to everybody.
struct Shared(Vec<PathBuf>);

impl Drop for Shared {
    fn drop(&mut self) {
        for dir in &self.0 {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// A program of the system, not one of the user's.
fn program(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/bin", "/usr/local/bin"].iter();
    dirs.map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

/// The small program of the project, and one more that runs as its owner.
fn compile(compiler: &Path, env: &TestEnv) {
    let project = env.path("kept/project");
    std::fs::write(env.path("escape.c"), include_str!("escape.c")).unwrap();
    let build = |kind: &[&str]| {
        let mut command = Command::new(compiler);
        command.arg(env.path("escape.c")).args(["-Os", "-s", "-pthread", "-o"]);
        command.arg(project.join("escape")).args(kind).stderr(Stdio::null()).status().unwrap()
    };
    if !build(&["-static"]).success() {
        eprintln!("skipped: a program without libraries, for there is no static C library");
        assert!(build(&[]).success());
    }
    env.own();
    std::fs::copy(project.join("escape"), project.join("risen")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(project.join("risen"), mode).unwrap();
}

/// The block device that a directory is on, as `major:minor`.
fn device(path: &Path) -> String {
    let device = path.metadata().unwrap().dev();
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}
