//! Content from outside: which commands bring it, where it would land, and the edit that makes it
//! land in quarantine.
//!
//! The programs are a table ([`table`]). The exact strings follow seven rules:
//! R1 a clone without a directory gets one right behind its source; R2 an explicit destination keeps
//! its last name and its quotes; R3 option values are replaced in place; R4 curl, wget, aria2c and
//! yt-dlp get their option right behind the program; R5 gh, pip, npm and tar get it at their end;
//! R6 directories given as options become the quarantine itself; R7 everything else stays byte for
//! byte.

mod table;

use std::path::{Path, PathBuf};

use model::{Action, Edit, Fetch, PathRef, shell_word};
use shell::{Analysis, Command, GivenOption, Input, Parsed, Value, Word, parse_options};

use self::table::{Otherwise, Row, Shape};
use super::follow::replacement;
use super::place::{Place, Target};
use super::{Lower, git};

/// Whether a command's output is content from outside.
fn emits(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let has = |names: &[&str]| {
        command
            .arguments()
            .iter()
            .any(|word| word.value.known().is_some_and(|text| names.contains(&text)))
    };
    let url = command.arguments().iter().any(|word| match &word.value {
        Value::Known { text, .. } => is_url(text),
        Value::Unknown { .. } => true,
        Value::Pattern { prefix, .. } => is_url(prefix),
    });
    match program {
        "curl" => !has(&["--version", "-V", "--help", "-h", "-I", "--head"]),
        "wget" | "wget2" | "http" | "https" | "xh" | "xhs" | "curlie" => url || has(&["-i"]),
        "lynx" | "w3m" | "links" | "elinks" | "fetch" | "hurl" | "aria2c" => url,
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => true,
        "git" => git::split(command).is_some_and(|git| {
            git.subcommand.value.known() == Some("archive")
                && git
                    .arguments
                    .iter()
                    .any(|word| word.value.known().is_some_and(|text| text.starts_with("--remote")))
        }),
        "aws" | "gsutil" | "gcloud" | "rclone" | "s3cmd" | "mc" | "az" => {
            command.arguments().last().and_then(|word| word.value.known()) == Some("-")
                || has(&["cat"])
        }
        "gh" => has(&["-"]),
        _ => false,
    }
}

/// Whether a command's output is content, be it through a row of filters.
pub(super) fn output_is_content(analysis: &Analysis, index: usize) -> bool {
    flows(analysis, index, 0)
}

fn flows(analysis: &Analysis, index: usize, depth: usize) -> bool {
    let Some(command) = analysis.commands.get(index) else { return false };
    let piped = match &command.input {
        Input::Pipe(producers) => producers.as_slice(),
        _ => &[],
    };
    let mut sources = piped.iter().chain(&command.inner);
    emits(command) || (depth < 32 && sources.any(|source| flows(analysis, *source, depth + 1)))
}

/// Whether a command reads content from a pipe.
pub(super) fn is_fed_content(analysis: &Analysis, command: &Command) -> bool {
    matches!(&command.input, Input::Pipe(producers) if producers.iter().any(|one| flows(analysis, *one, 0)))
}

/// Whether a substitution in a word brings content.
pub(super) fn inner_brings(analysis: &Analysis, word: &Word) -> bool {
    word.inner.iter().any(|index| flows(analysis, *index, 0))
}

/// The fetches of one command.
pub(super) fn lower(lower: &mut Lower<'_>, command: &Command, program: &str, place: &Place<'_>) {
    if let Some((row, arguments)) = table::find(command) {
        let fetch = Fetching { row, command, place, by: row.title() };
        fetch.lower(lower, arguments);
    }
    let fed = is_fed_content(lower.analysis, command);
    match program {
        "tar" | "bsdtar" | "gtar" | "cpio" | "unzip" | "7z" | "7za" if fed => {
            unpack(lower, command, place);
        }
        "tee" | "sponge" if fed => {
            let parsed = parse_options(command.arguments(), &shell::Grammar::PLAIN);
            for word in parsed.operands {
                to_file(lower, command, word, place);
            }
        }
        "dd" if fed => {
            for word in command.arguments() {
                if let Some(file) = word.value.known().and_then(|text| text.strip_prefix("of=")) {
                    let edit = edit_tail(lower, word, 3, &named(lower, Path::new(file)));
                    push(
                        lower,
                        command,
                        "dd",
                        place.known(file, false),
                        named(lower, Path::new(file)),
                        edit,
                    );
                }
            }
        }
        _ => {}
    }
}

