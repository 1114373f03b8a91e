//! Git as people use it: in a checkout of its own, and in a linked worktree of somebody else's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fixtures::{RunOutput, TestEnv, users};

/// Both ways to tell what was tried.
const ATTRIBUTIONS: [&str; 2] = ["tripwire", "notify"];

/// A checkout with one commit.
const CHECKOUT: &str = "git init -q -b main . && git add -A && git commit -qm first";

/// A repository beside the project, with branches and tags loose and packed; the project becomes a
/// linked worktree of it.
const WORKTREE: &str = "cd .. && rm -rf project && mkdir repo && cd repo && git init -q -b main . \
    && echo hello > hello.txt && git add -A && git commit -qm first \
    && git branch other && git branch agent/zero && git tag v1 && git pack-refs --all \
    && git branch loose && git tag v2 && git config extensions.worktreeConfig true \
    && git worktree add -q ../project ";

fn deny(env: &TestEnv) {
    env.configure("[violation]\naction = \"deny\"\n");
}

fn assert_clean(ran: &RunOutput) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.violations().is_empty() && ran.events("tampering").is_empty(), "{ran:?}");
}

/// Every file below a directory, with its content, but for what lies below some others.
fn files(root: &Path, but: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in dir.read_dir().unwrap().flatten() {
            let path = entry.path();
            let below = path.strip_prefix(root).unwrap();
            if but.iter().any(|but| below.starts_with(but)) {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(path.clone());
            }
            let content = if kind.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path, content);
        }
    }
    found
}

/// What a commit in the worktree changes in the repository.
const OWN: &[&str] = &[
    ".git/objects",
    ".git/worktrees/project",
    ".git/refs/heads/agent/one",
    ".git/logs/refs/heads/agent/one",
];

#[test]
fn a_day_in_a_checkout() {
    for (who, attribution) in users().into_iter().flat_map(|who| ATTRIBUTIONS.map(|a| (who, a))) {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        let ran = env.run(
            &["--attribution", attribution],
            "set -ex
            git status --short
            echo a > a && git add a && git commit -qm second
            git switch -qc topic/one
            echo b > b && git add b && git commit -qm third
            echo b >> b && git stash -q && git stash pop -q && git commit -qam fourth
            git switch -q main && echo m > m && git add m && git commit -qm fifth
            git switch -q topic/one && git rebase -q main
            git switch -q main && git merge -q --no-ff -m merged topic/one
            git tag v1 && git tag -a v2 -m 'with a text'
            git log --oneline && git diff HEAD~1 --stat && git show --stat HEAD
            git blame a && git grep hello && git describe
            git revert --no-edit -m 1 HEAD && git reset -q --hard HEAD~1
            git cherry-pick --allow-empty v1~1 2>/dev/null || git cherry-pick --abort
            git reflog && git fsck && git bisect start && git bisect reset
            git rm -q a && git mv b c && git commit -qm moved && git commit -q --amend -m renamed
            git notes add -m note && git archive HEAD | tar t > /dev/null
            git format-patch -1 -o patches && git clean -fdq
            git pack-refs --all && git repack -adq && git prune && git gc -q
            git branch gone && git branch -d gone
            git branch old && git branch -m old new && git branch -D new
            git var GIT_AUTHOR_IDENT",
        );
        assert_clean(&ran);
        assert!(ran.stdout.contains("A User <user@example.org>"), "{ran:?}");
        let log = env.bare("git log --format=%s:%ae && git branch --list && git status --short");
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        assert!(log.starts_with("renamed:user@example.org\n"), "{log}");
        assert!(log.contains("merged:") && log.contains("topic/one"), "{log}");
        assert!(!log.contains("gone") && !log.contains("new"), "{log}");
        assert!(!env.path("project/.git/config.lock").exists());
    }
}

