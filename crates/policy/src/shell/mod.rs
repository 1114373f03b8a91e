//! Shell text becomes actions: what each command would read, write, enter and fetch.
//!
//! Judged by what a command resolves to, not by how complicated it looks. Text that only mentions a
//! path is not an act. What cannot be known is an [`Action::Opaque`].

mod code;
mod fetch;
mod files;
mod follow;
mod git;
mod links;
mod options;
mod place;

use std::path::{Path, PathBuf};

use model::{AbsPath, Action};
use shell::{Analysis, Command, Surroundings};

pub(crate) use follow::{Move, follow};
use place::Place;

/// Where shell text runs, and where content from outside belongs.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The agent's current directory.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: AbsPath,
    /// The top of the checkout that holds the current directory.
    pub top: Option<AbsPath>,
    /// Where content from outside must land, if that is wanted.
    pub quarantine: Option<AbsPath>,
}

impl Scene {
    pub(crate) fn analyse(&self, command: &str) -> Analysis {
        let surroundings = Surroundings {
            dir: &self.cwd,
            home: self.home.as_path(),
            top: self.top.as_ref().map(AbsPath::as_path),
        };
        shell::analyse(command, &surroundings)
    }

    /// Quarantine, or a placeholder where there is none and edits will not be used.
    fn target(&self) -> &Path {
        self.quarantine.as_ref().map_or(Path::new("/"), AbsPath::as_path)
    }
}

/// One command of a shell text, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Its words, `…` where one is not known.
    pub words: String,
    /// The directory it runs in, or why that is not known.
    pub dir: Result<PathBuf, &'static str>,
}

/// The commands of a shell text as they are understood.
pub fn outline(command: &str, scene: &Scene) -> Vec<Outline> {
    let shown = |word: &shell::Word| match &word.value {
        shell::Value::Known { text, .. } => model::shell_word(text),
        shell::Value::Pattern { prefix, .. } | shell::Value::Unknown { prefix, .. } => {
            format!("{prefix}…")
        }
    };
    let outline = |command: &Command| Outline {
        words: command.words.iter().map(shown).collect::<Vec<_>>().join(" "),
        dir: match &command.dir {
            shell::Dir::Known(dir) => Ok(dir.clone()),
            shell::Dir::Unknown(why) => Err(why),
        },
    };
    scene.analyse(command).commands.iter().map(outline).collect()
}

/// Every effect of a shell text.
pub(crate) fn lower_command(command: &str, scene: &Scene) -> Vec<Action> {
    let analysis = scene.analyse(command);
    let mut lower = Lower { text: command, scene, analysis: &analysis, actions: Vec::new() };
    for unknown in &analysis.unknown {
        let part = command.get(unknown.span.clone()).unwrap_or(command);
        lower.opaque(part, unknown.why);
    }
    for (index, one) in analysis.commands.iter().enumerate() {
        lower.command(index, one);
    }
    lower.redirected_shell();
    links::follow(&links::made_by(&analysis, scene), &mut lower.actions);
    lower.actions
}

struct Lower<'a> {
    text: &'a str,
    scene: &'a Scene,
    analysis: &'a Analysis,
    actions: Vec<Action>,
}

impl<'a> Lower<'a> {
    fn push(&mut self, action: Action) {
        if !self.actions.contains(&action) {
            self.actions.push(action);
        }
    }

    fn opaque(&mut self, part: &str, why: &str) {
        let shown: String = part.chars().take(200).collect();
        self.push(Action::Opaque { part: shown, why: why.into() });
    }

    /// `exec > file` sends the output of everything behind it to the file.
    fn redirected_shell(&mut self) {
        let commands = &self.analysis.commands;
        let exec = commands.iter().position(|command| {
            command.program() == Some("exec")
                && command.redirects.iter().any(|one| one.kind != shell::RedirectKind::Read)
        });
        let Some(exec) = exec else { return };
        let content =
            (exec..commands.len()).any(|index| fetch::output_is_content(self.analysis, index));
        if content && let Some(command) = commands.get(exec) {
            self.opaque(self.shown(command), "it writes downloaded content to a file");
        }
    }

    /// The text of a command, for messages.
    fn shown(&self, command: &Command) -> &'a str {
        self.text.get(command.span.clone()).filter(|text| !text.is_empty()).unwrap_or(self.text)
    }

    fn command(&mut self, index: usize, command: &'a Command) {
        let place = Place { dir: &command.dir, home: self.scene.home.as_path() };
        self.redirects(index, command, &place);
        let Some(program) = command.program() else {
            if let Some(word) = command.words.first() {
                let why = match &word.value {
                    shell::Value::Unknown { why, .. } => why,
                    _ => "it is a pattern",
                };
                let part = self.text.get(word.span.clone()).unwrap_or(self.text);
                self.opaque(part, &format!("cannot determine which program runs: {why}"));
            }
            return;
        };
        if program.is_empty() || !program.chars().all(is_program_character) {
            self.opaque(self.shown(command), "cannot determine which program runs");
            return;
        }
        code::lower(self, command, program);
        let here = match program {
            "git" => git::lower(self, command, &place),
            _ => command.dir.clone(),
        };
        let place = Place { dir: &here, ..place };
        let before = self.fetches();
        fetch::lower(self, command, program, &place);
        let fetches = self.fetches() > before;
        files::lower(self, command, program, &place, fetches);
    }

    fn fetches(&self) -> usize {
        self.actions.iter().filter(|action| matches!(action, Action::Fetch(_))).count()
    }

    /// Files that the shell itself opens for a command.
    fn redirects(&mut self, index: usize, command: &Command, place: &Place<'_>) {
        let brings = fetch::output_is_content(self.analysis, index);
        for redirect in &command.redirects {
            let program = command.program().unwrap_or("the shell").to_owned();
            match redirect.kind {
                shell::RedirectKind::Read => {
                    files::read(self, &redirect.target, place, &program);
                }
                shell::RedirectKind::Write | shell::RedirectKind::ReadWrite
                    if brings && matches!(redirect.fd, None | Some(1)) =>
                {
                    fetch::to_file(self, command, &redirect.target, place);
                }
                _ => files::write(self, &redirect.target, place, &program),
            }
        }
    }
}

/// Names of programs are plain; anything else is a name made to be misread.
fn is_program_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.+-[]:@%,!~^{}".contains(character)
}