/// A redirection or `tee` of content.
pub(super) fn to_file(lower: &mut Lower<'_>, command: &Command, word: &Word, place: &Place<'_>) {
    let by = command.program().unwrap_or("a redirection").to_owned();
    match word.value.known() {
        Some(text) => {
            let new = named(lower, Path::new(text));
            let edit = whole(word, &new);
            push(lower, command, &by, place.resolve(&word.value), new, edit);
        }
        None => lower.opaque(lower.shown(command), "where the content lands is not known"),
    }
}

/// An archive from a pipe, unpacked somewhere.
fn unpack(lower: &mut Lower<'_>, command: &Command, place: &Place<'_>) {
    if !unpacks(command) {
        return;
    }
    let by = command.program().unwrap_or("tar").to_owned();
    let target = lower.scene.target().to_path_buf();
    let parsed = parse_options(command.arguments(), &TAR);
    match parsed.last(&["-C", "--directory", "--cd", "-D", "-d"]) {
        Some(option) => {
            let edit = option_edit(lower, option, &target);
            let at = option
                .value
                .as_ref()
                .map_or(Target::Unknown("it is missing"), |value| place.resolve(value));
            push(lower, command, &by, at, target, edit);
        }
        None => {
            let flag = match by.as_str() {
                "cpio" => "-D",
                "unzip" => "-d",
                _ => "-C",
            };
            let edit = (!by.starts_with("7z")).then(|| {
                append(command, &format!("{flag} {}", shell_word(&target.display().to_string())))
            });
            push(lower, command, &by, place.known(".", false), target, edit.flatten());
        }
    }
}

const TAR: shell::Grammar = shell::Grammar {
    short: "CfbTXVgHILKNFD",
    long: &[
        "directory",
        "cd",
        "file",
        "exclude",
        "files-from",
        "exclude-from",
        "transform",
        "strip-components",
        "use-compress-program",
    ],
    flags: &[],
    abbreviates: true,
    stops_at_operand: false,
};

/// Whether an archiver writes files from its archive, rather than listing or making one.
fn unpacks(command: &Command) -> bool {
    let Some(program) = command.program() else { return false };
    let words: Vec<_> = command.arguments().iter().filter_map(|word| word.value.known()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match program {
        "cpio" => {
            words
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('i'))
                || has(&["--extract"])
        }
        "unzip" => !has(&["-l", "-t", "-p", "-Z", "-v"]),
        "7z" | "7za" => has(&["x", "e"]) && !has(&["-so"]),
        "unrar" => has(&["x", "e"]),
        _ => {
            let stdout = has(&["-O", "--to-stdout"]);
            let old_style =
                words.first().is_some_and(|word| !word.starts_with('-') && word.contains('x'));
            let cluster = words
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('x'));
            !stdout && (old_style || cluster || has(&["--extract", "--get"]))
        }
    }
}

/// The directories that an archiver writes to, for archives that are files.
pub(super) fn unpack_dirs(command: &Command) -> Vec<Value> {
    let creates = !unpacks(command);
    let parsed = parse_options(command.arguments(), &TAR);
    if creates {
        let words: Vec<_> =
            command.arguments().iter().filter_map(|word| word.value.known()).collect();
        let makes = words
            .first()
            .is_some_and(|word| word.trim_start_matches('-').starts_with(['c', 'r', 'u']))
            || words.contains(&"--create");
        let file = parsed.last(&["-f", "--file"]).and_then(|option| option.value.clone());
        return file.filter(|_| makes).into_iter().collect();
    }
    parsed
        .all(&["-C", "--directory", "--cd", "-D"])
        .filter_map(|option| option.value.clone())
        .collect()
}

struct Fetching<'a, 'w> {
    row: &'static Row,
    command: &'w Command,
    place: &'a Place<'a>,
    by: String,
}

impl Fetching<'_, '_> {
    fn lower(&self, lower: &mut Lower<'_>, arguments: &[Word]) {
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
        if parsed.has(options.none_with) {
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
            let edit = option_edit(lower, option, &target);
            let to = option
                .value
                .as_ref()
                .map_or(Target::Unknown("it is missing"), |value| self.place.resolve(value));
            self.push(lower, to, target.clone(), edit, None);
        }
        for option in parsed.all(options.named_dirs).chain(parsed.all(options.files)) {
            let Some(value) = &option.value else { continue };
            let relative_to_dir = options.files_below_dir
                && value.known().is_some_and(|text| !text.starts_with(['/', '~']));
            if relative_to_dir {
                // It lands below the directory, which is judged by itself.
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
                "a configuration file decides where the content lands",
            );
        }
        let dir_given = parsed.last(&["--output-dir"]).is_some();
        for option in parsed.all(&["--output-dir"]) {
            let edit = option_edit(lower, option, &target);
            let to = option
                .value
                .as_ref()
                .map_or(Target::Unknown("it is missing"), |value| self.place.resolve(value));
            self.push(lower, to, target.clone(), edit, None);
        }
        for option in parsed.all(&["-o", "--output"]) {
            let Some(value) = &option.value else { continue };
            let Some(text) = value.known() else {
                self.unknown(lower);
                continue;
            };
            if dir_given && !text.starts_with('/') && !text.split('/').any(|part| part == "..") {
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
                super::files::write_value(lower, value, self.place, "curl");
            }
        }
    }

