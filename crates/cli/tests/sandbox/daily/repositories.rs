//! Git in a project of one's own. Everything that needs other repositories is tested elsewhere.

use super::{Scenario, leaves};

const COMMITTED: &str = "export GIT_AUTHOR_DATE=1000000000+0000 GIT_COMMITTER_DATE=1000000000+0000; git init -q -b main .; \
    git config user.name Me; git config user.email me@example.org; \
    printf 'one\\ntwo\\nthree\\n' > f; git add f; git commit -q -m first";
const STATE: &str = "git log --all --oneline --format='%s %D' | sort; git status --porcelain; git fsck --no-dangling 2>&1 | sort; git stash list";

pub(super) const ALL: &[Scenario] = &[
    leaves(
        "add, commit, amend, log, blame, grep",
        &["git"],
        COMMITTED,
        "echo four >> f; git add -A; git commit -q -m second; echo five >> f; git commit -q -a --amend --no-edit; \
         git log --oneline --format=%s; git blame -s f | cut -d' ' -f2-; git grep -n two; git diff HEAD~ --stat; git show --stat --format=%s",
        STATE,
    ),
    leaves(
        "branches, a merge with a conflict, a rebase",
        &["git"],
        COMMITTED,
        "git switch -q -c side; sed -i s/two/zwei/ f; git commit -q -a -m side; git switch -q main; sed -i s/two/deux/ f; git commit -q -a -m ours; \
         git merge -q side > /dev/null; echo $?; printf 'one\\nmerged\\nthree\\n' > f; git add f; git commit -q -m merged; \
         git switch -q side; echo more > g; git add g; git commit -q -m more; git rebase -q main > /dev/null 2>&1; echo $?; \
         git checkout --theirs f 2> /dev/null; git add f; GIT_EDITOR=true git rebase --continue > /dev/null 2>&1; git log --oneline --format=%s",
        STATE,
    ),
    leaves(
        "stash, cherry-pick, revert, reset, tag",
        &["git"],
        COMMITTED,
        "echo x > g; echo y >> f; git stash -q -u; git stash pop -q; git stash -q; git stash drop -q; git switch -q -c b; echo z > h; git add h; git commit -q -m h; \
         git switch -q main; git cherry-pick -x b > /dev/null; git revert --no-edit HEAD > /dev/null; git tag v1; git tag -a v2 -m two; git reset -q --hard v1~; git tag; git log --oneline --format=%s v1",
        STATE,
    ),
    leaves(
        "archive, bundle, format-patch and am",
        &["git"],
        COMMITTED,
        "echo more >> f; git commit -q -a -m more; git archive -o a.tar HEAD && tar tf a.tar; git bundle create -q b.bundle main && git bundle verify -q b.bundle; \
         git format-patch -q -1; git reset -q --hard HEAD~; git am -q 0001-more.patch; rm a.tar b.bundle 0001-more.patch; git gc -q; git count-objects | cut -d' ' -f1,2",
        STATE,
    ),
    leaves(
        "a bisection by a program",
        &["git"],
        "git init -q -b main .; git config user.name Me; git config user.email me@example.org; \
         for n in 1 2 3 4 5 6 7 8; do echo $n > f; git add f; git commit -q -m c$n; done",
        "git bisect start HEAD HEAD~7 > /dev/null; git bisect run sh -c '[ $(cat f) -lt 6 ]' | grep -c 'first bad'; git bisect log | grep -c good; git bisect reset 2> /dev/null",
        "git log -1 --format=%s; git status --porcelain",
    ),
    leaves(
        "removing, moving, cleaning, ignoring",
        &["git"],
        COMMITTED,
        "mkdir d; echo a > d/a; echo '*.o' > .gitignore; touch x.o; git add -A; git commit -q -m d; git mv d/a d/b; git rm -q f; git commit -q -m moved; \
         touch new; git clean -n; git clean -qfdX; git check-ignore x.o; git ls-files; git sparse-checkout list 2> /dev/null; true",
        STATE,
    ),
    leaves(
        "a commit runs the hook of the project",
        &["git"],
        "git init -q -b main .; git config user.name Me; git config user.email me@example.org; \
         printf '#!/bin/sh\\necho hook > by-hook\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "echo a > a; git add a; git commit -q -m a; cat by-hook",
        "git log --format=%s; ls",
    ),
    leaves(
        "a repository inside the project",
        &["git"],
        "mkdir r; cd r; git init -q -b main .; git config user.name Me; git config user.email me@example.org; echo a > a; git add a; git commit -q -m a",
        "cd r && echo b > b && git add b && git commit -q -m b && git -C ../r log --oneline --format=%s && git rev-parse --show-toplevel",
        "git -C r log --format=%s; git -C r status --porcelain",
    ),
];
