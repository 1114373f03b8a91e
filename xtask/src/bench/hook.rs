//! `cargo xtask bench hook`: what one hook call costs, from start to exit.
//!
//! Every hook must give the right answers before it is measured, and the audit log must be intact
//! afterwards: the speed of a hook that decides nothing means nothing.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use super::measure::{Bound, Contender, Figure, Times, print_figures, print_table, round_robin};
use super::{Common, build_ringwall};
use crate::failure::{Context, Failure};
use crate::workspace::{Workspace, fresh_dir, output, succeed};

const NODE_PEER: &str = include_str!("hook/peer.cjs");
const PYTHON_PEER: &str = include_str!("hook/peer.py");

const CONFIG: &str = "\
version = 1
level = \"readwrite\"

[filesystem]
deny_read = [\"**/.env\", \"**/*.pem\"]
";

const EMPTY: &str = "empty Rust program";
const RINGWALL_BASH: &str = "ringwall hook, Bash";
const RINGWALL_READ: &str = "ringwall hook, Read";
const NODE_BASH: &str = "the same in node, Bash";
const PYTHON_BASH: &str = "the same in Python, Bash";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    // Outside of this checkout, whose configuration would otherwise apply as well.
    let place = tempfile::tempdir().context(|| "cannot create a temporary directory".into())?;
    let scene = Scene::set(&place.path().join("hook"))?;
    let empty = build_empty(workspace, &scene)?;
    let ringwall = build_ringwall(workspace)?;
    let node = interpreter("node", &["-p", "process.execPath"]);
    let python = interpreter("python3", &["-c", "import sys; print(sys.executable)"]);

    let ringwall = Hook { program: ringwall, words: vec!["hook".into(), "claude".into()] };
    let node = node.map(|program| scene.script(program, &[], "peer.cjs", NODE_PEER)).transpose()?;
    // Without site packages, which may run code at every start.
    let alone = ["-I", "-S"];
    let python =
        python.map(|program| scene.script(program, &alone, "peer.py", PYTHON_PEER)).transpose()?;

    let mut contenders = vec![Contender::new(EMPTY, scene.command(&empty), scene.bash())];
    contenders.push(ringwall.contender(RINGWALL_BASH, &scene, scene.bash())?);
    contenders.push(ringwall.contender(RINGWALL_READ, &scene, scene.read_inside())?);
    if let Some(node) = node {
        contenders.push(node.contender(NODE_BASH, &scene, scene.bash())?);
    }
    if let Some(python) = python {
        contenders.push(python.contender(PYTHON_BASH, &scene, scene.bash())?);
    }

    println!("{} programs, {} rounds", contenders.len(), args.common.rounds);
    let all = round_robin(contenders, args.common.rounds)?;
    output(scene.command(&ringwall.program).args(["audit", "verify"]))?;

    print_table(&all);
    let find = |name: &str| all.iter().find(|times| times.name == name);
    let ratio = |slow: &str, fast: &str| Some(Times::ratio_to(find(slow)?, find(fast)?));
    let figures = [
        Figure {
            claim: "ringwall hook, relative to an empty program",
            bound: Bound::AtMost(2.0),
            measured: ratio(RINGWALL_BASH, EMPTY),
        },
        Figure {
            claim: "the same in node, relative to ringwall hook",
            bound: Bound::AtLeast(15.0),
            measured: ratio(NODE_BASH, RINGWALL_BASH),
        },
    ];
    Ok(print_figures(&figures, args.common.no_check))
}

/// A home, a project in it and a file outside of that project.
struct Scene {
    dir: PathBuf,
}

impl Scene {
    fn set(dir: &Path) -> Result<Self, Failure> {
        fresh_dir(dir)?;
        let dir = dir.canonicalize().context(|| format!("cannot find `{}`", dir.display()))?;
        let scene = Self { dir };
        fresh_dir(&scene.project().join("src"))?;
        scene.write("home/project/ringwall.toml", CONFIG)?;
        scene.write("home/project/src/main.rs", "fn main() {}\n")?;
        scene.write("home/outside.txt", "not yours\n")?;
        output(scene.command(Path::new("git")).args(["init", "--quiet"]))?;
        Ok(scene)
    }

    fn project(&self) -> PathBuf {
        self.dir.join("home/project")
    }

    fn write(&self, path: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.join(path);
        fs::write(&path, text).context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }

