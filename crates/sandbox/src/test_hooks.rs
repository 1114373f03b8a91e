//! Layers of the sandbox that a test can leave out, to show what each of them is for.
//!
//! Only builds with the cargo feature `test-hooks` read the variable. In all others nothing can be
//! left out.

use serde::{Deserialize, Serialize};

/// A layer that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Layer {
    /// The mounts: without them the run sees the host's file system as it is.
    Mounts,
    /// Landlock.
    Landlock,
    /// The seccomp filter.
    Seccomp,
    /// Closing descriptors.
    Descriptors,
    /// Building the environment from nothing.
    Environment,
    /// Refusing to start when the self-test fails.
    SelfTest,
    /// Putting back the mounts that the host removes.
    KeptMounts,
}

/// The layers that are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Omitted(Vec<Layer>);

impl Omitted {
    /// What `RINGWALL_OMIT` names, in a build for tests. Nothing otherwise.
    pub(crate) fn from_environment() -> Self {
        if !cfg!(feature = "test-hooks") {
            return Self::default();
        }
        let names = std::env::var("RINGWALL_OMIT").unwrap_or_default();
        Self(names.split(',').filter_map(layer).collect())
    }

    pub(crate) fn has(&self, layer: Layer) -> bool {
        cfg!(feature = "test-hooks") && self.0.contains(&layer)
    }
}

fn layer(name: &str) -> Option<Layer> {
    match name {
        "mounts" => Some(Layer::Mounts),
        "landlock" => Some(Layer::Landlock),
        "seccomp" => Some(Layer::Seccomp),
        "descriptors" => Some(Layer::Descriptors),
        "environment" => Some(Layer::Environment),
        "self-test" => Some(Layer::SelfTest),
        "kept-mounts" => Some(Layer::KeptMounts),
        _ => None,
    }
}
