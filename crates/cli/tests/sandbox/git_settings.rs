//! The user's own git settings in a run, and what git records about branches.

use fixtures::{TestEnv, User, has_python, users};

const CHECKOUT: &str =
    "git init -q -b main . && git add -A && git commit -q --allow-empty -m first";

/// Settings of which only some come along.
const SETTINGS: &str = "[user]\n\tname = Some One\n\temail = one@example.org\n\
    [include]\n\tpath = ~/.config/git/more\n[core]\n\tpager = touch PWNED\n\
    \texcludesFile = ~/.ignored\n\tattributesFile = ~/.attributes\n\thooksPath = ~/hooks\n\
    [alias]\n\tst = status --short\n\tevil = !touch PWNED\n[init]\n\tdefaultBranch = trunk\n\
    [credential]\n\thelper = !touch PWNED\n";

#[test]
fn harmless_settings_come_along() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.gitconfig", SETTINGS);
        env.write("home/.config/git/more", "[pull]\n\trebase = true\n[merge]\n\tff = false\n");
        env.write("home/.ignored", "*.log\n");
        env.write("home/.attributes", "*.bin -text\n");
        env.prepare(CHECKOUT);
        let ran = env.run(
            &[],
            "set -e; echo s > secret.log; echo a > a.txt; echo b > b.bin
            git st; git add -A; git commit -qm all; git check-attr text b.bin
            git config --list | grep -E '^(pull|merge|alias|core.pager|core.hookspath|credential)' | sort
            git init -q new; git -C new symbolic-ref HEAD; rm -rf new; git log -1 --format='%an <%ae>'",
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let expected = "?? a.txt\n?? b.bin\nb.bin: text: unset\nalias.st=status --short\n\
            merge.ff=false\npull.rebase=true\nrefs/heads/trunk\nSome One <one@example.org>\n";
        assert_eq!(ran.stdout, expected, "{ran:?}");
        let files = env.bare("git show --name-only --format=");
        assert_eq!(String::from_utf8_lossy(&files.stdout), "a.txt\nb.bin\n");
    }
}

#[test]
fn settings_are_found_where_the_user_keeps_them() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        env.write("home/conf/git/config", "[alias]\n\tst = status --short\n");
        env.write("home/conf/git/ignore", "*.log\n");
        let conf = env.path("home/conf").display().to_string();
        let ran = env.run_with(&[("XDG_CONFIG_HOME", &conf)], &[], "touch a.log b; git st");
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "?? b\n"), "{ran:?}");
    }
}

#[test]
fn a_commit_does_not_lose_its_signature() {
    for who in users() {
        let env = TestEnv::new(who);
        env.write("home/.ssh/id.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample me\n");
        env.prepare(CHECKOUT);
        env.prepare(
            "git config --global gpg.format ssh && git config --global user.signingKey '~/.ssh/id.pub' \
             && git config --global commit.gpgSign true && git config --global tag.gpgSign true",
        );
        let commit = "echo b > b.txt; git add -A; git commit -qm signed";
        for script in [commit, "git tag -a v1 -m v1"] {
            let ran = env.run(&[], script);
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(
                ran.stderr.contains("\nringwall: your settings ask for a signature"),
                "{ran:?}"
            );
            assert!(ran.stderr.contains("ringwall grant unix ssh-agent"), "{ran:?}");
            assert!(ran.violations().is_empty(), "{ran:?}");
        }
        let ran = env.run(&[], &format!("{commit} --no-gpg-sign"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // With the agent's socket the same commit is signed. OpenSSH works only for users with a name.
        let made =
            env.bare("rm $HOME/.ssh/id.pub; ssh-keygen -q -t ed25519 -N '' -f $HOME/.ssh/id");
        if who == User::Unprivileged {
            assert!(!made.status.success(), "{made:?}");
            continue;
        }
        let binary = env.binary().display().to_string();
        let signed = env.bare(&format!(
            "eval $(ssh-agent -s -a $HOME/agent.1) > /dev/null; ssh-add -q $HOME/.ssh/id
            {binary} run --allow-unix ssh-agent -- git commit -q --allow-empty -m signed; code=$?
            kill $SSH_AGENT_PID; git cat-file commit HEAD; exit $code"
        ));
        let text = String::from_utf8_lossy(&signed.stdout);
        assert!(signed.status.success() && text.contains("gpgsig -----BEGIN SSH"), "{signed:?}");
    }
}

#[test]
fn what_git_records_about_branches_is_recorded() {
    for who in users() {
        for options in [&[][..], &["--attribution", "notify"]] {
            let env = TestEnv::new(who);
            env.prepare(CHECKOUT);
            env.prepare(
                "git init -q --bare ../r.git && mv ../r.git r.git && git remote add origin ./r.git && \
                 git push -q origin main main:dev && git fetch -q && git branch old && \
                 git config branch.old.description mine && echo r.git > .git/info/exclude",
            );
            let ran = env.run(
                options,
                "set -ex; git switch -q --track origin/dev; git switch -q main; git branch -q -d old
                git branch -q -u origin/main; git switch -qc next; git push -q -u origin next
                git rev-parse --abbrev-ref dev@{u} main@{u} next@{u}; git branch -q -m next last
                git rev-parse --abbrev-ref last@{u}; test ! -e .git/config.lock",
            );
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.violations().is_empty(), "{ran:?}");
            let seen = "origin/dev\norigin/main\norigin/next\norigin/next\n";
            assert_eq!(ran.stdout, seen, "{ran:?}");
            let known =
                env.bare("git rev-parse --abbrev-ref last@{u}; git config --list | grep old");
            assert_eq!(String::from_utf8_lossy(&known.stdout), "origin/next\n", "{ran:?}");
            // Nothing else comes that way.
            let before = env.read("project/.git/config");
            for script in [
                "git config branch.main.remote ../evil; true",
                "git config branch.main.pushRemote origin; true",
                "git remote add evil ./r.git; true",
                "cp .git/config .git/config.lock; printf '[branch \"x\"]\\n\\tremote = .\\n[core]\\n\\tpager = e\\n' \
                 >> .git/config.lock; mv .git/config.lock .git/config; true",
            ] {
                let ran = env.run(options, script);
                assert_eq!(env.read("project/.git/config"), before, "{script}: {ran:?}");
                env.prepare("rm -f .git/config.lock");
            }
        }
    }
}

#[test]
fn a_record_is_what_was_judged() {
    // A thread writes the lock file all the time, while it is put in place.
    const PROGRAM: &str = r#"
import os, threading
good = open(".git/config", "rb").read() + b'[branch "x"]\n\tremote = .\n'
evil = good + b'[core]\n\tpager = evil\n'
stop = False
def write():
    while not stop:
        for text in (good, evil):
            try:
                fd = os.open(".git/config.lock", os.O_WRONLY)
                os.pwrite(fd, text, 0); os.ftruncate(fd, len(text)); os.close(fd)
            except OSError: pass
thread = threading.Thread(target=write); thread.start()
for _ in range(300):
    open(".git/config.lock", "wb").write(good)
    try: os.rename(".git/config.lock", ".git/config")
    except OSError: pass
    assert b"evil" not in open(".git/config", "rb").read()
stop = True; thread.join()
"#;
    if !has_python() {
        return;
    }
    for who in users() {
        let env = TestEnv::new(who);
        env.configure("[violation]\naction = \"deny\"\n");
        env.prepare(CHECKOUT);
        env.write("project/program.py", PROGRAM);
        let ran = env.run(&[], "python3 program.py");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!env.read("project/.git/config").contains("evil"), "{ran:?}");
    }
}
