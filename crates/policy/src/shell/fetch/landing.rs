//! Where a program of the table would let its content land.

use std::path::{Path, PathBuf};

use model::{Edit, shell_word};
use shell::{Command, GivenOption, Parsed, Value, Word, parse_options};

use super::super::place::{Place, Target};
use super::super::{Lower, files};
use super::edits::{
    append, is_foreign_spec, is_path, is_url, last_name, named, option_edit, push_edits,
    repository_name, whole,
};
use super::table::{self, Otherwise, Row, Shape};

pub(super) struct Fetching<'a, 'w> {
    pub(super) row: &'static Row,
    pub(super) command: &'w Command,
    pub(super) place: &'a Place<'a>,
    pub(super) by: String,
}

impl Fetching<'_, '_> {
    pub(super) fn lower(&self, lower: &mut Lower<'_>, arguments: &[Word]) {
        let parsed = parse_options(arguments, &self.row.grammar);
        match &self.row.shape {
            Shape::Clone => self.clone(lower, &parsed),
            Shape::Options(options) => self.options(lower, &parsed, options),
            Shape::Copy { remote } => self.copy(lower, &parsed, *remote),
            Shape::Curl => self.curl(lower, &parsed),
            Shape::Refused { instead } => {
                let to = self.place.known(".", false);
                self.push(lower, to, lower.scene.target().to_path_buf(), None, Some(instead));
            }
            Shape::RefusedWith { options, instead } => {
                if parsed.has(options) {
                    let to = self.place.known(".", false);
                    self.push(lower, to, lower.scene.target().to_path_buf(), None, Some(instead));
                }
            }
            Shape::FromUrl { instead } => {
                let foreign = |word: &&&Word| match &word.value {
                    Value::Known { text, .. } => is_url(text) || is_path(text),
                    _ => true,
                };
                if parsed.operands.first().is_some_and(|word| foreign(&word)) {
                    let to = self.place.known(".", false);
                    self.push(lower, to, lower.scene.target().to_path_buf(), None, Some(instead));
                }
            }
        }
    }

    /// `SOURCE [DESTINATION]`.
    fn clone(&self, lower: &mut Lower<'_>, parsed: &Parsed<'_>) {
        // Behind `--`, gh passes options to git; git itself takes operands there.
        let operands: Vec<&Word> = match (parsed.dashes, self.row.dashes_end_operands) {
            (Some(dashes), true) => parsed
                .operands
                .iter()
                .filter(|word| word.span.start < dashes.span.start)
                .copied()
                .collect(),
            _ => parsed.operands.clone(),
        };
        let Some(source) = operands.first() else { return };
        if let Some(option) = parsed.last(self.row.other_dirs) {
            let known = option.value.as_ref().and_then(Value::known);
            match known.map(|text| named(lower, Path::new(text))) {
                Some(new) => {
                    let edit = option_edit(lower, option, &new);
                    let to = option
                        .value
                        .as_ref()
                        .map_or(Target::NoFile, |value| self.place.resolve(value));
                    self.push(lower, to, new, edit, None);
                }
                None => self.unknown(lower),
            }
        }
        let name = source.value.known().and_then(|text| repository_name(text, parsed));
        match (operands.get(1), name) {
            (Some(word), name) => {
                let Some(text) = word.value.known() else { return self.unknown(lower) };
                let base =
                    Path::new(text).file_name().map(|name| name.to_string_lossy().into_owned());
                let base = base.filter(|base| base != "..").or(name);
                let Some(base) = base else { return self.unknown(lower) };
                let new = lower.scene.target().join(base);
                let edit = whole(word, &new);
                self.push(lower, self.place.resolve(&word.value), new, edit, None);
            }
            (None, Some(name)) => {
                let new = lower.scene.target().join(&name);
                let edit = Edit::insert(
                    source.span.end,
                    format!(" {}", shell_word(&new.display().to_string())),
                );
                self.push(lower, self.place.known(&name, false), new, Some(edit), None);
            }
            (None, None) => self.unknown(lower),
        }
    }

    /// Files and directories in options.
    fn options(&self, lower: &mut Lower<'_>, parsed: &Parsed<'_>, options: &table::Options) {
        let foreign = options.only_with.is_empty() || parsed.has(options.only_with);
        if parsed.has(options.none_with) || !foreign {
            return;
        }
        if options.needs_operand
            && !parsed.operands.iter().any(|word| word.value.known().is_none_or(is_foreign_spec))
        {
            return;
        }
        let target = lower.scene.target().to_path_buf();
        let mut placed = false;
        let dir_given = parsed.has(options.dirs);
        for option in parsed.all(options.dirs) {
            placed = true;
            self.directory(lower, option, &target);
        }
        for option in parsed.all(options.named_dirs).chain(parsed.all(options.files)) {
            let Some(value) = &option.value else { continue };
            let relative_to_dir = options.files_below_dir && value.known().is_some_and(stays_below);
            if relative_to_dir {
                // It lands below the directory, which is judged separately.
                placed |= dir_given;
                continue;
            }
            placed = true;
            let Some(text) = value.known() else {
                self.unknown(lower);
                continue;
            };
            let new = named(lower, Path::new(text));
            let edit = option_edit(lower, option, &new);
            self.push(lower, self.place.resolve(value), new, edit, None);
        }
        if placed || (!options.lands_with.is_empty() && !parsed.has(options.lands_with)) {
            return;
        }
        let shown = shell_word(&target.display().to_string());
        let edit = match options.default {
            Otherwise::Output => return,
            Otherwise::Behind(flag) => self.behind_program(&format!("{flag} {shown}")),
            Otherwise::AtEnd(flag) => append(self.command, &format!("{flag} {shown}")),
            Otherwise::FileAtEnd(flag) => {
                let url = parsed
                    .operands
                    .iter()
                    .find_map(|word| word.value.known().filter(|text| is_url(text)));
                url.and_then(last_name).and_then(|name| {
                    append(
                        self.command,
                        &format!("{flag} {}", shell_word(&target.join(name).display().to_string())),
                    )
                })
            }
        };
        self.push(lower, self.place.known(".", false), target, edit, None);
    }

