//! From the start of a sandbox with nothing to do to its end.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::scene::{Scene, write};
use super::skipped;
use crate::bench::measure::{Bound, Contender, Figure, Times, print_table, round_robin};
use crate::bench::peers::{Peers, SandboxRuntime};
use crate::failure::{Context, Failure};

const TRUE: &str = "true";
const BWRAP: &str = "bwrap";
const NAMESPACES: &str = "ringwall run";
const NOTIFY: &str = "ringwall run, notify";
const LANDLOCK: &str = "ringwall run, landlock";
const SANDBOX_RUNTIME: &str = "sandbox-runtime";

/// sandbox-runtime takes hundreds of milliseconds, so it runs in one round of these.
const SELDOM: u32 = 20;

const WEAK_CONFIG: &str = "\
version = 1

[confinement]
minimum = \"landlock\"
";

pub(super) fn measure(scene: &Scene, peers: &Peers, rounds: u32) -> Result<Vec<Figure>, Failure> {
    let mut sandboxes = Vec::new();
    sandboxes.extend(peers.bwrap.as_deref().map(|program| bwrap(program, scene)));
    sandboxes.push(Sandbox::ringwall(NAMESPACES, scene, []));
    sandboxes.push(Sandbox::ringwall(NOTIFY, scene, ["--attribution".into(), "notify".into()]));
    let config = scene.write("weak.toml", WEAK_CONFIG)?;
    let weak = ["--config".into(), config.into(), "--enforcement".into(), "landlock".into()];
    sandboxes.push(Sandbox::ringwall(LANDLOCK, scene, weak));
    if let Some(runtime) = &peers.sandbox_runtime {
        sandboxes.push(sandbox_runtime(runtime, scene)?);
    }

    let plain = scene.command(Path::new(TRUE));
    let mut contenders = vec![Contender::new(TRUE, plain, Vec::new())];
    for sandbox in &sandboxes {
        match sandbox.contender(scene) {
            Ok(contender) => contenders.push(contender),
            Err(failure) => skipped(sandbox.name, &failure),
        }
    }
    println!("\nstart-up: {} programs, {rounds} rounds", contenders.len());
    let all = round_robin(contenders, rounds)?;
    print_table(&all);

    let find = |name: &str| all.iter().find(|times| times.name == name);
    let ratio = |slow: &str, fast: &str| Some(Times::ratio_to(find(slow)?, find(fast)?));
    Ok(vec![
        Figure {
            claim: "ringwall run, relative to bwrap",
            bound: Bound::AtMost(1.25),
            measured: ratio(NAMESPACES, BWRAP),
        },
        Figure {
            claim: "sandbox-runtime, relative to ringwall run",
            bound: Bound::AtLeast(50.0),
            measured: ratio(SANDBOX_RUNTIME, NAMESPACES),
        },
        Figure {
            claim: "ringwall run with Landlock alone, relative to bwrap",
            bound: Bound::AtMost(1.0),
            measured: ratio(LANDLOCK, BWRAP),
        },
    ])
}

/// A program that runs another one in a sandbox.
struct Sandbox {
    name: &'static str,
    program: PathBuf,
    words: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    /// It runs in one round of so many.
    every: u32,
}

impl Sandbox {
    fn ringwall<const N: usize>(name: &'static str, scene: &Scene, options: [OsString; N]) -> Self {
        let words = [OsString::from("run")].into_iter().chain(options).chain(["--".into()]);
        Self {
            name,
            program: scene.ringwall.clone(),
            words: words.collect(),
            variables: Vec::new(),
            every: 1,
        }
    }

    /// This sandbox around `true`, after a check that it confines.
    fn contender(&self, scene: &Scene) -> Result<Contender, Failure> {
        self.prove(scene)?;
        let command = self.command(scene, &[TRUE.as_ref()]);
        Ok(Contender::new(self.name, command, Vec::new()).every(self.every))
    }

    fn command(&self, scene: &Scene, words: &[&OsStr]) -> Command {
        let mut command = scene.command(&self.program);
        command.args(&self.words).args(words).envs(self.variables.iter().cloned());
        command
    }

    /// The workspace can be written, and files beside it cannot.
    fn prove(&self, scene: &Scene) -> Result<(), Failure> {
        let (inside, outside) = (scene.workspace.join("inside"), scene.beside("outside"));
        let script = scene.workspace.join("prove.sh");
        let lines = format!("echo x >'{}'\necho x >'{}'\n", inside.display(), outside.display());
        write(&script, &lines)?;
        let mut command = self.command(scene, &["sh".as_ref(), script.as_os_str()]);
        command.stdin(Stdio::null());
        // Its exit status does not matter, only which files exist afterwards.
        let ended = command.output().context(|| format!("cannot start {}", self.name))?;
        let (wrote, escaped) = (inside.exists(), outside.exists());
        for made in [inside, outside, script] {
            let _ = fs::remove_file(made);
        }
        if escaped {
            return Err(Failure::new("it allows writing outside the workspace"));
        }
        if !wrote {
            let errors = String::from_utf8_lossy(&ended.stderr);
            let first = errors.lines().next().unwrap_or("it printed no error").to_owned();
            return Err(Failure::new(format!("it does not work here: {first}")));
        }
        Ok(())
    }
}

/// The example of its manual, plus the workspace.
fn bwrap(program: &Path, scene: &Scene) -> Sandbox {
    let fixed = "--unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin \
                 --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev \
                 --tmpfs /tmp";
    let workspace = scene.workspace.as_os_str();
    let rest = ["--bind".as_ref(), workspace, workspace, "--chdir".as_ref(), workspace];
    Sandbox {
        name: BWRAP,
        program: program.into(),
        words: fixed.split(' ').map(OsStr::new).chain(rest).map(OsStr::to_owned).collect(),
        variables: Vec::new(),
        every: 1,
    }
}

/// With a writable workspace and no network; its default allows no writing.
fn sandbox_runtime(runtime: &SandboxRuntime, scene: &Scene) -> Result<Sandbox, Failure> {
    let settings = json!({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [scene.workspace], "denyWrite": []},
    });
    let settings = scene.write("srt.json", &settings.to_string())?;
    Ok(Sandbox {
        name: SANDBOX_RUNTIME,
        program: runtime.program.clone(),
        words: vec!["--settings".into(), settings.into()],
        variables: runtime
            .variables()?
            .into_iter()
            .chain([("HOME", scene.beside("home").into())])
            .collect(),
        every: SELDOM,
    })
}
