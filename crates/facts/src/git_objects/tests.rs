use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

/// A repository, made by a script. `None` without git.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new(script: &str) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.sh(&format!("git init -q -b main . && {script}"));
        repository
    }

    fn sh(&self, script: &str) -> String {
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.0.path())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")])
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
            .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn id(&self, name: &str) -> ObjectId {
        ObjectId::parse(self.sh(&format!("git rev-parse {name}")).as_bytes()).unwrap()
    }

    fn find(&self, start: &str, path: &str, content: &str) -> bool {
        self.find_mode(start, path, content, 0o100_644)
    }

    fn find_mode(&self, start: &str, path: &str, content: &str, mode: u32) -> bool {
        let store = ObjectStore::open(&self.0.path().join(".git"));
        let history = History::new(&store, vec![self.id(start)], BTreeMap::new());
        let wanted = Version { mode, id: ObjectId::of_blob(content.as_bytes()) };
        let later = Instant::now() + Duration::from_mins(1);
        history.find(&[(Path::new(path), Some(wanted))], later) == [true]
    }
}

const TWO: &str = "mkdir -p d/e; echo one > d/e/f; git add -A; git commit -qm one; \
    echo two > d/e/f; echo x > x; git add -A; git commit -qm two; \
    git rm -qr d; git commit -qm three; git tag -a v -m v";

#[test]
fn every_version_of_a_path_is_found_loose_and_packed() {
    let repository = Repository::new(TWO);
    for packed in [false, true] {
        if packed {
            repository.sh("git gc -q --aggressive --prune=now");
        }
        for start in ["main", "v"] {
            assert!(repository.find(start, "d/e/f", "one\n"));
            assert!(repository.find(start, "d/e/f", "two\n"));
            assert!(!repository.find(start, "d/e/f", "three\n"));
            assert!(!repository.find(start, "D/e/f", "one\n"));
            assert!(!repository.find(start, "x", "one\n"));
            assert!(!repository.find_mode(start, "d/e/f", "one\n", 0o100_755));
        }
        assert!(!repository.find("main~2", "d/e/f", "two\n"));
    }
}

#[test]
fn differences_in_packs_are_resolved() {
    let grow = "for n in $(seq 60); do seq $n 4000 > f; git add f; git commit -qm $n; done; \
        git repack -adq --depth=50 --window=50";
    let repository = Repository::new(grow);
    let text = |from: usize| (from..=4000).map(|n| format!("{n}\n")).collect::<String>();
    for number in [1, 30, 60] {
        assert!(repository.find("main", "f", &text(number)));
    }
    assert!(!repository.find("main", "f", &text(61)));
    // Blobs are not read by a search; every object of the pack is what git says it is.
    let store = ObjectStore::open(&repository.0.path().join(".git"));
    let all = repository.sh("git rev-list --objects --all | cut -c1-40");
    assert!(all.lines().count() > 150);
    for id in all.lines() {
        assert!(store.read(ObjectId::parse(id.as_bytes()).unwrap()).is_some(), "{id}");
    }
}

#[test]
fn an_object_that_was_replaced_is_not_read() {
    let repository = Repository::new(TWO);
    // Another commit's object is put in place of the one that the search begins with.
    let evil = "git switch -q -c evil main~2; echo evil > d/e/f; git commit -qam evil; \
        from=$(git rev-parse evil); to=$(git rev-parse main); cd .git/objects; \
        file() { echo $1 | sed 's,^..,&/,'; }; chmod -R u+w .; cp $(file $from) $(file $to)";
    let main = repository.id("main");
    repository.sh(evil);
    let store = ObjectStore::open(&repository.0.path().join(".git"));
    assert!(store.read(main).is_none());
    let history = History::new(&store, vec![main], BTreeMap::new());
    let wanted = Version { mode: 0o100_644, id: ObjectId::of_blob(b"evil\n") };
    let later = Instant::now() + Duration::from_mins(1);
    assert_eq!(history.find(&[(Path::new("d/e/f"), Some(wanted))], later), [false]);
    // The same by a reference that replaces it.
    let repository = Repository::new(TWO);
    repository.sh("git switch -q -c evil main~2; echo evil > d/e/f; git commit -qam evil; \
        git replace main evil");
    assert!(!repository.find("refs/heads/main", "d/e/f", "evil\n"));
}

#[test]
fn commits_that_do_not_count_are_passed_over() {
    let repository = Repository::new(TWO);
    let store = ObjectStore::open(&repository.0.path().join(".git"));
    let [one, two, three] = ["main~2", "main~1", "main"].map(|name| repository.id(name));
    let later = Instant::now() + Duration::from_mins(1);
    let passed = History::new(&store, vec![three], BTreeMap::from([(two, vec![one])]));
    let content = |text: &str| ObjectId::of_blob(text.as_bytes());
    let version = |text: &str| Some(Version { mode: 0o100_644, id: content(text) });
    let path = Path::new("d/e/f");
    let wanted = [(path, version("two\n")), (path, version("one\n")), (path, None)];
    assert_eq!(passed.find(&wanted, later), [false, true, true]);
    assert_eq!(passed.has(one, later), Found::Yes);
    assert_eq!(passed.has(two, later), Found::No);
    assert_eq!(
        passed.has(one, Instant::now().checked_sub(Duration::from_secs(1)).unwrap()),
        Found::Unknown
    );
}
