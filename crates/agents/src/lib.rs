//! What each coding agent sends, honours and needs: one small module per agent.
//!
//! An [`Agent`] is a value. Differences between agents are data in it, or one of its few
//! functions. No agent's module decides anything: [`degrade`] may only make a decision stricter.

mod agent;
mod claude;
mod degrade;
mod hooks;

pub use agent::{
    Agent, Caps, DecodeError, Form, HookCommand, InRun, OwnFiles, Reply, Scope, SelfCheck,
    SettingsFiles,
};
pub use degrade::degrade;
pub use hooks::{EditError, Installed, groups, install, installed, uninstall};

/// Every agent that Ringwall knows.
pub const ALL: &[&Agent] = &[&claude::AGENT];

/// The agent of that name.
pub fn find(name: &str) -> Option<&'static Agent> {
    ALL.iter().copied().find(|agent| agent.name == name)
}
