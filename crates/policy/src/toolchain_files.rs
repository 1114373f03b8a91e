//! Files that choose a toolchain: harmless as long as they give a version, and not a place.
//!
//! `cargo`, and whatever runs for a shell's prompt, act on them without being asked, so with a path
//! in it such a file is like a protected name. With a version it is ordinary work, and agents write
//! it. A call that writes it does not show what it will be, so its text is judged.

/// Files of rustup: TOML, or one line with the name of a toolchain.
const RUSTUP: &[&str] = &["rust-toolchain.toml", "rust-toolchain"];
/// Files of asdf and mise: a tool and its versions on each line.
const ASDF: &str = ".tool-versions";
/// Files of version managers: one version, or one on each line.
const VERSIONS: &[&str] = &[".python-version", ".ruby-version", ".node-version"];

/// The names of files that choose a toolchain.
pub fn toolchain_files() -> impl Iterator<Item = &'static str> {
    RUSTUP.iter().copied().chain([ASDF]).chain(VERSIONS.iter().copied())
}

/// Whether a name, with case folded, is that of a file that chooses a toolchain.
pub fn chooses_toolchain(name: &str) -> bool {
    toolchain_files().any(|file| file == name)
}

/// Whether the text of such a file names no program: what is not understood does.
pub fn names_no_program(name: &str, text: &str) -> bool {
    let mut words = text.lines().flat_map(versions);
    if name == ASDF {
        return words.all(is_version);
    }
    if VERSIONS.contains(&name) {
        return words.all(|word| {
            is_version(word) && !word.strip_prefix("lts/").unwrap_or(word).contains('/')
        });
    }
    // Without these, every string ends on its line, and every key is written as it is.
    if text.contains('\\') || text.contains("\"\"\"") || text.contains("'''") {
        return false;
    }
    let without: String = text.lines().map(|line| before_comment(line).to_owned() + "\n").collect();
    !without.contains("path") && !without.contains('/')
}

/// The words of a line before a comment: a tool and its versions, or versions.
fn versions(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().take_while(|word| !word.starts_with('#'))
}

/// Whether this is a version or the name of a tool: no path, and no template, which mise runs. Version
/// managers make the place of a program of it, which `..` would lead anywhere. A branch and the name
/// of a tool can have a `/` in them.
fn is_version(text: &str) -> bool {
    let plain = text.rsplit_once(':').map_or(text, |(_, plain)| plain);
    let prefix = text.split_once(':').map(|(prefix, _)| prefix);
    !prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("path"))
        && !text.contains(['\\', '~', '$', '{', '}', '%'])
        && !plain.starts_with('/')
        && text.split(['/', ':']).all(|part| part != ".." && part != ".")
}

/// A line of TOML without its comment.
fn before_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('#', None) => return line.get(..at).unwrap_or(line),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_harmless_and_a_place_is_not() {
        for (text, harmless) in [
            ("stable\n", true),
            ("nightly-2026-01-01", true),
            ("[toolchain]\nchannel = \"1.90\"\ncomponents = [\"rustfmt\", 'clippy']\n", true),
            (
                "# see https://rust-lang.github.io/rustup, path\n[toolchain]\nchannel = '1.90'\n",
                true,
            ),
            ("[toolchain]\nchannel = \"1.90\" # a path\n", true),
            ("[toolchain]\npath = \"x\"\n", false),
            ("toolchain.path = 'x'", false),
            ("[toolchain]\n\"p\\u0061th\" = \"x\"\n", false),
            ("toolchain = { a = \"\"\"\"#\"\"\", path = \"x\" }", false),
            ("toolchain = { a = '#', path = \"x\" }", false),
            ("toolchain = { a = \"it's #\", path = \"x\" }", false),
            ("a = '''\nb#''', path = 1", false),
            ("/tmp/toolchain", false),
            ("../toolchain", false),
        ] {
            assert_eq!(names_no_program("rust-toolchain.toml", text), harmless, "{text}");
        }
        for (text, harmless) in [
            ("ruby 3.4.1\nnodejs 22.1.0 system # comment\n", true),
            ("ruby path:./evil\n", false),
            ("ruby PATH:evil\n", false),
            ("node lts/jod ref:feature/x # ../comment\npython 3.12.1 2.7 pypy3.9-7.3\n", true),
            ("npm:@example/tool 1 # x\naqua:example/tool 2\n", true),
            ("python ../../../x\n", false),
            ("python ref:../../x\n", false),
            ("python 3.12/../../x\n", false),
            ("python /tmp/x\n", false),
            ("../../evil 1\n", false),
            ("ruby {{ exec(command='touch x') }}\n", false),
        ] {
            assert_eq!(names_no_program(".tool-versions", text), harmless, "{text}");
        }
        for (text, harmless) in [
            ("3.12.1\n2.7.18\n", true),
            ("lts/jod\n", true),
            ("# see https://example.org\n3.12\n", true),
            ("envs/work\n", false),
            ("../../../code/app/evil\n", false),
            ("3.12\n/tmp/x\n", false),
        ] {
            for name in [".python-version", ".ruby-version", ".node-version"] {
                assert_eq!(names_no_program(name, text), harmless, "{name}: {text}");
            }
        }
    }
}