#[test]
fn repositories_that_a_run_makes_are_its_own() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        let ran = env.run(
            &[],
            "set -ex
            mkdir nested && cd nested && git init -q && git config user.name Other
            echo z > z && git add z && git commit -qm nested && git log --format=%an && cd ..
            git clone -q . copy && cd copy && echo x > x && git add x && git commit -qm copied
            git push -q origin HEAD:refs/heads/pushed && cd ..
            git clone -q . /tmp/copy && git -C /tmp/copy log --oneline
            git clone -q --bare . bare.git && git -C bare.git log --oneline
            git -C copy fetch -q ../bare.git && git -C copy push -q ../bare.git HEAD:refs/heads/new
            rm -rf nested && mkdir nested && git -C nested init -q && mv nested moved
            rm -rf moved copy bare.git",
        );
        assert_clean(&ran);
        assert!(ran.stdout.contains("Other"), "{ran:?}");
        let pushed = env.bare("git log -1 --format=%s pushed");
        assert_eq!(String::from_utf8_lossy(&pushed.stdout), "copied\n");
    }
}

#[test]
fn configuration_and_hooks_of_a_checkout_stay_as_they_are() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(CHECKOUT);
        env.prepare("git init -q --bare ../bare && mv ../bare ./vendor.git && git branch other");
        env.prepare("git init -q real && mkdir linked && ln -s ../real/.git linked/.git");
        let before = files(&env.path("project"), &[]);
        for script in [
            "git config core.pager 'echo PLANTED'",
            "git remote add origin 'ext::echo PLANTED'",
            "printf '[core]\\n\\tpager = echo PLANTED\\n' >> .git/config",
            "echo 'echo PLANTED' > .git/hooks/pre-commit",
            "rm -f .git/hooks/pre-commit.sample",
            "mv .git/hooks .git/other",
            "rm -rf .git/config",
            "mv .git moved",
            "echo x > .git/info/attributes",
            "mkdir .git/modules",
            "git worktree add -q --detach wt",
            "git -C vendor.git config core.pager 'echo PLANTED'",
            "touch vendor.git/hooks/post-update",
            "ln -s /tmp .git/config.worktree",
            "rm -f linked/.git",
            "echo x >> linked/.git/config",
        ] {
            let ran = env.run(&[], script);
            assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
            assert!(ran.stderr.contains("protected"), "{script}: {ran:?}");
            assert_eq!(files(&env.path("project"), &[]), before, "{script}");
        }
        // Settings that name no program are refused as well, and the run goes on.
        for script in [
            "git remote add origin https://example.org/x; echo next",
            "git config user.name Other; echo next",
        ] {
            let ran = env.run(&[], script);
            assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
            assert!(ran.stdout.ends_with("next\n"), "{script}: {ran:?}");
            assert!(ran.stderr.contains("warning: denied: `git`"), "{script}: {ran:?}");
            assert_eq!(files(&env.path("project"), &[]), before, "{script}");
        }
    }
}

#[test]
fn a_worktree_commits_to_its_own_branch() {
    for (who, attribution) in users().into_iter().flat_map(|who| ATTRIBUTIONS.map(|a| (who, a))) {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} -b agent/one"));
        // What the other side goes on with meanwhile.
        env.prepare("cd ../repo && echo more > more && git add more && git commit -qm more");
        let before = files(&env.path("repo"), OWN);
        let ran = env.run(
            &["--attribution", attribution],
            "set -ex
            git status --short --branch
            echo a > a && git add a && git commit -qm second
            echo b > b && git add b && git commit -qm third
            git rebase -q main && git rebase -q --force-rebase HEAD~2
            git reset -q --soft HEAD~1 && git commit -qm again && git commit -q --amend -m amended
            git diff main --stat && git log --oneline && git branch -a && git fsck
            git merge -q --no-ff -m merged main || git merge --abort
            git revert --no-edit HEAD && git clean -fdq && git reflog && git show-ref
            git clone -q . /tmp/copy && git -C /tmp/copy log --oneline",
        );
        assert_clean(&ran);
        let stopped = ran.events("stopped");
        assert_eq!(stopped[0]["other_references_unchanged"], true, "{ran:?}");
        let log = env.bare("cd ../repo && git log --format=%s:%ae agent/one && git fsck");
        assert!(log.status.success(), "{log:?}");
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        assert!(log.contains("amended:user@example.org\nsecond:"), "{log}");
        assert!(log.contains("more:"), "rebased: {log}");
        assert_eq!(files(&env.path("repo"), OWN), before);
    }
}

