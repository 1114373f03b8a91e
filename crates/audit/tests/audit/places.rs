//! Whatever stands where a file should stand, nothing hangs and nothing is followed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use audit::{Filter, Log};

use crate::test_log::{TestLog, record};

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Every operation fails, with these words in its message.
#[track_caller]
fn assert_refused(log: &Log, words: &str) {
    let errors = [
        log.append(&record(1)).unwrap_err().to_string(),
        log.verify(None).unwrap_err().to_string(),
        log.query(&Filter::default()).unwrap_err().to_string(),
    ];
    for (operation, error) in ["append", "verify", "query"].iter().zip(errors) {
        assert!(error.contains(words), "{operation}: {error}");
    }
}

#[test]
fn a_log_or_head_that_is_no_file_is_refused() {
    for name in ["log.jsonl", "head"] {
        let ground = TestLog::new();
        fs::create_dir_all(ground.directory()).unwrap();
        let path = ground.directory().join(name);

        make_fifo(&path);
        assert_refused(&ground.log(), "a named pipe, not a regular file");
        fs::remove_file(&path).unwrap();

        fs::create_dir(&path).unwrap();
        assert_refused(&ground.log(), "a directory, not a regular file");
        fs::remove_dir(&path).unwrap();

        let target = ground.directory().join("elsewhere");
        fs::write(&target, "precious").unwrap();
        symlink(&target, &path).unwrap();
        assert_refused(&ground.log(), "a symbolic link, not a regular file");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}

#[test]
fn a_dangling_link_does_not_create_its_target() {
    let ground = TestLog::new();
    fs::create_dir_all(ground.directory()).unwrap();
    let target = ground.directory().join("made");
    symlink(&target, ground.log().path()).unwrap();
    assert_refused(&ground.log(), "a symbolic link");
    assert!(!target.exists());
}

#[test]
fn a_directory_that_cannot_be_made_or_opened_is_an_error() {
    let ground = TestLog::new();
    let parent = ground.directory().parent().unwrap().to_path_buf();
    fs::create_dir_all(&parent).unwrap();
    fs::write(parent.join("file"), "").unwrap();
    assert_refused(&Log::at(parent.join("file")), "cannot open");
    assert_refused(&Log::at(parent.join("file/below")), "cannot open");
    make_fifo(&parent.join("fifo"));
    assert_refused(&Log::at(parent.join("fifo")), "cannot open");
}
