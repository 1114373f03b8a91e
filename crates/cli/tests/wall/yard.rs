//! A small machine of its own for each test, outside /tmp: a home, a project, something outside.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

use serde_json::Value;

/// Who runs inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    /// The user that runs the tests.
    Me,
    /// A user without rights of its own; only root can become one.
    Nobody,
}

/// The number of that user: nobody else's.
const NOBODY: u32 = 54_321;

/// Everybody that this test run can be.
pub(crate) fn everybody() -> Vec<As> {
    if rustix::process::geteuid().is_root() { vec![As::Me, As::Nobody] } else { vec![As::Me] }
}

pub(crate) struct Yard {
    dir: PathBuf,
    who: As,
}

impl Yard {
    pub(crate) fn new(who: As) -> Self {
        open_fuse();
        let base = Path::new("/var/lib/ringwall-tests");
        let _ = std::fs::create_dir_all(base);
        let _ = std::fs::set_permissions(base, std::fs::Permissions::from_mode(0o755));
        let mut yard = tempfile::Builder::new();
        let yard = yard.prefix("yard-");
        // An ordinary user has no place there.
        let dir = yard.tempdir_in(base).or_else(|_| yard.tempdir()).unwrap().keep();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        let yard = Self { dir, who };
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_ringwall")).arg(yard.binary()).status();
        assert!(copied.unwrap().success());
        for (file, text) in [
            ("home/.ssh/id_ed25519", "SECRET-KEY\n"),
            ("home/.gitconfig", "[user]\n\tname = A User\n\temail = user@example.org\n"),
            ("outside/secret.txt", "SECRET-OUTSIDE\n"),
            ("project/hello.txt", "hello\n"),
        ] {
            yard.write(file, text);
        }
        yard
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn binary(&self) -> PathBuf {
        self.path("ringwall")
    }

    /// Writes a file that belongs to whoever runs inside.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.own();
        path
    }

    /// Writes the user's configuration.
    pub(crate) fn configure(&self, text: &str) {
        self.write("home/.config/ringwall/ringwall.toml", text);
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// Gives everything to whoever runs inside.
    pub(crate) fn own(&self) {
        if self.who == As::Nobody {
            let all = format!("{NOBODY}:{NOBODY}");
            let status = Command::new("chown").args(["-Rh", &all]).arg(&self.dir).status().unwrap();
            assert!(status.success());
        }
    }

    /// Gives one tree to whoever runs inside.
    pub(crate) fn own_tree(&self, path: &Path) {
        if self.who == As::Nobody {
            let all = format!("{NOBODY}:{NOBODY}");
            let status = Command::new("chown").args(["-Rh", &all]).arg(path).status().unwrap();
            assert!(status.success());
        }
    }

    /// A program as this yard's user, with nothing of the real environment but the search path.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = match self.who {
            As::Me => Command::new(program.as_ref()),
            As::Nobody => {
                let mut command = Command::new("setpriv");
                let user = NOBODY.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
                command.arg(program.as_ref());
                command
            }
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// `ringwall` with these arguments, in the project.
    pub(crate) fn ringwall(&self, args: &[&str]) -> Output {
        self.command(self.binary()).args(args).output().unwrap()
    }

    /// A shell script behind the wall.
    pub(crate) fn run(&self, options: &[&str], script: &str) -> Ran {
        self.run_with(&[], options, script)
    }

    /// The same, started with these variables besides.
    pub(crate) fn run_with(
        &self,
        variables: &[(&str, &str)],
        options: &[&str],
        script: &str,
    ) -> Ran {
        let events = self.path("events.jsonl");
        let _ = std::fs::remove_file(&events);
        let mut command = self.command(self.binary());
        command.args(["run", "--events", events.to_str().unwrap()]);
        command.args(options).args(["--", "/bin/bash", "-c", script]);
        Ran::new(&command.envs(variables.iter().copied()).output().unwrap(), &events)
    }

    /// The same with another home directory, for toolchains that are there.
    pub(crate) fn run_in_home(&self, home: &Path, script: &str) -> Ran {
        let events = self.path("events.jsonl");
        let _ = std::fs::remove_file(&events);
        let mut command = self.command(self.binary());
        command
            .args(["run", "--events"])
            .arg(&events)
            .args(["--", "/bin/bash", "-c", script])
            .env("HOME", home)
            .env("XDG_STATE_HOME", self.path("state"))
            .env("PATH", format!("{}/.cargo/bin:/usr/local/bin:/usr/bin:/bin", home.display()));
        Ran::new(&command.output().unwrap(), &events)
    }

    /// Does something with no wall around it, which must succeed.
    pub(crate) fn prepare(&self, script: &str) {
        let made = self.bare(script);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// The same script with no wall around it, as the same user in the same place.
    pub(crate) fn bare(&self, script: &str) -> Output {
        self.command("/bin/bash").args(["-c", script]).output().unwrap()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(&self.dir).status();
        let _ = std::fs::remove_dir_all(&self.dir);
        // The last one out; fails while others are in.
        let _ = std::fs::remove_dir("/var/lib/ringwall-tests");
    }
}

/// How a run went.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) events: Vec<Value>,
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, stdout, stderr, .. } = self;
        write!(f, "exit {code:?}\nstdout: {stdout}\nstderr: {stderr}\n")?;
        let told = |event: &&Value| event["event"] != "started";
        self.events.iter().filter(told).try_for_each(|event| writeln!(f, "{event}"))
    }
}

impl Ran {
    pub(crate) fn new(output: &Output, events: &Path) -> Self {
        let events = std::fs::read_to_string(events).unwrap_or_default();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            events: events.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        }
    }

    /// The events of one kind.
    pub(crate) fn events(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == kind).collect()
    }

    /// Violations that count: everything but probes.
    pub(crate) fn violations(&self) -> Vec<&Value> {
        self.events("violation").into_iter().filter(|event| event["class"] != "probe").collect()
    }
}

pub(crate) fn has_python() -> bool {
    let has = Path::new("/usr/bin/python3").exists();
    if !has {
        eprintln!("skipped: there is no /usr/bin/python3 to try it with");
    }
    has
}

/// An ordinary user needs /dev/fuse for the tripwire. Root may open it to others for the tests, and
/// says so.
fn open_fuse() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let device = Path::new("/dev/fuse");
        let Ok(metadata) = device.metadata() else {
            eprintln!("note: there is no /dev/fuse here; the wall attributes by notify");
            return;
        };
        let open_to_all = metadata.permissions().mode() & 0o666 == 0o666;
        if !open_to_all && rustix::process::geteuid().is_root() {
            let opened = std::fs::set_permissions(device, std::fs::Permissions::from_mode(0o666));
            eprintln!("note: /dev/fuse was opened to all users for these tests ({opened:?})");
        }
    });
}
