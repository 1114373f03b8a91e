//! [`PlannedPaths`]: the plan as the tripwire needs it, looked up by path.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::{Cause, Kind, Plan};

use crate::observe::tripwire::Seen;

/// The directories that lead to granted paths, and the mount points of those paths.
pub(crate) struct PlannedPaths {
    /// By the text of the path.
    nodes: HashMap<OsString, Node>,
}

struct Node {
    seen: Seen,
    names: Vec<OsString>,
    target: Option<PathBuf>,
    /// Whether what is there is for the run; `None` if the plan has nothing at this very path.
    allowed: Option<bool>,
    /// Whether it leads to something that the user named: the workspace, or a grant.
    leads_to_named: bool,
}

impl PlannedPaths {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut skeleton = Self { nodes: HashMap::new() };
        skeleton.nodes.insert("/".into(), Node::way());
        for piece in &plan.pieces {
            let seen = match (&piece.kind, piece.directory) {
                (Kind::Closed, true) => Seen::Directory,
                (Kind::Closed, false) => Seen::File,
                (_, true) => Seen::Way,
                (_, false) => Seen::MountPoint,
            };
            skeleton.put(piece.path.as_path(), seen, None);
            let allowed = !matches!(piece.kind, Kind::Closed | Kind::Outside);
            let named = matches!(piece.why, Cause::Workspace | Cause::Grant { .. });
            for place in piece.path.as_path().ancestors().skip(1).filter(|_| allowed && named) {
                skeleton.nodes.entry(place.into()).or_insert_with(Node::way).leads_to_named = true;
            }
            if let Some(node) = skeleton.nodes.get_mut(piece.path.as_path().as_os_str()) {
                node.allowed = Some(allowed);
            }
        }
        for link in &plan.links {
            skeleton.put(link.path.as_path(), Seen::Link, Some(link.target.clone()));
        }
        skeleton
    }

    fn put(&mut self, path: &Path, seen: Seen, target: Option<PathBuf>) {
        self.add_parents(path);
        let node = self.nodes.entry(path.into()).or_insert_with(Node::way);
        (node.seen, node.target) = (seen, target);
    }

    /// Adds the directories above a path, each with the name of the next.
    fn add_parents(&mut self, path: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        if !self.nodes.contains_key(parent.as_os_str()) {
            self.add_parents(parent);
        }
        let above = self.nodes.entry(parent.into()).or_insert_with(Node::way);
        if !above.names.iter().any(|known| known == name) {
            above.names.push(name.to_owned());
        }
    }

    /// What a path is, if the plan says anything about it.
    pub(crate) fn seen(&self, path: &Path) -> Option<Seen> {
        self.nodes.get(path.as_os_str()).map(|node| node.seen)
    }

    /// Whether a link to a path, which has no links itself, is needed by a program that goes through it
    /// to something allowed. A link to the root or to a toolchain's parent is not: it would only show
    /// that it exists.
    pub(crate) fn is_reached_by_links(&self, target: &Path) -> bool {
        let named = |node: &Node| node.leads_to_named && target != Path::new("/");
        let node = |path: &Path| self.nodes.get(path.as_os_str());
        let innermost = target.ancestors().find_map(|path| node(path)?.allowed);
        innermost == Some(true) || (innermost.is_none() && node(target).is_some_and(named))
    }

    /// The directories below a path that lead to something, parents first.
    pub(crate) fn ways_below(&self, dir: &Path) -> Vec<PathBuf> {
        let is_way = |node: &Node| node.seen == Seen::Way && node.allowed.is_none();
        let below = self.nodes.iter().filter(|(path, node)| {
            is_way(node) && Path::new(path) != dir && Path::new(path).starts_with(dir)
        });
        let mut ways: Vec<_> = below.map(|(path, _)| PathBuf::from(path)).collect();
        ways.sort();
        ways
    }

    /// The names in a directory.
    pub(crate) fn names(&self, path: &Path) -> &[OsString] {
        self.nodes.get(path.as_os_str()).map_or(&[], |node| &node.names)
    }

    /// Where a link leads.
    pub(crate) fn target(&self, path: &Path) -> Option<&PathBuf> {
        self.nodes.get(path.as_os_str())?.target.as_ref()
    }
}

impl Node {
    fn way() -> Self {
        Self {
            seen: Seen::Way,
            names: Vec::new(),
            target: None,
            allowed: None,
            leads_to_named: false,
        }
    }
}
