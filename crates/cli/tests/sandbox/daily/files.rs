//! Files and text, with the usual small programs.

use super::{Expected, Scenario, leaves, prints};

/// Everything in the project, with kind, permissions, links and where they lead.
const TREE: &str = "find . -path ./.git -prune -o -printf '%P %y %m %n %l\\n' | sort";
const CONTENT: &str = "find . -path ./.git -prune -o -type f -print | sort | xargs -d '\\n' cksum";

pub(super) const ALL: &[Scenario] = &[
    prints(
        "sort, join, paste and tr in pipes",
        &[],
        "printf 'b 2\\na 1\\n' > l; printf 'a x\\nb y\\n' > r; sort l | join - r | paste -sd, | tr a-z A-Z",
    ),
    leaves(
        "tar keeps links and permissions",
        &["tar"],
        "mkdir -p d/e; echo x > d/f; ln -s f d/s; ln d/f d/h; chmod 640 d/f; chmod 700 d/e",
        "tar czf d.tgz d && rm -r d && tar xzf d.tgz && rm d.tgz",
        TREE,
    ),
    leaves(
        "cp -a copies a tree",
        &[],
        "mkdir d; echo x > d/f; ln d/f d/h; ln -s nowhere d/s; touch -d 2001-02-03 d/f; mkfifo d/p",
        "cp -a d e && stat -c %y e/f",
        TREE,
    ),
    leaves(
        "sed -i and perl -pi edit in place",
        &["perl"],
        "seq 5 > a; seq 5 > b; chmod 600 a",
        "sed -i s/3/three/ a && sed -i.bak 2d b && perl -pi -e 's/4/four/' a",
        "cat a b b.bak; ls -l a | cut -c1-10",
    ),
    prints(
        "find with -exec, xargs in parallel",
        &[],
        "mkdir d; for i in $(seq 40); do echo $i > d/$i; done; \
         find d -type f -exec cat {} + | sort -n | md5sum; \
         find d -type f -print0 | xargs -0 -P4 -n5 cat | sort -n | tail -1",
    ),
    prints(
        "temporary files, a trap, a lock",
        &["flock"],
        "t=$(mktemp -d); trap 'rm -r $t' EXIT; f=$(mktemp); echo x > $f; cat $f; rm $f; \
         flock $t/lock sh -c 'echo locked'; flock -n . echo directory; [ -d $t ] && echo there",
    ),
    prints("a named pipe", &[], "mkfifo p; (seq 1000 > p &); md5sum < p; rm p; ls"),
    leaves(
        "rsync -a --delete",
        &["rsync"],
        "mkdir -p a/b c; echo 1 > a/b/f; echo 2 > c/gone; ln -s b/f a/s",
        "rsync -a --delete a/ c/",
        TREE,
    ),
    leaves(
        "diff and patch",
        &["patch", "diff"],
        "seq 10 > a; sed s/5/five/ a > b",
        "diff -u --label a --label b a b > p; patch -b < p a; patch -R a < p && cmp a a.orig && echo same",
        CONTENT,
    ),
    prints(
        "split, dd, truncate, fallocate, cmp",
        &[],
        "seq 10000 > f; split -b 10000 f part.; cat part.* | cmp - f && echo equal; \
         dd if=f of=g bs=1k count=3 status=none; stat -c %s g; truncate -s 5M h; \
         fallocate -l 64k i; stat -c '%s' h i; shred -u i; cp --sparse=always h j; cmp h j; ls",
    ),
    leaves(
        "install, chmod, umask, links",
        &[],
        "echo x > f",
        "umask 027; touch u; mkdir v; install -m 755 f g; install -d -m 750 w/x; chmod g+s,o= v; chmod u-w,o= g; \
         ln -s g s; readlink -f s; realpath --relative-to=. w/x; ln -sfn v s; mv -T v w/y",
        TREE,
    ),
    leaves(
        "names of every kind",
        &[],
        "",
        "touch 'a b' '-c' $'d\\ne' 'ü' '日本' '*' \"$(printf 'f\\377')\" '.h'; \
         mkdir \"$(printf '%0200d' 1)\"; for n in *; do cp -r -- \"$n\" \"x$n\"; done; rm -- -c; ls | wc -l",
        "find . -path ./.git -prune -o -print0 | sort -z | md5sum",
    ),
    prints(
        "a deep tree",
        &[],
        "p=$(printf 'd/%.0s' $(seq 300)); mkdir -p $p; echo x > $p/f; find d -type f | wc -c; \
         (cd $p && pwd | wc -c && cat f && cat ../../d/f); rm -r d; ls",
    ),
    prints(
        "process substitution and descriptors by name",
        &[],
        "diff <(seq 3) <(seq 4); seq 3 | tee >(cat > t) > /dev/null; sleep 0.1; cat t; \
         echo in | cat /dev/stdin > /dev/stdout; echo err > /dev/stderr; \
         exec 7> seven; echo s > /dev/fd/7; echo t >> /proc/self/fd/7; cat seven; \
         exec 8<<< here; cat /dev/fd/8; [ -p /dev/stdin ] || echo no pipe",
    ),
    prints(
        "a program's own memory file and its deleted files",
        &["python3"],
        "python3 -c \"
import os, tempfile
W = os.O_WRONLY
for flags in (W, W | os.O_CREAT, W | os.O_CREAT | os.O_TRUNC, W | os.O_APPEND):
    for base in ('/dev/fd', '/proc/self/fd', '/proc/thread-self/fd', '/proc/%d/fd' % os.getpid()):
        memory = os.memfd_create('memory')
        for fd in (memory, tempfile.TemporaryFile(dir='.').fileno(), os.pipe()[1], os.openpty()[1]):
            try:
                again = os.open('%s/%d' % (base, fd), flags | os.O_NOCTTY, 0o600)
                print(os.write(again, b'hi'), end=' ')
                os.close(again)
            except OSError as error:
                print(error.errno, end=' ')
        os.chmod('%s/%d' % (base, memory), 0o700)
        os.truncate('%s/%d' % (base, memory), 100)
        print(os.fstat(memory).st_size)
\"",
    ),
    prints(
        // For root almost nothing fails outside, and what succeeds there would change this machine.
        "what a user cannot do fails as it always does",
        &[],
        "[ $(id -u) = 0 ] && exit; touch /usr/ringwall-test; echo $?; mkdir /ringwall-test; echo $?; \
         mkdir -p /etc/ringwall-test/a; echo $?; cat /ringwall-test; echo $?; ls /usr/ringwall-test; echo $?; \
         (echo > /usr/lib/ringwall-test) 2> /dev/null; echo $?; ln -s x /var/ringwall-test; echo $?",
    ),
    leaves(
        "editors that write a new file and move it over the old one",
        &["python3"],
        "echo old > f; chmod 640 f; ln -s f s",
        "python3 -c \"
import os
for target in ('f', os.path.realpath('s')):
    with open(target + '.tmp', 'w') as new:
        new.write(target[-1] + '\\\\n'); new.flush(); os.fsync(new.fileno())
    os.chmod(target + '.tmp', os.stat(target).st_mode)
    os.replace(target + '.tmp', target)
d = os.open('.', os.O_RDONLY); os.fsync(d)
t = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o600); os.write(t, b'named later\\\\n')
os.link('/proc/self/fd/%d' % t, 'later', src_dir_fd=d, follow_symlinks=True)
\"",
        "ls -l | cut -c1-10; cat f later",
    ),
    leaves(
        "attributes and times",
        &["python3"],
        "touch a b",
        "python3 -c \"
import os
os.setxattr('a', 'user.note', b'x'); print(os.listxattr('a'), os.getxattr('a', 'user.note'))
os.removexattr('a', 'user.note'); print(os.listxattr('a'))
os.utime('a', ns=(1000000001, 2000000002)); print(os.stat('a').st_mtime_ns)
\"; touch -r a b; touch -h -d 2010-01-01 a; stat -c %Y a b",
        "",
    ),
    prints(
        "a change is noticed by a watcher",
        &["inotifywait"],
        "touch f; (sleep 0.3; echo x > f) & inotifywait -q -t 20 -e close_write --format %w%f f; wait",
    ),
    Scenario {
        name: "a file of the user outside is refused and named",
        needs: &[],
        setup: "echo private > ../home/notes.txt",
        command: "cat ../home/notes.txt",
        left: "",
        expected: Expected::Says("ringwall grant read"),
    },
];
