//! Ways to leave something that a program outside runs later.

use super::row::Sign::{Host, Mark, Says};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    python(
        "a protected name that is a socket",
        Host(|escape_env| escape_env.env.path("project/.mcp.json").exists()),
        "import socket
socket.socket(socket.AF_UNIX).bind('.mcp.json')
print('OPEN')",
    ),
    // Below home, and in the system.
    bash("a shell's start file", Mark("home/.bashrc"), "echo $MARK >> $HOMEDIR/.bashrc"),
    bash("a login's start file", Mark("home/.profile"), "echo $MARK >> $HOMEDIR/.profile"),
    bash("a start file that was not there", Mark("home/.zshenv"), "echo $MARK > $HOMEDIR/.zshenv"),
    bash(
        "a key that may log in",
        Mark("home/.ssh/authorized_keys"),
        "echo $MARK >> $HOMEDIR/.ssh/authorized_keys",
    ),
    bash("a proxy command for ssh", Mark("home/.ssh/config"), "echo $MARK >> $HOMEDIR/.ssh/config"),
    bash(
        "git's settings of the user",
        Mark("home/.gitconfig"),
        "echo $MARK >> $HOMEDIR/.gitconfig",
    ),
    bash(
        "git's attributes of the user",
        Mark("home/.config/git/attributes"),
        "echo $MARK > $HOMEDIR/.config/git/attributes",
    ),
    bash(
        "a service of the user",
        Mark("home/.config/systemd/user/x.service"),
        "echo $MARK > $HOMEDIR/.config/systemd/user/x.service",
    ),
    bash(
        "a program at log-in",
        Mark("home/.config/autostart/x.desktop"),
        "echo $MARK > $HOMEDIR/.config/autostart/x.desktop",
    ),
    bash(
        "a program on the path",
        Mark("home/.local/bin/ls"),
        "echo $MARK > $HOMEDIR/.local/bin/ls",
    ),
    bash(
        "a module that python loads",
        Mark("home/.local/lib/python3/site-packages/usercustomize.py"),
        "mkdir -p $HOMEDIR/.local/lib/python3/site-packages
        echo $MARK > $HOMEDIR/.local/lib/python3/site-packages/usercustomize.py",
    ),
    bash(
        "an agent's settings of the user",
        Mark("home/.claude/settings.json"),
        "echo $MARK >> $HOMEDIR/.claude/settings.json",
    ),
    bash(
        "Ringwall's settings of the user",
        Mark("home/.config/ringwall/ringwall.toml"),
        "mkdir -p $HOMEDIR/.config/ringwall
        echo \"# $MARK\" > $HOMEDIR/.config/ringwall/ringwall.toml",
    ),
    bash(
        "Ringwall's settings of the run",
        Mark("wall.toml"),
        "echo \"# $MARK\" >> $YARD/wall.toml",
    ),
    python(
        "a job of the system",
        Says,
        "
for place in ('/etc/cron.d', '/var/spool/cron/crontabs', '/var/spool/cron'):
    try:
        os.open(place, os.O_TMPFILE | os.O_WRONLY)
        print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    python(
        "a library that everything loads",
        Says,
        "
for place in ('/lib', '/usr/lib', '/etc/ld.so.conf.d', '/etc/profile.d'):
    try:
        os.open(place, os.O_TMPFILE | os.O_WRONLY)
        print('OPEN')
    except OSError as error:
        print(error)
",
    ),
    // The project's repository.
    bash("a hook", Mark("project/.git/hooks/pre-commit"), "echo $MARK > .git/hooks/pre-commit"),
    bash(
        "a hook in another directory of hooks",
        Mark("project/.git/hooks/pre-commit"),
        "mv .git/hooks h; mkdir .git/hooks; echo $MARK > .git/hooks/pre-commit",
    ),
    bash("a repository's settings", Mark("project/.git/config"), "echo \"# $MARK\" >> .git/config"),
    bash(
        "a repository's settings, by git",
        Mark("project/.git/config"),
        "git config core.fsmonitor ./$MARK",
    ),
    bash(
        "a repository's settings, replaced",
        Mark("project/.git/config"),
        "cp .git/config c; echo \"# $MARK\" >> c; mv -f c .git/config",
    ),
    bash(
        "a repository's settings, through a hard link",
        Mark("project/.git/config"),
        "ln .git/config c; echo \"# $MARK\" >> c",
    ),
    bash(
        "a repository's settings, through a link to the directory",
        Mark("project/.git/config"),
        "ln -s .git g; echo \"# $MARK\" >> g/config",
    ),
    bash(
        "another repository in place of this",
        Mark("project/.git/config"),
        "cp -r .git g; echo \"# $MARK\" >> g/config; mv .git o; mv g .git",
    ),
    bash(
        "another repository by exchange",
        Mark("project/.git/config"),
        "cp -r .git g; echo \"# $MARK\" >> g/config
        $PYTHON -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\".git\", -100, b\"g\", 2)'",
    ),
    bash(
        "a repository elsewhere",
        Mark("project/.git"),
        "mv .git g; echo gitdir: $PROJECT/g/$MARK > .git",
    ),
    bash("a common directory", Mark("project/.git/commondir"), "echo $MARK > .git/commondir"),
    bash(
        "settings of a worktree",
        Mark("project/.git/config.worktree"),
        "echo \"# $MARK\" > .git/config.worktree",
    ),
    bash(
        "attributes of a repository",
        Mark("project/.git/info/attributes"),
        "echo \"* filter=$MARK\" > .git/info/attributes",
    ),
    bash(
        "attributes, with the directory they are in",
        Mark("project/.git/info/attributes"),
        "mkdir i; echo \"* filter=$MARK\" > i/attributes; mv .git/info o; mv i .git/info",
    ),
    bash(
        "objects of another repository",
        Mark("project/.git/objects/info/alternates"),
        "mkdir -p .git/objects/info; echo /$MARK > .git/objects/info/alternates",
    ),
    bash(
        "a module's repository",
        Mark("project/.git/modules/m/config"),
        "mkdir -p .git/modules/m; echo \"# $MARK\" > .git/modules/m/config",
    ),
    bash(
        "a worktree's repository",
        Mark("project/.git/worktrees/w/config.worktree"),
        "mkdir -p .git/worktrees/w; echo \"# $MARK\" > .git/worktrees/w/config.worktree",
    ),
    bash(
        "a hook of a repository further down",
        Mark("project/vendor/lib/.git/hooks/post-checkout"),
        "echo $MARK > vendor/lib/.git/hooks/post-checkout",
    ),
    bash(
        "a hook of a repository in a renamed directory",
        Mark("project/vendor/lib/.git/hooks/post-checkout"),
        "cp -r vendor v; echo $MARK > v/lib/.git/hooks/post-checkout; mv vendor o; mv v vendor",
    ),
    bash(
        "a hook of a new repository",
        Mark("project/new/.git/hooks/post-checkout"),
        "git init -q new; mkdir -p new/.git/hooks; echo $MARK > new/.git/hooks/post-checkout",
    ),
    bash(
        "a hook of a new repository, by its template",
        Mark("project/new/.git/hooks/post-checkout"),
        "mkdir -p t/hooks; echo $MARK > t/hooks/post-checkout; git init -q --template=t new",
    ),
    bash(
        "settings of a new repository",
        Mark("project/new/.git/config"),
        "git init -q new; git -C new config core.fsmonitor ./$MARK",
    ),
    bash("a git link", Mark("project/new/.git"), "mkdir new; echo gitdir: ../$MARK > new/.git"),
    bash(
        "settings of a directory that looks like a repository",
        Mark("project/docs/config"),
        "mkdir -p docs/objects docs/refs; echo ref: refs/heads/main > docs/HEAD
        printf '[core]\\n\\tbare = true\\n\\tfsmonitor = ./%s\\n' $MARK > docs/config",
    ),
    bash(
        "a hook of a directory that looks like a repository",
        Mark("project/docs/hooks/reference-transaction"),
        "mkdir -p docs/objects docs/refs docs/hooks; echo ref: refs/heads/main > docs/HEAD
        printf '[core]\\n\\tbare = true\\n' > docs/config
        echo $MARK > docs/hooks/reference-transaction",
    ),
    bash(
        "settings of such a directory, dated back",
        Mark("project/docs/config"),
        "mkdir -p docs/objects docs/refs; echo ref: refs/heads/main > docs/HEAD
        printf '[core]\\n\\tbare = true\\n\\tfsmonitor = ./%s\\n' $MARK > docs/config
        touch -d 2001-01-01 docs/config",
    ),
    bash(
        "settings of such a directory, with a link for a head",
        Mark("project/docs/config"),
        "mkdir -p docs/objects docs/refs; ln -s refs/heads/main docs/HEAD
        printf '[core]\\n\\tbare = true\\n\\tfsmonitor = ./%s\\n' $MARK > docs/config",
    ),
    bash(
        "a directory that looks like a part of a repository",
        Mark("project/docs/commondir"),
        "mkdir -p docs other/objects other/refs other/$MARK; echo ref: refs/heads/main > docs/HEAD
        echo ../other/$MARK/.. > docs/commondir",
    ),
    bash(
        "hooks of a new repository, linked",
        Mark("project/new/.git/hooks/post-checkout"),
        "git init -q --template= new; mkdir h; echo $MARK > h/post-checkout
        ln -s ../../h new/.git/hooks",
    ),
    // What agents read.
    bash(
        "Claude's settings",
        Mark("project/.claude/settings.json"),
        "echo $MARK >> .claude/settings.json",
    ),
    bash(
        "Claude's settings that were not there",
        Mark("project/.claude/settings.local.json"),
        "echo $MARK > .claude/settings.local.json",
    ),
    bash(
        "Claude's settings, replaced",
        Mark("project/.claude/settings.json"),
        "echo $MARK > s; mv -f s .claude/settings.json",
    ),
    bash(
        "Claude's settings, with the directory they are in",
        Mark("project/.claude/settings.json"),
        "mkdir c; echo $MARK > c/settings.json; mv .claude o; mv c .claude",
    ),
    bash(
        "Claude's settings, through a link in place of the directory",
        Mark("project/.claude/settings.json"),
        "mkdir c; echo $MARK > c/settings.json; mv .claude o; ln -s c .claude",
    ),
    bash(
        "Claude's settings in a directory further down",
        Mark("project/scripts/.claude/settings.json"),
        "mkdir -p scripts/.claude; echo $MARK > scripts/.claude/settings.json",
    ),
    bash(
        "Claude's settings, with a directory moved into place",
        Mark("project/scripts/.claude/settings.json"),
        "mkdir c; echo $MARK > c/settings.json; mv c scripts/.claude",
    ),
    bash(
        "a hook of Claude's",
        Mark("project/.claude/hooks/pre.sh"),
        "mkdir -p .claude/hooks; echo $MARK > .claude/hooks/pre.sh",
    ),
    bash(
        "a command of Claude's",
        Mark("project/.claude/commands/x.md"),
        "mkdir -p .claude/commands; echo $MARK > .claude/commands/x.md",
    ),
    bash("servers to start", Mark("project/.mcp.json"), "echo $MARK > .mcp.json"),
    bash(
        "servers to start, moved into place",
        Mark("project/.mcp.json"),
        "echo $MARK > m; mv m .mcp.json",
    ),
    bash(
        "servers to start, linked",
        Mark("project/.mcp.json"),
        "echo $MARK > m; ln -s m .mcp.json",
    ),
    bash(
        "servers to start, hard linked",
        Mark("project/.mcp.json"),
        "echo $MARK > m; ln m .mcp.json",
    ),
    bash(
        "servers to start, by a name that changes under the call",
        Mark("project/.mcp.json"),
        "./escape flip-write $PROJECT/hello.txt $PROJECT/.mcp.json $MARK",
    ),
    bash(
        "servers to start, by a call of 32 bits",
        Mark("project/.mcp.json"),
        "./escape old-write .mcp.json $MARK",
    ),
    bash(
        "servers to start, by a queue of calls",
        Mark("project/.mcp.json"),
        "./escape ring-write .mcp.json $MARK",
    ),
    python(
        "servers to start, by a file that has no name yet",
        Mark("project/.mcp.json"),
        "
file = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644)
os.write(file, MARK.encode())
libc.linkat(-100, f'/proc/self/fd/{file}'.encode(), -100, b'.mcp.json', 0x400)
",
    ),
    bash(
        "Codex's settings",
        Mark("project/.codex/config.toml"),
        "mkdir -p .codex; echo $MARK > .codex/config.toml",
    ),
    bash(
        "Gemini's settings",
        Mark("project/.gemini/settings.json"),
        "mkdir -p .gemini; echo $MARK > .gemini/settings.json",
    ),
    bash(
        "Cursor's settings behind a link",
        Mark("project/tools/cursor/mcp.json"),
        "echo $MARK > .cursor/mcp.json",
    ),
    bash(
        "Cursor's settings where a link leads",
        Mark("project/tools/cursor/mcp.json"),
        "echo $MARK > tools/cursor/mcp.json",
    ),
    bash("opencode's settings", Mark("project/opencode.json"), "echo $MARK > opencode.json"),
    bash("Ringwall's settings", Mark("project/ringwall.toml"), "echo \"# $MARK\" > ringwall.toml"),
    // What editors, shells and tools read.
    bash(
        "an editor's tasks",
        Mark("project/.vscode/tasks.json"),
        "mkdir -p .vscode; echo $MARK > .vscode/tasks.json",
    ),
    bash(
        "an editor's settings in a renamed directory",
        Mark("project/deep/er/.vscode/settings.json"),
        "cp -r deep d; echo $MARK > d/er/.vscode/settings.json; mv deep o; mv d deep",
    ),
    bash("a link's missing end", Mark("project/scripts/exrc"), "echo $MARK > scripts/exrc"),
    bash(
        "a container to open the project in",
        Mark("project/.devcontainer/devcontainer.json"),
        "mkdir -p .devcontainer; echo $MARK > .devcontainer/devcontainer.json",
    ),
    bash("what a shell runs on entering", Mark("project/.envrc"), "echo $MARK > .envrc"),
    bash(
        "what cargo runs",
        Mark("project/.cargo/config.toml"),
        "mkdir -p .cargo; echo \"# $MARK\" > .cargo/config.toml",
    ),
    bash(
        "hooks of husky",
        Mark("project/.husky/_/h"),
        "mkdir -p .husky/_; echo $MARK > .husky/_/h",
    ),
];
