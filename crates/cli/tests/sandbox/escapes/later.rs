//! Ways to leave something that a program of the user acts on without being asked: tools besides git,
//! agents and shells; packages as a hiding place; toolchains by their path. And locks, which hold up
//! whoever comes later.

use super::row::Sign::{Mark, Says};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    bash(
        "hooks by a manager of hooks",
        Mark("project/.pre-commit-config.yaml"),
        "echo $MARK > .pre-commit-config.yaml",
    ),
    bash(
        "hooks by another manager of hooks",
        Mark("project/sub/lefthook.yml"),
        "mkdir sub; echo $MARK > sub/lefthook.yml",
    ),
    bash(
        "a hook that husky runs",
        Mark("project/.husky/pre-commit"),
        "mkdir .husky; echo $MARK > .husky/pre-commit",
    ),
    bash("settings of Mercurial", Mark("project/.hg/hgrc"), "mkdir .hg; echo $MARK > .hg/hgrc"),
    bash(
        "settings of Jujutsu",
        Mark("project/.jj/repo/config.toml"),
        "mkdir -p .jj/repo; echo $MARK > .jj/repo/config.toml",
    ),
    bash(
        "settings of Jujutsu, moved into place",
        Mark("project/.jj/repo/config.toml"),
        "mkdir -p r/repo; echo $MARK > r/repo/config.toml; mv r .jj",
    ),
    bash(
        "language servers of an editor",
        Mark("project/.helix/languages.toml"),
        "mkdir .helix; echo $MARK > .helix/languages.toml",
    ),
    bash(
        "a start file of an editor, in the project",
        Mark("project/.vimrc"),
        "echo $MARK > v; mv v .vimrc",
    ),
    bash(
        "a build system in an editor's project",
        Mark("project/web.sublime-project"),
        "echo $MARK > web.sublime-project",
    ),
    bash(
        "a compiler that an editor asks",
        Mark("project/.vscode/c_cpp_properties.json"),
        "mkdir .vscode; echo $MARK > .vscode/c_cpp_properties.json",
    ),
    bash("what R runs when it starts", Mark("project/.Rprofile"), "echo $MARK > .Rprofile"),
    bash(
        "what R loads, in a directory under a new name",
        Mark("project/y/.RData"),
        "mkdir x; cat > x/d <<< $MARK; mv x/d x/.RData; mv x y",
    ),
    bash(
        "what a debugger runs, by a link to its name",
        Mark("project/.pdbrc"),
        "echo $MARK > p; ln -s p .pdbrc",
    ),
    bash("what a console runs, hard linked", Mark("project/.ghci"), "echo $MARK > g; ln g .ghci"),
    bash(
        "what a console runs, by a file without a name",
        Mark("project/.iex.exs"),
        r#"$PYTHON -c 'import ctypes, os, sys
file = os.open(".", os.O_TMPFILE | os.O_RDWR)
os.write(file, sys.argv[1].encode())
ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % file, -100, b".iex.exs", 0x400)' $MARK"#,
    ),
    bash("what pnpm runs", Mark("project/.pnpmfile.cjs"), "echo $MARK > .pnpmfile.cjs"),
    bash(
        "the yarn that yarn runs",
        Mark("project/.yarn/releases/yarn.cjs"),
        "mkdir -p .yarn/releases; echo $MARK > .yarn/releases/yarn.cjs",
    ),
    bash("what mise runs on entering", Mark("project/mise.toml"), "echo $MARK > mise.toml"),
    bash(
        "hooks of an agent among its texts",
        Mark("project/.kiro/hooks/x.kiro.hook"),
        "mkdir -p .kiro/specs .kiro/hooks; echo $MARK > .kiro/hooks/x.kiro.hook",
    ),
    bash(
        "settings of an agent in capital letters",
        Mark("project/.QWEN/settings.json"),
        "mkdir .QWEN; echo $MARK > .QWEN/settings.json",
    ),
    bash(
        "hooks of an agent, linked with their directory",
        Mark("project/.windsurf/hooks.json"),
        "mkdir w; echo $MARK > w/hooks.json; ln -s w .windsurf",
    ),
    bash(
        "a toolchain by its path",
        Mark("project/rust-toolchain.toml"),
        r#"printf '[toolchain]\npath = "%s"\n' $MARK > rust-toolchain.toml"#,
    ),
    bash(
        "a toolchain by its path, in another spelling",
        Mark("project/rust-toolchain"),
        r#"printf '[toolchain]\n"p\\u0061th" = "%s"\n' $MARK > rust-toolchain"#,
    ),
    bash(
        "a toolchain by its path, changed through a link",
        Mark("project/.tool-versions"),
        r#"echo ruby 3.4.1 > t; ln -s t .tool-versions; echo "node path:./$MARK" >> t"#,
    ),
    bash(
        "a toolchain by its path, in a directory under a new name",
        Mark("project/u/rust-toolchain.toml"),
        r#"mkdir t; echo "toolchain.path = '$MARK'" > t/rust-toolchain.toml; mv t u"#,
    ),
    bash(
        "a hook out of a package",
        Mark("project/.husky/pre-commit"),
        "mkdir -p node_modules/x/.husky; echo $MARK > node_modules/x/.husky/pre-commit; mv node_modules/x/.husky .",
    ),
    bash(
        "a hook with the package that brings it",
        Mark("project/pkg/.husky/pre-commit"),
        "mkdir -p node_modules/x/.husky; echo $MARK > node_modules/x/.husky/pre-commit; mv node_modules/x pkg",
    ),
    bash(
        "a hook linked from a package",
        Mark("project/.husky/pre-commit"),
        "mkdir -p node_modules/h; echo $MARK > node_modules/h/pre-commit; ln -s node_modules/h .husky",
    ),
    python(
        "hold up whoever opens a file",
        Says,
        "
import fcntl
fcntl.fcntl(os.open(OUTSIDE + '/victim.txt', os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
print('OPEN')
",
    ),
    python(
        "a lock that others wait for",
        Says,
        "
import fcntl
fcntl.flock(os.open(OUTSIDE + '/victim.txt', os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
print('OPEN')
",
    ),
];
