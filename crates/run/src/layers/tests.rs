//! Layers with what a hostile run could leave in them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/file"), "mine").unwrap();
        Self { dir }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn workspace(&self) -> AbsPath {
        AbsPath::lexical(&self.dir.path().canonicalize().unwrap().join("work")).unwrap()
    }

    fn take(&self) -> (PathBuf, Held) {
        match take(&self.state(), &self.workspace()) {
            (PrivateLayer::Kept(place), Some(held)) => (place.as_path().to_path_buf(), held),
            (other, _) => panic!("{other}"),
        }
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.state().join(PLACE)).unwrap().count()
    }
}

#[test]
fn a_layer_lasts_and_only_one_run_has_it() {
    let place = Place::new();
    let (dir, held) = place.take();
    std::fs::write(dir.join("own/kept"), "").unwrap();
    let in_use = PrivateLayer::Temporary(WhyTemporary::InUse);
    assert_eq!(take(&place.state(), &place.workspace()).0, in_use);
    assert_eq!(look(&place.state(), &place.workspace()), in_use);
    assert_eq!(held.finish(ByteSize(1 << 30)), None);
    drop(held);
    let (again, _held) = place.take();
    assert_eq!(again, dir);
    assert!(dir.join("own/kept").exists());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&place.state().join(PLACE))), (0o700, 0o700));
}

#[test]
fn a_directory_that_replaces_the_workspace_gets_a_layer_of_its_own() {
    let place = Place::new();
    let (dir, held) = place.take();
    std::fs::write(dir.join("own/poison"), "").unwrap();
    drop(held);
    let workspace = place.workspace();
    std::fs::rename(workspace.as_path(), place.dir.path().join("old")).unwrap();
    std::fs::create_dir(workspace.as_path()).unwrap();
    let (dir, held) = place.take();
    assert!(!dir.join("own/poison").exists());
    held.finish(ByteSize(1 << 30));
    assert_eq!(place.left(), 1);
}

#[test]
fn a_link_in_the_place_of_a_layer_is_not_followed() {
    let place = Place::new();
    let (dir, held) = place.take();
    drop(held);
    std::fs::remove_dir_all(&dir).unwrap();
    symlink(place.dir.path().join("outside"), &dir).unwrap();
    let (layer, held) = take(&place.state(), &place.workspace());
    assert!(matches!(layer, PrivateLayer::Temporary(WhyTemporary::Unusable(_))), "{layer}");
    assert!(held.is_none());
    let outside = std::fs::read_dir(place.dir.path().join("outside")).unwrap();
    assert_eq!(outside.count(), 1);
}

#[test]
fn a_layer_that_others_can_enter_is_closed_again() {
    let place = Place::new();
    let (dir, held) = place.take();
    drop(held);
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (dir, _held) = place.take();
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

/// What an earlier run could have left: links out of the layer, directories that cannot be entered and
/// are deeper than any path, files that are devices for the kernel.
fn fill_with_traps(dir: &Path, outside: &Path) {
    let own = dir.join("own/+cache");
    std::fs::create_dir(&own).unwrap();
    symlink(outside, own.join("link")).unwrap();
    symlink(outside.join("file"), own.join("file-link")).unwrap();
    std::fs::hard_link(outside.join("file"), own.join("hard")).unwrap();
    std::fs::create_dir(own.join("closed")).unwrap();
    std::fs::write(own.join("closed/x"), "x").unwrap();
    std::fs::set_permissions(own.join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, own.join("fifo"), fifo, Mode::RWXU, 0).unwrap();
    std::fs::write(own.join("setuid"), "").unwrap();
    std::fs::set_permissions(own.join("setuid"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    let mut at = rustix::fs::open(&own, DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&at, "deeper", Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "deeper", DIRECTORY, Mode::empty()).unwrap();
    }
    rustix::fs::symlinkat(outside, &at, "link").unwrap();
}

#[test]
fn what_a_run_leaves_is_removed_without_following_it() {
    let place = Place::new();
    let outside = place.dir.path().join("outside");
    let (dir, held) = place.take();
    fill_with_traps(&dir, &outside);
    let which = Which::default();
    let found = remove_layers(&place.state(), &which).unwrap();
    assert!(found.iter().all(|layer| !layer.removed && layer.kept.is_some()), "{found:?}");
    drop(held);
    let dry = Which { dry_run: true, ..Which::default() };
    assert_eq!(remove_layers(&place.state(), &dry).unwrap().len(), 1);
    assert!(dir.exists());
    let recent = Which { unused_for: Some(Duration::from_hours(1)), ..Which::default() };
    assert!(remove_layers(&place.state(), &recent).unwrap().is_empty());
    let found = remove_layers(&place.state(), &which).unwrap();
    assert!(matches!(&found[..], [one] if one.removed), "{found:?}");
    assert_eq!(place.left(), 0);
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "mine");
}

#[test]
fn what_is_too_large_is_removed_oldest_first() {
    let place = Place::new();
    let outside = place.dir.path().join("outside");
    std::fs::write(outside.join("large"), vec![1; 4 << 20]).unwrap();
    let (dir, held) = place.take();
    fill_with_traps(&dir, &outside);
    symlink(outside.join("large"), dir.join("own/+cache/large")).unwrap();
    std::fs::create_dir_all(dir.join("upper/.cargo/registry")).unwrap();
    std::fs::write(dir.join("upper/.cargo/registry/new"), vec![1; 1 << 20]).unwrap();
    std::fs::write(dir.join("own/+cache/old"), vec![1; 1 << 20]).unwrap();
    let times = rustix::fs::statat(rustix::fs::CWD, dir.join("own/+cache/old"), AtFlags::empty());
    while times.as_ref().unwrap().st_ctime >= now() {
        std::thread::sleep(Duration::from_millis(50));
    }
    // The times of files are those of the last tick of the kernel.
    std::thread::sleep(Duration::from_millis(50));
    std::fs::write(dir.join("upper/.cargo/registry/new"), vec![2; 1 << 20]).unwrap();
    let notice = held.finish(ByteSize((1 << 20) + (64 << 10))).unwrap();
    assert!(notice.contains("old") && notice.contains("deeper"), "{notice}");
    assert!(!notice.contains("registry"), "{notice}");
    // What a link leads to does not count.
    assert!(dir.join("upper/.cargo/registry/new").exists());
    assert!(outside.join("large").exists());
    assert!(!dir.join("own/+cache/old").exists() && !dir.join("own/+cache/deeper").exists());
    assert_eq!(place.left(), 1);
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}