#[test]
fn a_worktree_changes_nothing_else_in_its_repository() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} -b agent/one"));
        deny(&env);
        let before = files(&env.path("repo"), OWN);
        let own = ["commondir", "gitdir", "HEAD"].map(|name| {
            let name = format!("repo/.git/worktrees/project/{name}");
            (name.clone(), env.read(&name))
        });
        env.prepare("echo own > own && git add own && git commit -qm own");
        let main = env.bare("git rev-parse main");
        let main = String::from_utf8_lossy(&main.stdout).trim().to_owned();
        let objects = files(&env.path("repo/.git/objects"), &[]);
        let repo = env.path("repo").display().to_string();
        for script in [
            "git branch new",
            "git branch -f other HEAD~0",
            "git branch -f agent/zero HEAD",
            "git branch -D loose",
            "git branch -D agent/zero",
            "git branch -m agent/zero agent/two",
            "git update-ref refs/heads/main HEAD",
            "git update-ref refs/heads/agent/two HEAD",
            "git update-ref -d refs/heads/other",
            "git update-ref -d refs/tags/v1",
            "git tag new",
            "git tag -d v1",
            "git tag -d v2",
            "git tag -f v2 HEAD",
            "git push -q . HEAD:refs/heads/other",
            "git fetch -q . HEAD:refs/heads/new",
            "git stash -q",
            "git notes add -m x",
            "git pack-refs --all",
            "git gc -q",
            "git config core.pager 'echo PLANTED'",
            "git config --worktree core.pager 'echo PLANTED'",
            "git worktree add -q --detach /tmp/wt",
            "git worktree prune; git worktree move . ../other",
            "git reflog expire --expire=now --all",
            "git -C REPO commit -q --allow-empty -m planted",
            "git -C REPO reset -q --hard HEAD~0; rm -f REPO/hello.txt",
            "echo PLANTED > REPO/hello.txt",
            "echo PLANTED > REPO/new.txt",
            "echo PLANTED > REPO/.git/index",
            "echo PLANTED > REPO/.git/HEAD",
            "echo PLANTED >> REPO/.git/config",
            "echo PLANTED > REPO/.git/hooks/post-commit; chmod +x REPO/.git/hooks/post-commit",
            "echo PLANTED >> REPO/.git/packed-refs",
            "rm -f REPO/.git/packed-refs",
            "echo MAIN > REPO/.git/refs/heads/agent/planted",
            "echo MAIN > REPO/.git/refs/heads/loose",
            "echo MAIN > REPO/.git/packed-refs.new && mv REPO/.git/packed-refs.new REPO/.git/packed-refs",
            "echo MAIN > /tmp/x; mv -f /tmp/x REPO/.git/refs/heads/main",
            "ln -s ../../../hooks REPO/.git/refs/heads/agent/hooks",
            "mv REPO/.git/refs/heads/agent REPO/.git/refs/heads/agents",
            "rm -rf REPO/.git/logs REPO/.git/refs REPO/.git/objects/pack REPO/.git/hooks",
            "rm -rf REPO/.git/objects/[0-9a-f]*",
            "for f in REPO/.git/objects/[0-9a-f]*/*; do chmod u+w $f; echo x > $f; done",
            "for d in REPO/.git/objects/[0-9a-f]*; do mv $d /tmp; mv $d $d.gone; done",
            "echo ../.. > REPO/.git/worktrees/project/commondir",
            "echo /tmp > REPO/.git/worktrees/project/gitdir",
            "printf '[core]\\n\\tpager = x\\n' > REPO/.git/worktrees/project/config.worktree",
            "mkdir -p REPO/.git/worktrees/project/modules/x",
            "mkdir REPO/.git/worktrees/planted",
            "mv REPO/.git/worktrees/project REPO/.git/worktrees/other",
            "echo 'gitdir: /tmp' > .git",
            "rm -f .git; mkdir .git",
        ] {
            let script = script.replace("REPO", &repo).replace("MAIN", &main);
            let ran = env.run(&[], &format!("echo x > x; git add x; {script}"));
            assert!(!ran.violations().is_empty(), "{script}: {ran:?}");
            let stopped = ran.events("stopped");
            assert_eq!(stopped[0]["other_references_unchanged"], true, "{script}: {ran:?}");
            assert_eq!(files(&env.path("repo"), OWN), before, "{script}: {ran:?}");
        }
        for (name, text) in own {
            assert_eq!(std::fs::read_to_string(env.path(&name)).unwrap(), text, "{name}");
        }
        // New objects may have come; none may have gone.
        let now = files(&env.path("repo/.git/objects"), &[]);
        assert!(objects.iter().all(|(path, content)| now.get(path) == Some(content)));
    }
}