    fn behind_program(&self, text: &str) -> Option<Edit> {
        // `python -m pip` and `gh release download` have more than one word in front.
        let word = self.command.words.get(self.row.words_in_front())?;
        Some(Edit::insert(word.span.end, format!(" {text}")))
    }

    fn unknown(&self, lower: &mut Lower<'_>) {
        lower.opaque(lower.shown(self.command), "where the content lands is not known");
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

fn push(
    lower: &mut Lower<'_>,
    command: &Command,
    by: &str,
    to: Target,
    new: PathBuf,
    edit: Option<Edit>,
) {
    push_edits(lower, command, by, to, new, edit.into_iter().collect(), None);
}

fn push_edits(
    lower: &mut Lower<'_>,
    command: &Command,
    by: &str,
    to: Target,
    new: PathBuf,
    edits: Vec<Edit>,
    instead: Option<&str>,
) {
    let to = match to {
        Target::NoFile => return,
        Target::Path(path) | Target::Below(path) => path,
        Target::Unknown(why) if edits.is_empty() || !command.editable => {
            let why = format!("where the content lands is not known: {why}");
            return lower.opaque(lower.shown(command), &why);
        }
        // The edit makes it known.
        Target::Unknown(_) => PathRef { given: "?".into(), at: PathBuf::from("/") },
    };
    let edits = if command.editable { edits } else { Vec::new() };
    lower.push(Action::Fetch(Box::new(Fetch {
        by: by.into(),
        to,
        corrected: new,
        edits,
        at: command.span.start,
        instead: instead.map(str::to_owned),
    })));
}

/// Replaces a whole word, in its own quotes.
fn whole(word: &Word, new: &Path) -> Option<Edit> {
    Some(Edit::replace(word.span.clone(), replacement(word, &new.display().to_string())?))
}

/// Replaces an option's value, attached or in the next word.
fn option_edit(lower: &Lower<'_>, option: &GivenOption<'_>, new: &Path) -> Option<Edit> {
    let word = option.word?;
    if option.lead == 0 { whole(word, new) } else { edit_tail(lower, word, option.lead, new) }
}

/// Replaces what stands behind the first bytes of a word, where those are written plainly.
fn edit_tail(lower: &Lower<'_>, word: &Word, lead: usize, new: &Path) -> Option<Edit> {
    let raw = lower.text.get(word.span.clone())?;
    let plain = word.value.known()?.get(..lead)?;
    raw.starts_with(plain).then(|| {
        Edit::replace(word.span.start + lead..word.span.end, shell_word(&new.display().to_string()))
    })
}

/// Adds words at the end of a command.
fn append(command: &Command, text: &str) -> Option<Edit> {
    let last = command.words.last()?;
    Some(Edit::insert(last.span.end, format!(" {text}")))
}

/// The place in quarantine that keeps a path's last name.
fn named(lower: &Lower<'_>, path: &Path) -> PathBuf {
    match path.file_name() {
        Some(name) => lower.scene.target().join(name),
        None => lower.scene.target().to_path_buf(),
    }
}

/// What a clone calls its directory.
fn repository_name(source: &str, parsed: &Parsed<'_>) -> Option<String> {
    let trimmed = source.split(['?', '#']).next().unwrap_or(source).trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/.git").unwrap_or(trimmed);
    let last = trimmed.rsplit(['/', ':']).next()?;
    let last = last.strip_suffix(".git").or_else(|| last.strip_suffix(".bundle")).unwrap_or(last);
    let name =
        if parsed.has(&["--bare", "--mirror"]) { format!("{last}.git") } else { last.to_owned() };
    (!last.is_empty() && !matches!(last, "." | "..")).then_some(name)
}

/// The last name in a URL's path.
fn last_name(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let (_, rest) = path.split_once("://").unwrap_or(("", path));
    let name = rest.trim_end_matches('/').rsplit('/').next()?;
    (rest.contains('/') && !name.is_empty()).then(|| name.to_owned())
}

fn is_url(text: &str) -> bool {
    let scp_like = text.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.is_empty() && !host.starts_with('-')
    });
    text.contains("://") || scp_like
}

fn is_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~'])
}

/// A package that comes from a registry or an address, not from this directory.
fn is_foreign_spec(text: &str) -> bool {
    !is_path(text)
}
