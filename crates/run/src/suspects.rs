//! [`Suspect`]: what may have made a command fail without a word: what was hidden from it, denied quietly
//! or not passed.

use std::path::{Path, PathBuf};

use model::Access;
use sandbox::{Operation, Program};
use serde::{Deserialize, Serialize};

use crate::remedies::Remedies;

/// Suspects that are named.
const MOST: usize = 4;
/// Variables that are named.
const MOST_VARIABLES: usize = 3;
/// Hidden paths that are remembered: the last ones, since a program that lacks something fails soon.
const MOST_HIDDEN: usize = 8;

/// Something that may have made a command fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// What happened, as a sentence without an end.
    pub what: String,
    /// The command that would change it.
    pub allow: Option<String>,
}

/// What was hidden from a run or denied quietly, the last first.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    last: Vec<(Operation, PathBuf, Program)>,
}

impl Hidden {
    pub(crate) fn note(&mut self, operation: Operation, path: &Path, program: &Program) {
        self.last.retain(|(known, at, _)| (*known, at.as_path()) != (operation, path));
        self.last.insert(0, (operation, path.to_path_buf(), program.clone()));
        self.last.truncate(MOST_HIDDEN);
    }

    /// The suspects, the most likely first.
    pub(crate) fn suspects(
        &self,
        remedies: &mut Remedies<'_>,
        command: &str,
        left_out: &[String],
    ) -> Vec<Suspect> {
        // Whoever wants to change something needs it more than whoever looks around.
        let (writes, looks): (Vec<_>, Vec<_>) =
            self.last.iter().partition(|(operation, ..)| operation.writes());
        let mut suspects = Vec::new();
        for (operation, path, program) in writes.into_iter().chain(looks) {
            let access = if operation.writes() { Access::Write } else { Access::Read };
            let allow = remedies.grant(access, path, *operation).proposed();
            // One grant is enough for several paths below it.
            if suspects.iter().any(|known: &Suspect| allow.is_some() && known.allow == allow) {
                continue;
            }
            let (who, at) = (name(program), path.display());
            let what = match (operation.writes(), operation) {
                (true, _) => format!("`{who}` could not {} {at}", operation.verb()),
                (false, Operation::Connect) => format!("`{who}` could not connect to {at}"),
                (false, _) => format!("`{who}` looked for {at}, which the run does not see"),
            };
            suspects.push(Suspect { what, allow });
        }
        suspects.truncate(MOST - 1);
        suspects.extend(variables(command, left_out));
        suspects
    }
}

/// Whether a program was called with a path, or one below it. Then it does not look there by habit.
pub(crate) fn is_asked_for(program: &Program, path: &Path) -> bool {
    program.argv.iter().skip(1).any(|argument| Path::new(argument).starts_with(path))
}

fn name(program: &Program) -> String {
    let word = program.argv.first().map(PathBuf::from).or_else(|| program.path.clone());
    let name = word.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    name.map_or_else(|| "a program".into(), std::borrow::Cow::into_owned)
}

/// Variables that were not passed, if the command might read them.
fn variables(command: &str, left_out: &[String]) -> Option<Suspect> {
    let name = Path::new(command).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_own = |name: &str| {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        command.contains('/') && !command.starts_with("/usr/") && !command.starts_with("/bin/")
            || RUN_PROJECTS.contains(&plain)
    };
    let prefixes = PREFIXES.iter().find(|(tool, _)| *tool == name).map_or(&[][..], |(_, all)| *all);
    let own = format!("{}_", name.to_uppercase().replace(['-', '.'], "_"));
    let hinted = |variable: &&String| {
        prefixes.iter().any(|prefix| variable.starts_with(prefix)) || variable.starts_with(&own)
    };
    let mut likely: Vec<_> = left_out.iter().filter(hinted).collect();
    let of_another_tool = |variable: &String| {
        PREFIXES.iter().flat_map(|(_, all)| *all).any(|prefix| variable.starts_with(prefix))
    };
    if is_own(&name) {
        let others = left_out.iter().filter(|variable| !hinted(variable));
        likely.extend(others.filter(|variable| !of_another_tool(variable)));
    }
    let first = likely.first()?;
    let shown: Vec<_> =
        likely.iter().take(MOST_VARIABLES).map(|variable| format!("`{variable}`")).collect();
    let more = match likely.len().saturating_sub(MOST_VARIABLES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("not passed from your environment: {}{more}", shown.join(", "));
    Some(Suspect { what, allow: Some(format!("ringwall grant env {first}")) })
}

/// Commands that run what belongs to a project, which may read any variable.
const RUN_PROJECTS: &[&str] = &[
    "bash", "bun", "bundle", "cargo", "composer", "dash", "deno", "dotnet", "elixir", "go",
    "gradle", "gradlew", "java", "just", "make", "mix", "mvn", "mvnw", "ninja", "node", "npm",
    "npx", "perl", "php", "pnpm", "poetry", "pytest", "python", "rails", "rake", "ruby", "sh",
    "task", "tox", "uv", "yarn", "zsh",
];

/// How the variables of well-known commands begin, where not like the command.
const PREFIXES: &[(&str, &[&str])] = &[
    ("ansible", &["ANSIBLE_"]),
    ("createdb", &["PG"]),
    ("gh", &["GH_", "GITHUB_"]),
    ("git", &["GIT_"]),
    ("helm", &["HELM_", "KUBE"]),
    ("kubectl", &["KUBE"]),
    ("mysql", &["MYSQL_"]),
    ("node", &["NODE_"]),
    ("npm", &["NPM_", "NODE_", "npm_"]),
    ("pg_dump", &["PG"]),
    ("pip", &["PIP_"]),
    ("pip3", &["PIP_"]),
    ("psql", &["PG"]),
    ("redis-cli", &["REDIS"]),
    ("terraform", &["TF_"]),
    ("uv", &["UV_"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_on_the_command_line_is_asked_for() {
        let argv = ["cat", "/var/log/dpkg.log", "-v"].map(str::to_owned).to_vec();
        let program = Program { argv, ..Program::default() };
        for (path, asked) in
            [("/var/log", true), ("/var/log/dpkg.log", true), ("/etc", false), ("/cat", false)]
        {
            assert_eq!(is_asked_for(&program, Path::new(path)), asked, "{path}");
        }
    }

    #[test]
    fn variables_are_named_to_those_who_may_read_them() {
        let left_out = ["API_TOKEN", "NODE_OPTIONS", "PGHOST"].map(str::to_owned);
        let named = |command: &str| variables(command, &left_out).map(|one| one.what);
        assert_eq!(named("/usr/bin/grep"), None);
        assert_eq!(named("psql").unwrap(), "not passed from your environment: `PGHOST`");
        let for_npm = named("npm").unwrap();
        assert!(for_npm.contains("`NODE_OPTIONS`, `API_TOKEN`") && !for_npm.contains("PGHOST"));
        assert!(named("./run.sh").unwrap().ends_with(": `API_TOKEN`"));
        assert!(named("python3.12").is_some());
        assert_eq!(variables("npm", &[]), None);
    }
}
