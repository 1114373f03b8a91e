//! Databases and servers of the project.

use super::{Scenario, leaves, prints};

pub(super) const ALL: &[Scenario] = &[
    leaves(
        "sqlite with every journal",
        &["sqlite3"],
        "",
        "for m in delete wal memory truncate persist; do sqlite3 a.db \"pragma journal_mode=$m; create table if not exists t(a); insert into t values(1); select count(*) from t;\"; done; \
         sqlite3 a.db .dump | sqlite3 b.db; sqlite3 b.db 'vacuum into \"c.db\"; select sum(a) from t'",
        "ls; sqlite3 c.db 'select count(*) from t'",
    ),
    prints(
        "two writers of one database",
        &["python3"],
        "cat > w.py <<'E'\nimport sqlite3, sys, os\n\
         def work():\n    c = sqlite3.connect('d.db', timeout=60)\n    for n in range(50):\n        with c: c.execute('insert into t values(?)', (n,))\n\
         c = sqlite3.connect('d.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(a)'); c.commit(); c.close()\n\
         p = [os.fork() for _ in range(2)] if False else []\n\
         for _ in range(3):\n    q = os.fork()\n    if not q: work(); os._exit(0)\n    p.append(q)\n\
         for q in p: os.waitpid(q, 0)\n\
         print(sqlite3.connect('d.db').execute('select count(*), sum(a) from t').fetchall())\nE\npython3 w.py",
    ),
    prints(
        "redis at a socket",
        &["redis-server", "redis-cli"],
        "redis-server --port 0 --unixsocket $PWD/r.sock --dir . --save '' --appendonly yes > log & \
         for i in $(seq 200); do redis-cli -s r.sock ping > /dev/null 2>&1 && break; sleep 0.05; done; \
         redis-cli -s r.sock set k v; redis-cli -s r.sock get k; redis-cli -s r.sock shutdown nosave; wait; echo $?; grep -c 'Redis is now ready' log",
    ),
    prints(
        "postgres with its socket in /tmp",
        &["psql"],
        "[ $(id -u) = 0 ] && exit 1; B=$(ls -d /usr/lib/postgresql/*/bin | tail -1); $B/initdb -D d -A trust -U me > log 2>&1 || exit 1; \
         $B/pg_ctl -D d -w -o \"-c listen_addresses='' -k /tmp -p 5439\" -l pg.log start > /dev/null && \
         psql -h /tmp -p 5439 -U me -d postgres -Atc 'create table t as select generate_series(1,100) a; select sum(a) from t'; \
         $B/pg_ctl -D d -m fast stop > /dev/null; echo $?",
    ),
    prints(
        "a web server and its clients",
        &["python3", "curl"],
        "echo page > f; python3 -c \"
import http.server
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(server.server_address[1], file=open('port.new', 'w')); import os; os.rename('port.new', 'port')
server.serve_forever()\" 2> log & until [ -e port ]; do sleep 0.01; done; p=$(cat port); \
         for i in 1 2 3; do curl -sS http://127.0.0.1:$p/f http://localhost:$p/f; done; \
         curl -s http://127.0.0.1:1/; echo $?; kill %1; wait; grep -c 'GET /f' log",
    ),
    prints(
        "archives of every kind",
        &["zip", "unzip", "xz", "bzip2", "python3"],
        "mkdir d; seq 1000 > d/f; for c in gzip bzip2 xz; do $c -k d/f && ls d && $c -dc d/f.* | md5sum; rm d/f.*; done; \
         zip -qr z.zip d && unzip -qo z.zip -d e && cmp d/f e/d/f && echo zip; \
         python3 -c \"import shutil; print(shutil.make_archive('p', 'gztar', '.', 'd')[-8:])\"",
    ),
    prints(
        "searching",
        &["rg"],
        "mkdir -p a/b; echo needle > a/b/f; echo needle > .hidden; printf 'a\\000needle' > bin; rg -l needle | sort; \
         rg -uu -l needle | sort; grep -rl needle . | sort; rg -j4 nothing; echo $?",
    ),
];