    fn script(
        &self,
        program: PathBuf,
        options: &[&str],
        name: &str,
        text: &str,
    ) -> Result<Hook, Failure> {
        let script = self.write(name, text)?;
        let words = options.iter().map(OsString::from).chain([script.into()]).collect();
        Ok(Hook { program, words })
    }

    /// A program in the project, as the agent would start it, with nothing of this environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.dir.join("home"))
            .env("CLAUDE_PROJECT_DIR", self.project())
            .env("PEER_LOG", self.dir.join("peer.jsonl"));
        command
    }

    fn bash(&self) -> Vec<u8> {
        let command = "cargo build --release 2>&1 | tail -n 20";
        self.call("Bash", &json!({"command": command, "description": "Build", "timeout": 120_000}))
    }

    fn bash_unsandboxed(&self) -> Vec<u8> {
        self.call("Bash", &json!({"command": "ls", "dangerouslyDisableSandbox": true}))
    }

    fn read_inside(&self) -> Vec<u8> {
        self.call("Read", &json!({"file_path": self.project().join("src/main.rs")}))
    }

    fn read_outside(&self) -> Vec<u8> {
        self.call("Read", &json!({"file_path": self.dir.join("home/outside.txt")}))
    }

    fn call(&self, tool: &str, input: &Value) -> Vec<u8> {
        let call = json!({
            "session_id": "5c0e7a1b-2f0d-4f7e-9f53-6b1f0a3d8e21",
            "transcript_path": self.dir.join("home/.claude/projects/p/s.jsonl"),
            "cwd": self.project(),
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": input,
            "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
        });
        call.to_string().into_bytes()
    }
}

/// A program that answers hook calls.
struct Hook {
    program: PathBuf,
    words: Vec<OsString>,
}

impl Hook {
    /// This hook on an allowed call, after a check that its answers are right.
    fn contender(&self, name: &str, scene: &Scene, input: Vec<u8>) -> Result<Contender, Failure> {
        for (call, expected) in [
            (&input, "allow"),
            (&scene.read_inside(), "allow"),
            (&scene.read_outside(), "deny"),
            (&scene.bash_unsandboxed(), "deny"),
        ] {
            let verdict = self.answer(name, scene, call)?;
            if verdict != expected {
                let call = String::from_utf8_lossy(call);
                let text =
                    format!("{name} is broken: expected {expected}, got {verdict} for {call}");
                return Err(Failure::new(text));
            }
        }
        Ok(Contender::new(name, self.command(scene), input))
    }

    fn command(&self, scene: &Scene) -> Command {
        let mut command = scene.command(&self.program);
        command.args(&self.words);
        command
    }

    fn answer(&self, name: &str, scene: &Scene, call: &[u8]) -> Result<String, Failure> {
        let mut command = self.command(scene);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context(|| format!("cannot start {name}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(call).context(|| format!("cannot write to {name}"))?;
        }
        let output = child.wait_with_output().context(|| format!("cannot wait for {name}"))?;
        if !output.status.success() || !output.stderr.is_empty() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let text = format!("{name} is broken: {} with {errors}", output.status);
            return Err(Failure::new(text));
        }
        if output.stdout.is_empty() {
            return Ok("allow".into());
        }
        let answer: Value = serde_json::from_slice(&output.stdout)
            .context(|| format!("{name} is broken: its answer is not JSON"))?;
        let verdict = answer.pointer("/hookSpecificOutput/permissionDecision");
        Ok(verdict.and_then(Value::as_str).unwrap_or("no verdict").to_owned())
    }
}

/// The cheapest possible Rust program, built like Ringwall.
fn build_empty(workspace: &Workspace, scene: &Scene) -> Result<PathBuf, Failure> {
    let source = scene.write("empty.rs", "fn main() {}\n")?;
    let program = scene.dir.join("empty");
    let mut rustc = workspace.rustc();
    rustc.args(["--edition=2024", "-Copt-level=3", "-Clto=fat", "-Cpanic=abort"]);
    // Statically linked like Ringwall, so that the difference is our own code.
    rustc.args(["-Cstrip=symbols", "-Ccodegen-units=1", "-Ctarget-feature=+crt-static", "-o"]);
    rustc.arg(&program).arg(source);
    succeed(&mut rustc)?;
    Ok(program)
}

/// The real program behind a name, which may be the shim of a version manager.
fn interpreter(name: &str, own_path: &[&str]) -> Option<PathBuf> {
    match output(Command::new(name).args(own_path)) {
        Ok(path) => Some(path.into()),
        Err(failure) => {
            println!("skipped: the hook in {name}: {failure}");
            None
        }
    }
}
