//! Other programs to compare with: downloaded once into the target directory, not installed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::skipped;
use crate::failure::{Context, Failure};
use crate::workspace::{announce, output};

/// The version that is compared. It asks for a newer node than it needs.
const SANDBOX_RUNTIME: &str = "@anthropic-ai/sandbox-runtime@0.0.83";

/// A Debian package, and a file of it.
type Package = (&'static str, &'static str);

const BUBBLEWRAP: Package = ("bubblewrap", "usr/bin/bwrap");
const RIPGREP: Package = ("ripgrep", "usr/bin/rg");

/// What sandbox-runtime starts; the last one is a library of `socat`.
const HELPERS: &[Package] = &[("socat", "usr/bin/socat"), ("libwrap0", "usr/share/doc/libwrap0")];

/// The programs that could be downloaded.
pub(super) struct Peers {
    pub(super) bwrap: Option<PathBuf>,
    pub(super) ripgrep: Option<PathBuf>,
    pub(super) sandbox_runtime: Option<SandboxRuntime>,
}

/// sandbox-runtime, and where the programs that it starts are.
pub(super) struct SandboxRuntime {
    pub(super) program: PathBuf,
    programs: PathBuf,
    libraries: Vec<PathBuf>,
}

impl SandboxRuntime {
    /// The variables that it needs to find the programs that it starts.
    pub(super) fn variables(&self) -> Result<[(&'static str, OsString); 2], Failure> {
        let join =
            |dirs: Vec<PathBuf>| env::join_paths(dirs).context(|| "a path contains `:`".into());
        let path = env::var_os("PATH").unwrap_or_default();
        let programs = [self.programs.clone()].into_iter().chain(env::split_paths(&path));
        Ok([
            ("PATH", join(programs.collect())?),
            ("LD_LIBRARY_PATH", join(self.libraries.clone())?),
        ])
    }
}

impl Peers {
    pub(super) fn fetch(dir: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(dir).context(|| format!("cannot create `{}`", dir.display()))?;
        let dir = dir.canonicalize().context(|| format!("cannot find `{}`", dir.display()))?;
        let bwrap = debian(&dir, BUBBLEWRAP);
        let ripgrep = debian(&dir, RIPGREP);
        let ready = bwrap.is_ok() && ripgrep.is_ok();
        let runtime =
            if ready { sandbox_runtime(&dir) } else { Err(Failure::new("it needs bwrap and rg")) };
        let peers = Self {
            bwrap: had("bwrap", bwrap),
            ripgrep: had("rg", ripgrep),
            sandbox_runtime: had("sandbox-runtime", runtime),
        };
        peers.name_versions();
        Ok(peers)
    }

    /// A figure means little without the versions of what was measured.
    fn name_versions(&self) {
        for program in [&self.bwrap, &self.ripgrep].into_iter().flatten() {
            if let Ok(text) = output(Command::new(program).arg("--version")) {
                println!("{}", text.lines().next().unwrap_or_default());
            }
        }
        if self.sandbox_runtime.is_some() {
            println!("{SANDBOX_RUNTIME}");
        }
    }
}

fn had<T>(name: &str, peer: Result<T, Failure>) -> Option<T> {
    peer.map_err(|failure| skipped(name, &failure)).ok()
}

/// A file of a Debian package, which is unpacked unless it was before.
fn debian(dir: &Path, (package, file): Package) -> Result<PathBuf, Failure> {
    let root = dir.join("debian");
    let file = root.join(file);
    if file.exists() {
        return Ok(file);
    }
    fs::create_dir_all(&root).context(|| format!("cannot create `{}`", root.display()))?;
    let mut download = Command::new("apt-get");
    download.args(["download", package]).current_dir(&root);
    announce(&download);
    output(&mut download)?;
    output(Command::new("dpkg").arg("-x").arg(archive(&root, package)?).arg(&root))?;
    if file.exists() {
        Ok(file)
    } else {
        Err(Failure::new(format!("the package {package} does not contain the expected file")))
    }
}

/// The archive that `apt-get download` left, whatever its version.
fn archive(dir: &Path, package: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(dir).context(|| format!("cannot list `{}`", dir.display()))?;
    let start = format!("{package}_");
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start))
            && path.extension().is_some_and(|ending| ending == "deb")
    };
    let found = entries.flatten().map(|entry| entry.path()).find(is_it);
    found.ok_or_else(|| Failure::new(format!("{package} was not downloaded")))
}

fn sandbox_runtime(dir: &Path) -> Result<SandboxRuntime, Failure> {
    for helper in HELPERS {
        debian(dir, *helper)?;
    }
    let place = dir.join("npm");
    // Another version that was fetched before is replaced.
    let fetched = place.join("fetched");
    if fs::read_to_string(&fetched).ok().as_deref() != Some(SANDBOX_RUNTIME) {
        fs::create_dir_all(&place).context(|| format!("cannot create `{}`", place.display()))?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"]);
        install.arg("--engine-strict=false").arg("--prefix").arg(&place).arg(SANDBOX_RUNTIME);
        announce(&install);
        output(&mut install)?;
        fs::write(&fetched, SANDBOX_RUNTIME)
            .context(|| "cannot record what was downloaded".into())?;
    }
    let root = dir.join("debian/usr");
    // Libraries are in a directory that is named after the architecture.
    let libraries = fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    Ok(SandboxRuntime {
        program: place.join("node_modules/.bin/srt"),
        programs: root.join("bin"),
        libraries: libraries.map(|entry| entry.path()).collect(),
    })
}
