//! Two thousand made-up projects: the wall comes up in each, and what is protected stays as it is.

mod build;
mod shape;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use build::{Built, build};
use shape::Dice;

use crate::traces::processes;
use crate::yard::{As, Yard, everybody};

/// All layouts, and how many of them an ordinary user gets where root runs the tests.
const LAYOUTS: u64 = 2000;
const NOBODYS: u64 = 600;

/// Tries on every given path what would change it, and on the absent ones what would make them.
const ACTS: &str = r#"
use Fcntl;
shift @ARGV;
my @groups = ([], []);
my $group = 0;
for my $path (@ARGV) { if ($path eq "--") { $group++ } else { push @{$groups[$group]}, $path } }
sub new_file { sysopen(my $f, "mine/f", O_CREAT | O_WRONLY) and syswrite $f, "BROKEN" }
sub put { my ($path, $flags) = @_;
    sysopen(my $f, $path, O_WRONLY | O_NONBLOCK | $flags) and syswrite $f, "BROKEN" }
mkdir "mine";
for my $path (@{$groups[0]}) {
    put($path, O_TRUNC);
    put($path, O_APPEND);
    put("$path/new", O_CREAT);
    new_file();
    rename "mine/f", $path;
    mkdir "mine/d" and rename "mine/d", $path;
    link $path, "mine/linked" and put("mine/linked", O_TRUNC);
    symlink "/etc/passwd", "mine/s" and rename "mine/s", $path;
    chmod 0777, $path;
    truncate $path, 0;
    unlink $path;
    rmdir $path;
    rename $path, "mine/gone";
    (my $above = $path) =~ s{/?[^/]*$}{};
    if ($above ne ".") { rename $above, "mine/above"; rename $above, "$above.gone" }
}
for my $path (@{$groups[1]}) {
    put($path, O_CREAT | O_EXCL);
    symlink "/etc/passwd", $path;
    new_file();
    rename "mine/f", $path;
    new_file();
    link "mine/f", $path;
}
system "rm", "-rf", "mine";
print "done";
"#;

#[test]
fn every_project_gets_its_wall() {
    let nobodys = if everybody().len() > 1 { NOBODYS } else { 0 };
    let mine = LAYOUTS - nobodys;
    let parts = [(As::Me, 0..mine / 2), (As::Me, mine / 2..mine), (As::Nobody, mine..LAYOUTS)];
    std::thread::scope(|scope| {
        for (who, numbers) in parts {
            if !numbers.is_empty() {
                scope.spawn(move || many(who, numbers));
            }
        }
    });
}

fn many(who: As, numbers: std::ops::Range<u64>) {
    let yard = Yard::new(who);
    let config = "[violation]\naction = \"deny\"\n[filesystem]\ndeny_read = [\"**/.secret\"]\n";
    yard.write("home/.config/ringwall/ringwall.toml", config);
    let mut wrong = Vec::new();
    for number in numbers {
        let project = yard.path(&format!("layout-{number}"));
        let built = build(&yard, &project, &mut Dice::new(number));
        let (output, found) = try_out(&yard, &built);
        if !found.is_empty() {
            wrong.push(format!("layout {number}: {}\n{}", found.join("\n"), describe(&output)));
        }
        remove(&project);
        let _ = fs::remove_file(yard.path("events.jsonl"));
    }
    assert!(wrong.is_empty(), "{who:?}: {} wrong\n{}", wrong.len(), wrong.join("\n\n"));
    assert_eq!(yard.read("outside/secret.txt"), "SECRET-OUTSIDE\n");
    assert!(processes(&yard).is_empty());
}

/// Runs the acts in a project. What is wrong afterwards.
fn try_out(yard: &Yard, built: &Built) -> (Output, Vec<String>) {
    let before: Vec<_> = built.present.iter().map(|path| seen(&built.root.join(path))).collect();
    let output = run(yard, built);
    let mut wrong = Vec::new();
    if output.status.code() != Some(0) || output.stdout != b"done" {
        wrong.push("it did not run".to_owned());
    }
    let events = fs::read_to_string(yard.path("events.jsonl")).unwrap_or_default();
    if !events.contains("\"event\":\"started\"") {
        wrong.push("no `started`".to_owned());
    }
    for (path, before) in built.present.iter().zip(before) {
        let after = seen(&built.root.join(path));
        if after != before {
            wrong.push(format!("{}: {before} became {after}", path.display()));
        }
    }
    for path in &built.absent {
        if built.root.join(path).symlink_metadata().is_ok() {
            wrong.push(format!("{} came into being", path.display()));
        }
    }
    (output, wrong)
}

fn run(yard: &Yard, built: &Built) -> Output {
    let mut command = yard.command(yard.binary());
    command.current_dir(&built.root);
    command.args(["run", "--events"]).arg(yard.path("events.jsonl"));
    // The first argument must not look like an option of perl's.
    command.args(["--", "/usr/bin/perl", "-e", ACTS, "first"]);
    command.args(built.present.iter().map(|path| in_place(path))).arg("--");
    command.args(built.absent.iter().map(|path| in_place(path)));
    // Files, and not pipes: nobody reads while it runs.
    let [out, err] = ["out.txt", "err.txt"].map(|name| yard.path(name));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{} hangs", built.root.display());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = child.wait().unwrap();
    Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() }
}

fn in_place(path: &Path) -> OsString {
    Path::new(".").join(path).into_os_string()
}

/// Everything about an entry that a run could change.
fn seen(path: &Path) -> String {
    let Ok(found) = path.symlink_metadata() else { return "nothing".into() };
    let mut text = format!("{} {:o} {} {}", found.ino(), found.mode(), found.uid(), found.gid());
    if found.is_symlink() {
        text.push_str(&format!(" -> {:?}", fs::read_link(path)));
        // What a link leads to is protected with it, where it is a file.
        if let Ok(target) = path.canonicalize()
            && target.is_file()
        {
            text.push_str(&format!(" {}", seen(&target)));
        }
    } else if found.is_file() {
        text.push_str(&format!(" {:?}", fs::read_to_string(path).map_err(|error| error.kind())));
    } else if found.is_dir() && path.file_name().is_some_and(|name| name != ".git") {
        // Git writes into its own directory all the time.
        let names = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        text.push_str(&format!(" {names:?}"));
    }
    text
}

fn describe(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let told = |line: &&str| !line.starts_with("  ") && !line.contains("denied:");
    let lines: Vec<_> = text.lines().filter(told).take(6).collect();
    format!("{:?}\n{}", output.status.code(), lines.join("\n"))
}

/// Removes a tree whatever its modes and depth.
fn remove(dir: &Path) {
    if fs::remove_dir_all(dir).is_ok() {
        return;
    }
    let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(dir).status();
    let done = Command::new("rm").arg("-rf").arg(dir).status().unwrap();
    assert!(done.success());
}
