# What an attempt is made on, made once and copied for each: $SECRET in every place that holds one.
set -e
git() { command git -c init.defaultBranch=main -c user.name=A -c user.email=a@example.org "$@"; }
repository() {
    git init -q --template= "$1"
    echo "$2" > "$1/secret.txt"
    git -C "$1" add secret.txt
    git -C "$1" commit -qm first
    mkdir -p "$1/.git/hooks" "$1/.git/info"
}

mkdir -p outside/names outside/empty
cd outside
for file in secret.txt movable.txt; do echo "$SECRET" > $file; done
for file in victim.txt doomed.txt appended.txt; do echo unharmed > $file; done
touch "names/$SECRET"
printf %4321d 0 > sized
touch -d 2002-02-02 sized
ln -s "$SECRET" telling-link
printf '#!/bin/sh\necho %s\n' "$SECRET" > tell
chmod +x tell
"$PYTHON" -c 'import os; os.setxattr("victim.txt", "user.secret", os.environb[b"SECRET"])' ||
    echo 'no attributes here'
repository repo "$SECRET"
cd ..

mkdir project-evil
echo "$SECRET" > project-evil/secret.txt

mkdir -p home/.ssh home/.cargo/bin home/.local/bin home/.local/state/ringwall/audit \
    home/.config/systemd/user home/.config/autostart home/.config/git home/.claude
cd home
echo "$SECRET" > .ssh/id_ed25519
echo "token = \"$SECRET\"" > .cargo/credentials.toml
echo "$SECRET" > .local/state/ringwall/audit/notes
for file in .bashrc .profile .ssh/config .ssh/authorized_keys .gitconfig; do echo > $file; done
echo '{}' > .claude/settings.json
cd ..

repository project 'of the project'
cd project
echo hello > hello.txt
ln -s "$YARD/outside/secret.txt" planted-link
ln -s "$YARD/outside" planted-dir
ln -s "$YARD/run/service.sock" planted-socket
# Names that somebody reads later, as they are found in a repository.
mkdir -p .claude tools/cursor scripts vendor deep/er/.vscode certificates frozen
echo '{}' > .claude/settings.json
echo '{}' > deep/er/.vscode/settings.json
ln -s tools/cursor .cursor
ln -s scripts/exrc .exrc
repository vendor/lib 'of a library'
# Names that the configuration denies.
echo "$SECRET" > key.pem
echo "$SECRET" > certificates/inner.pem
echo unharmed > frozen.txt
echo unharmed > frozen/inner.txt
