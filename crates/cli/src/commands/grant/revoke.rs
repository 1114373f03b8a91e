//! `ringwall revoke KIND VALUE`.

use std::process::ExitCode;

use config::{Grant, Revoked};
use facts::Places;
use model::shell_word;

use super::{domain, file, port, refuse_untrusted, variable, write};
use crate::args::{GrantKind, RevokeArgs};
use crate::commands::{refuse_agents, unusable};
use crate::failure::Failure;
use crate::files;
use crate::terminal::{self, plain};

pub(in crate::commands) fn run(args: &RevokeArgs) -> Result<ExitCode, Failure> {
    refuse_agents("revoke")?;
    let places = Places::from_environment().map_err(Failure::new)?;
    let path = || {
        let at = model::absolute(&args.value, &places.cwd, &places.home).map_err(Failure::usage)?;
        let clean = model::AbsPath::lexical(&at).map_err(Failure::usage)?;
        Ok::<_, Failure>(clean.to_string())
    };
    let grant = match args.kind {
        GrantKind::Read => Grant::Read(path()?),
        GrantKind::Write => Grant::Write(path()?),
        GrantKind::Unix => Grant::Unix(path()?),
        GrantKind::Domain => domain(&args.value)?,
        GrantKind::Env => variable(&args.value)?,
        GrantKind::Port => port(&args.value)?,
    };
    let _lock = files::lock(&places.state_dir).map_err(Failure::new)?;
    let from = file(&places, args.target.user);
    let (shown, name) = (plain(&grant.to_string()), plain(&from.display().to_string()));
    match config::revoke(&from, &grant, &places.home).map_err(unusable)? {
        Revoked::Removed(text) => {
            if !args.target.user {
                refuse_untrusted(&places, &from)?;
            }
            write(&places, &from, &text, args.target.user)?;
            terminal::print(&format!("removed {shown} from {name}\n"));
            Ok(ExitCode::SUCCESS)
        }
        Revoked::NotThere => {
            let failure = Failure::new(format!("{shown} is not in {name}"));
            let other = file(&places, !args.target.user);
            let elsewhere = config::revoke(&other, &grant, &places.home);
            Err(match elsewhere {
                Ok(Revoked::Removed(_)) => {
                    let kind = clap::ValueEnum::to_possible_value(&args.kind);
                    let kind = kind.map(|kind| kind.get_name().to_owned()).unwrap_or_default();
                    let user = if args.target.user { "" } else { " --user" };
                    let value = shell_word(&args.value);
                    failure.hint(format!(
                        "{} has it; `ringwall revoke {kind} {value}{user}` removes it",
                        plain(&other.display().to_string())
                    ))
                }
                _ => failure.hint("`ringwall grant --list` shows every grant, with its file"),
            })
        }
    }
}
