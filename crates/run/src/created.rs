//! [`Created`]: what is created on the host before a run, so that it can be granted or protected.

use std::path::PathBuf;

use model::Level;
use plan::{Entry, Grant};
use policy::Context;

use config::setup::Setup;

/// Files and directories that were created so that they can be granted or protected. They are
/// removed again if nothing was written.
#[derive(Default)]
pub(crate) struct Created(Vec<PathBuf>);

impl Created {
    /// Creates every granted path outside the workspace that does not exist. Inside the workspace,
    /// the run can create it.
    pub(crate) fn of(grants: &mut [Grant], context: &Context) -> Self {
        let mut made = Vec::new();
        for grant in grants {
            let outside = !grant.path.is_within(&context.workspace);
            if !(grant.write && grant.entry.is_none() && outside) {
                continue;
            }
            let path = grant.path.as_path();
            let (entry, done) = if grant.directory {
                (Entry::Directory, std::fs::create_dir(path))
            } else {
                let new = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
                (Entry::File, new.map(drop))
            };
            if done.is_ok() {
                grant.entry = Some(entry);
                made.push(path.to_path_buf());
            }
        }
        Self(made)
    }

    /// Creates Ringwall's own directories if the run could create them otherwise, so that they can
    /// be protected.
    pub(crate) fn own_directories(setup: &Setup) -> Self {
        let (context, policy) = (&setup.context, &setup.loaded.policy);
        let home = policy.level.value == Level::Full || !policy.filesystem.allow_write.is_empty();
        let within = |dir: &PathBuf| {
            dir.starts_with(context.workspace.as_path())
                || (home && dir.starts_with(context.home.as_path()))
        };
        let mut made = Vec::new();
        for dir in setup.places.own().into_iter().filter(within) {
            let mut missing: Vec<_> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
            while let Some(dir) = missing.pop() {
                if std::fs::create_dir(dir).is_ok() {
                    made.push(dir.to_path_buf());
                }
            }
        }
        Self(made)
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        // The contents of a directory come after it, so they are removed first.
        for path in self.0.iter().rev() {
            if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
                let _ = std::fs::remove_file(path);
            }
            // Fails for anything else, and for a directory that is not empty.
            let _ = std::fs::remove_dir(path);
        }
    }
}
