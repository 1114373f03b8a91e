//! What a run creates in the home directory, as far as the tripwire is around it.
//!
//! It is created in a private directory ([`Plan::PRIVATE_HOME`]) by whoever performs the call. Then the
//! entry is mounted at its own path, over a node that the tripwire shows as long as the entry exists.
//! When the node is gone or another one, the kernel takes the mount away.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use model::{AbsPath, Plan};
use rustix::fs::{FileType, OFlags};

use super::Supervisor;
use crate::available::Attribution;
use crate::child::mounts::{attach_to, clone_tree_of, open_without_links};
use crate::monitor::Monitor;
use crate::observe::tripwire::Seen;
use crate::supervisor::granted_later;
use crate::supervisor::perform::Performance;

/// What is mounted, by its path, with what identifies it.
#[derive(Debug, Default)]
pub(super) struct PrivateHome {
    mounted: HashMap<AbsPath, (u64, u64)>,
}

/// Names that are mounted one by one.
const MOST_MOUNTED: usize = 1000;

impl Supervisor<'_> {
    /// Before the command starts: mounts what earlier runs have created.
    pub(super) fn begin_private_home(&mut self, monitor: &mut dyn Monitor) {
        let plan = self.launch.plan;
        if self.available.attribution != Attribution::Tripwire || self.listener.is_none() {
            return;
        }
        let tree = AbsPath::lexical(Path::new(Plan::PRIVATE_HOME)).ok();
        let tree = tree.and_then(|place| self.views.tree(&place)?.try_clone().ok());
        let Some(tree) = tree else { return };
        let mut dirs = vec![plan.home.clone()];
        for way in self.planned_paths.ways_below(plan.home.as_path()) {
            let Ok(way) = AbsPath::lexical(&way) else { continue };
            if plan.is_unplanned_dot(&way) {
                dirs.push(way);
            }
        }
        self.views.keep_private(plan, tree);
        // What is created in them is created here. Parents come first.
        for dir in &dirs {
            self.views.make_private(dir);
        }
        let listed = dirs.iter().filter_map(|dir| Some((dir, self.views.list_private(dir)?)));
        let names: Vec<_> = listed
            .flat_map(|(dir, names)| names.into_iter().map(|name| dir.join(&name)))
            .take(MOST_MOUNTED)
            .collect();
        self.mount_private(&names, monitor);
    }

    /// After a call was performed: mounts what is new, and takes away what is gone.
    pub(super) fn follow_private(&mut self, call: &Performance, monitor: &mut dyn Monitor) {
        let paths = [Some(&call.first), call.second.as_ref()].into_iter().flatten();
        let paths = paths.filter_map(|place| place.path().cloned());
        let paths: Vec<_> = paths.filter(|path| self.views.private(path).is_some()).collect();
        if !paths.is_empty() {
            self.mount_private(&paths, monitor);
        }
    }

    fn mount_private(&mut self, paths: &[AbsPath], monitor: &mut dyn Monitor) {
        let mut new = Vec::new();
        for path in paths {
            // What is in a directory that is mounted comes with that.
            let parent = self.planned_paths.seen(path.parent().as_path());
            if parent != Some(Seen::Way) || self.planned_paths.seen(path.as_path()).is_some() {
                continue;
            }
            let found = self.views.stat_private(path).and_then(|stat| {
                let kind = FileType::from_raw_mode(stat.st_mode);
                (kind != FileType::Symlink).then_some((stat.st_dev, stat.st_ino))
            });
            if found == self.private_home.mounted.get(path).copied() {
                continue;
            }
            self.tripwire.renew(path.as_path());
            self.private_home.mounted.remove(path);
            let room = self.private_home.mounted.len() < MOST_MOUNTED;
            let Some(found) = found.filter(|_| room && monitor.may_be_private(path)) else {
                continue;
            };
            self.private_home.mounted.insert(path.clone(), found);
            new.push(path.clone());
        }
        let Some(namespaces) = self.namespaces.as_ref().filter(|_| !new.is_empty()) else { return };
        let home = self.launch.plan.home.clone();
        let helper = granted_later::start_in_namespaces(namespaces, || {
            for path in &new {
                // It may be gone again. Then it is absent, and nothing of the host shows.
                let _ = mount(&home, path);
            }
            Ok(())
        });
        let _ = helper.and_then(|helper| self.serve_while(helper, monitor));
    }
}

/// Mounts what is at a path of the private directory at the same path of the home directory.
fn mount(home: &AbsPath, path: &AbsPath) -> io::Result<()> {
    let below = path.as_path().strip_prefix(home.as_path()).map_err(io::Error::other)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let source = open_without_links(Path::new(Plan::PRIVATE_HOME).join(below), flags)?;
    let target = open_without_links(path.as_path(), flags)?;
    let tree = clone_tree_of(source.as_fd())?;
    attach_to(tree.as_fd(), target.as_fd())
}