#[test]
fn a_worktree_works_whatever_its_branch_is_called_and_wherever_it_is_kept() {
    for who in users() {
        for (branch, packed) in
            [("one", false), ("one", true), ("a/b/c", true), ("agent/one", true)]
        {
            let env = TestEnv::new(who);
            env.prepare(&format!("{WORKTREE} -b {branch}"));
            if packed {
                env.prepare("cd ../repo && git gc -q && git pack-refs --all");
            }
            let tell = format!("cd ../repo && git show-ref | grep -v 'refs/heads/{branch}$'");
            let before = env.bare(&tell).stdout;
            let ran = env.run(&[], "set -e; echo a > a; git add a; git commit -qm second");
            assert_clean(&ran);
            let log = env.bare(&format!("cd ../repo && git log --format=%s {branch}"));
            assert_eq!(String::from_utf8_lossy(&log.stdout), "second\nfirst\n", "{branch}");
            assert_eq!(env.bare(&tell).stdout, before, "{branch}");
        }
    }
}

#[test]
fn a_worktree_on_no_branch_keeps_its_commits_to_itself() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} --detach"));
        let before = files(&env.path("repo"), OWN);
        let ran = env.run(&[], "set -e; echo a > a; git add a; git commit -qm second");
        assert_clean(&ran);
        assert_eq!(ran.events("stopped")[0]["other_references_unchanged"], true, "{ran:?}");
        let log = env.bare("git log --format=%s && git -C ../repo fsck");
        assert!(String::from_utf8_lossy(&log.stdout).starts_with("second\nfirst\n"), "{log:?}");
        assert_eq!(files(&env.path("repo"), OWN), before);
        let ran = env.run(&[], "git switch -c new");
        assert_eq!(ran.code, Some(77), "{ran:?}");
    }
}

#[test]
fn a_worktree_cannot_make_another_branch_its_own() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} -b agent/one"));
        deny(&env);
        let before = files(&env.path("repo"), OWN);
        let head = env.path("repo/.git/worktrees/project/HEAD");
        let repo = env.path("repo").display().to_string();
        for script in [
            "git switch -q other".to_owned(),
            format!("echo 'ref: refs/heads/other' > {repo}/.git/worktrees/project/HEAD"),
            format!("echo 'ref: refs/heads/../../hooks/x' > {repo}/.git/worktrees/project/HEAD"),
            format!("echo ' ref: refs/heads/other' > {repo}/.git/worktrees/project/HEAD"),
            format!("echo 'ref: refs/heads/' > {repo}/.git/worktrees/project/HEAD"),
        ] {
            let ran = env.run(&[], &script);
            assert_eq!(ran.events("tampering").len(), 1, "{script}: {ran:?}");
            let now = std::fs::read_to_string(&head).unwrap();
            assert_eq!(now, "ref: refs/heads/agent/one\n", "{script}");
        }
        // Also where nothing could put it right, after a crash.
        std::fs::write(&head, "ref: refs/heads/../../hooks/x\n").unwrap();
        let ran = env.run(&[], &format!("echo PLANTED > {repo}/.git/hooks/post-commit"));
        assert!(!ran.violations().is_empty(), "{ran:?}");
        assert_eq!(files(&env.path("repo"), OWN), before);
    }
}

