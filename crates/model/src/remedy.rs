//! [`Remedy`]: the way out of a denial, with the command that can be pasted.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::{Access, DomainRule, Origin, printed_word};

/// What to do about a denial. Serialized as the sentence that people and agents read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// The user grants a path.
    Grant {
        /// What is granted.
        access: Access,
        /// The path; a directory that does not exist yet ends in a slash.
        path: PathBuf,
        /// The entry that the grant adds, as TOML.
        entry: String,
        /// The file that gets the entry.
        file: PathBuf,
        /// What it gives away, where that is more than a grant should give by accident. `ringwall grant`
        /// asks then, and the grant is shown but not proposed.
        asks: Option<String>,
    },
    /// The user grants a port of the host's loopback.
    GrantPort {
        /// The port.
        port: u16,
        /// The file that gets the entry.
        file: PathBuf,
    },
    /// The user grants a socket of the host.
    GrantUnix {
        /// The socket.
        path: PathBuf,
        /// The entry that the grant adds, as TOML.
        entry: String,
        /// The file that gets the entry.
        file: PathBuf,
    },
    /// The user grants a host on a port.
    GrantDomain {
        /// What is granted.
        rule: DomainRule,
        /// The file that gets the entry.
        file: PathBuf,
    },
    /// The user adds a line that no command writes.
    Configure {
        /// The line, as TOML.
        line: String,
        /// The file to add it to.
        file: PathBuf,
    },
    /// The user removes the entry that denies it.
    RemoveEntry(Origin),
    /// The agent runs this text instead.
    Run(String),
    /// Read back from an event, which has only the texts.
    Quoted {
        /// The command that allows it.
        command: Option<String>,
        /// The whole sentence.
        sentence: String,
    },
    /// Anything else, as a sentence.
    Advice(String),
}

impl Remedy {
    /// A sentence.
    pub fn advice(text: impl Into<String>) -> Self {
        Self::Advice(text.into())
    }

    /// The command that allows what was denied, ready to be pasted into a shell.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Grant { access, path, .. } => {
                let path = printed_word(&path.display().to_string());
                Some(format!("ringwall grant {access} {path}"))
            }
            Self::GrantUnix { path, .. } => {
                let path = printed_word(&path.display().to_string());
                Some(format!("ringwall grant unix {path}"))
            }
            Self::GrantDomain { rule, .. } => {
                Some(format!("ringwall grant domain {}", printed_word(&rule.to_string())))
            }
            Self::GrantPort { port, .. } => Some(format!("ringwall grant port {port}")),
            Self::Quoted { command, .. } => command.clone(),
            Self::Configure { .. } | Self::RemoveEntry(_) | Self::Run(_) | Self::Advice(_) => None,
        }
    }

    /// The same command, if it may be proposed to someone who does not look closely.
    pub fn proposed(&self) -> Option<String> {
        self.command().filter(|_| self.asks().is_none())
    }

    /// What the grant gives away, if that is for a person to decide.
    pub fn asks(&self) -> Option<&str> {
        match self {
            Self::Grant { asks, .. } => asks.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Quoted { sentence, .. } = self {
            return f.write_str(sentence);
        }
        if let Some(command) = self.command() {
            write!(f, "the user can allow it with `{command}`, which ")?;
        }
        match self {
            Self::Grant { access, entry, file, asks, .. } => {
                let file = file.display();
                write!(f, "adds {entry} to allow_{access} under [filesystem] in {file}")?;
                match asks {
                    Some(what) => write!(f, "; it {what}"),
                    None => Ok(()),
                }
            }
            Self::GrantPort { port, file } => {
                let file = file.display();
                write!(f, "sets `network.allow_local_ports = [{port}]` in {file}")
            }
            Self::GrantUnix { entry, file, .. } => {
                write!(f, "adds {entry} to allow_unix under [network] in {}", file.display())
            }
            Self::GrantDomain { rule, file } => {
                write!(f, "sets `network.allowed_domains = [\"{rule}\"]` in {}", file.display())
            }
            Self::Configure { line, file } => {
                write!(f, "the user can allow it with the line `{line}` in {}", file.display())
            }
            Self::RemoveEntry(origin) => {
                write!(f, "the user can allow it by removing that entry ({origin})")
            }
            Self::Run(text) => write!(f, "run this instead: {text}"),
            Self::Quoted { sentence: text, .. } | Self::Advice(text) => f.write_str(text),
        }
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_gives_its_command_alone_and_in_a_sentence() {
        let grant = Remedy::Grant {
            access: Access::Read,
            path: "/a b".into(),
            entry: "\"/a b\"".into(),
            file: "/p/ringwall.toml".into(),
            asks: None,
        };
        assert_eq!(grant.command().as_deref(), Some("ringwall grant read '/a b'"));
        let sentence = "the user can allow it with `ringwall grant read '/a b'`, which adds \
                        \"/a b\" to allow_read under [filesystem] in /p/ringwall.toml";
        assert_eq!(grant.to_string(), sentence);
        assert_eq!(serde_json::to_value(&grant).unwrap(), sentence);
        assert_eq!(Remedy::Run("ls".into()).command(), None);
    }
}