    /// Sources and a destination, where a source is remote.
    fn copy(&self, lower: &mut Lower<'_>, parsed: &Parsed<'_>, remote: fn(&str) -> bool) {
        let Some((last, sources)) = parsed.operands.split_last() else { return };
        let from_outside = sources.iter().any(|word| word.value.known().is_some_and(remote));
        let unknown = sources.iter().any(|word| word.value.known().is_none());
        if sources.is_empty() || !(from_outside || unknown) {
            return;
        }
        let Some(text) = last.value.known() else {
            return if from_outside {
                self.unknown(lower);
            };
        };
        if remote(text) || (unknown && !from_outside) {
            return;
        }
        let mut new = match Path::new(text).file_name() {
            Some(name) => lower.scene.target().join(name),
            None => lower.scene.target().join(""),
        };
        if text.ends_with('/') {
            new.push("");
        }
        let edit = whole(last, &new);
        self.push(lower, self.place.resolve(&last.value), new, edit, None);
    }

    fn curl(&self, lower: &mut Lower<'_>, parsed: &Parsed<'_>) {
        let target = lower.scene.target().to_path_buf();
        if parsed.has(&["-K", "--config"]) {
            lower.opaque(
                lower.shown(self.command),
                "a configuration file decides where the content is written",
            );
        }
        let dir_given = parsed.last(&["--output-dir"]).is_some();
        for option in parsed.all(&["--output-dir"]) {
            self.directory(lower, option, &target);
        }
        for option in parsed.all(&["-o", "--output"]) {
            let Some(value) = &option.value else { continue };
            let Some(text) = value.known() else {
                self.unknown(lower);
                continue;
            };
            if dir_given && stays_below(text) {
                continue;
            }
            let new = named(lower, Path::new(text));
            let edit = option_edit(lower, option, &new);
            self.push(lower, self.place.resolve(value), new, edit, None);
        }
        if parsed.has(&["-O", "-J", "--remote-name", "--remote-name-all"]) && !dir_given {
            let shown = format!("--output-dir {}", shell_word(&target.display().to_string()));
            let mut edits: Vec<_> = self.behind_program(&shown).into_iter().collect();
            for option in parsed.all(&["-:", "--next"]) {
                edits.push(Edit::insert(option.at.span.end, format!(" {shown}")));
            }
            self.push_edits(lower, self.place.known(".", false), target.clone(), edits, None);
        }
        for option in parsed.all(&[
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--etag-save",
            "--hsts",
            "--alt-svc",
            "--libcurl",
        ]) {
            if let Some(value) = &option.value {
                files::write_value(lower, value, self.place, "curl");
            }
        }
    }

    /// An option that names the directory for everything: it becomes the quarantine itself.
    fn directory(&self, lower: &mut Lower<'_>, option: &GivenOption<'_>, target: &Path) {
        let edit = option_edit(lower, option, target);
        let missing = Target::Unknown("it is missing");
        let to = option.value.as_ref().map_or(missing, |value| self.place.resolve(value));
        self.push(lower, to, target.to_path_buf(), edit, None);
    }

    fn behind_program(&self, text: &str) -> Option<Edit> {
        // `python -m pip` and `gh release download` have more than one word in front.
        let word = self.command.words.get(self.row.words_in_front())?;
        Some(Edit::insert(word.span.end, format!(" {text}")))
    }

    fn unknown(&self, lower: &mut Lower<'_>) {
        lower.opaque(lower.shown(self.command), "cannot determine where the content is written");
    }

    fn push(
        &self,
        lower: &mut Lower<'_>,
        to: Target,
        new: PathBuf,
        edit: Option<Edit>,
        instead: Option<&str>,
    ) {
        self.push_edits(lower, to, new, edit.into_iter().collect(), instead);
    }

    fn push_edits(
        &self,
        lower: &mut Lower<'_>,
        to: Target,
        new: PathBuf,
        edits: Vec<Edit>,
        instead: Option<&str>,
    ) {
        push_edits(lower, self.command, &self.by, to, new, edits, instead);
    }
}

/// Whether a name stays below the directory it is put in.
fn stays_below(text: &str) -> bool {
    !text.starts_with(['/', '~']) && !text.split('/').any(|part| part == "..")
}