#[test]
fn a_git_file_that_lies_opens_nothing() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} -b agent/one"));
        let repo = env.path("repo").display().to_string();
        let outside = env.path("outside").display().to_string();
        // The repository itself; another's worktree; a directory that only claims to be one.
        env.prepare("cd ../repo && git worktree add -q -b agent/two ../second");
        for name in ["HEAD", "commondir", "gitdir"] {
            env.write(&format!("outside/x/worktrees/w/{name}"), "../..\n");
        }
        env.write("outside/x/worktrees/w/gitdir", "/nowhere/.git\n");
        let before = files(&env.path("repo"), &[]);
        for target in [
            format!("{repo}/.git"),
            format!("{repo}/.git/worktrees/second"),
            format!("{outside}/x/worktrees/w"),
            outside.clone(),
        ] {
            env.write("project/.git", &format!("gitdir: {target}\n"));
            let ran = env.run(&[], "git status; git log; git commit -q --allow-empty -m planted");
            // A directory without a repository in it is not even opened by git.
            assert!(matches!(ran.code, Some(77 | 128)), "{target}: {ran:?}");
            for script in [format!("cat {target}/*"), format!("echo PLANTED > {target}/planted")] {
                let ran = env.run(&[], &script);
                assert_eq!(ran.code, Some(77), "{script}: {ran:?}");
                assert!(!ran.stdout.contains("ref:"), "{script}: {ran:?}");
            }
            assert_eq!(files(&env.path("repo"), &[]), before, "{target}");
            assert!(!env.path("outside/planted").exists());
        }
    }
}

#[test]
fn a_worktree_that_may_not_be_written_leaves_its_repository_alone() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(&format!("{WORKTREE} -b agent/one"));
        let before = files(&env.path("repo"), &[]);
        let repo = env.path("repo").display().to_string();
        let script = "git log -1 --format=%s; git=$(git rev-parse --git-common-dir)
            echo x > $git/objects/junk; echo x > $git/refs/heads/agent/one; echo x > $(git rev-parse --git-dir)/HEAD";
        for attribution in ["tripwire", "inferred"] {
            let ran = env.run(&["--level", "readonly", "--attribution", attribution], script);
            assert!(ran.stdout.starts_with("first\n"), "{ran:?}");
            assert!(files(&env.path("repo"), &[]) == before, "{attribution}: {ran:?}");
        }
        // Nor one whose repository a rule denies.
        let rule = format!("[filesystem]\ndeny_write = [\"{repo}\"]\n");
        env.configure(&rule);
        for attribution in ["tripwire", "inferred"] {
            let ran = env.run(&["--attribution", attribution], script);
            assert!(files(&env.path("repo"), &[]) == before, "{attribution}: {ran:?}");
        }
    }
}

#[test]
fn worktrees_inside_a_bare_repository_do_not_see_each_other() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare("git init -q -b main . && git add -A && git commit -qm first
            git clone -q --bare . ../bare.git && cd ../bare.git
            git worktree add -q -b one one && git worktree add -q -b two two && echo SECRET > two/.env",
        );
        let workspace = env.path("bare.git/one").display().to_string();
        let options = ["--workspace", &workspace];
        let ran = env.run(
            &options,
            "echo a > a && git add a && git commit -qm second && git log --format=%s",
        );
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "second\nfirst\n"), "{ran:?}");
        let ran = env.run(&options, "cat ../two/.env");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{ran:?}");
    }
}

#[test]
fn git_looks_at_submodules() {
    for who in users() {
        let env = TestEnv::new(who);
        env.prepare(
            "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
            export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
            git init -q .; git init -q s; echo x > s/f; git -C s add f; git -C s commit -q -m s
            git -c protocol.file.allow=always submodule --quiet add ./s sub; git commit -q -m sub
            touch -d 2020-01-01 sub/f",
        );
        let ran = env.run(&[], "git status && git submodule status && git -C sub diff --stat");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.violations().is_empty(), "{ran:?}");
        // What is in it belongs to git's owner.
        for path in ["hooks/x", "config", "HEAD"] {
            let ran = env.run(&[], &format!("echo x >> .git/modules/sub/{path}"));
            assert_eq!(ran.code, Some(77), "{path}: {ran:?}");
        }
    }
}
