//! Interpreters and their tools.

use super::{Scenario, leaves, prints};

pub(super) const ALL: &[Scenario] = &[
    prints(
        "a virtual environment",
        &["python3"],
        "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)' && \
         . v/bin/activate && python -c 'import sys; print(sys.executable)'; ls v",
    ),
    leaves(
        "modules are compiled and packed",
        &["python3"],
        "mkdir -p p/q; echo 'def f(): return 42' > p/q/__init__.py; echo 'import q; print(q.f())' > p/__main__.py",
        "python3 p && python3 -m compileall -q p && python3 -m zipapp p -o p.pyz && python3 p.pyz && python3 -m timeit -n1 -r1 pass > /dev/null",
        "find p -name '*.pyc' | wc -l",
    ),
    prints(
        "unittest with temporary directories and patches",
        &["python3"],
        "cat > test_a.py <<'E'\nimport unittest, tempfile, os, subprocess, sqlite3, threading\n\
         class T(unittest.TestCase):\n\
         \x20   def test_tmp(self):\n        with tempfile.TemporaryDirectory() as d:\n            open(os.path.join(d, 'f'), 'w').close(); self.assertEqual(os.listdir(d), ['f'])\n\
         \x20   def test_sub(self):\n        self.assertEqual(subprocess.check_output(['echo', 'a']), b'a\\n')\n\
         \x20   def test_sql(self):\n        c = sqlite3.connect('t.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(a)'); c.commit()\n\
         \x20   def test_home(self):\n        self.assertEqual(os.path.expanduser('~'), os.environ['HOME'])\n\
         E\npython3 -m unittest -q 2>&1 | sed 's/ in .*//'; rm -r __pycache__; ls",
    ),
    prints(
        "names are looked up in the local tables",
        &["python3"],
        "python3 -c \"import socket; print(socket.gethostbyname('localhost'), socket.getservbyname('http'))\"; \
         getent passwd $(id -u) > /dev/null || exit 1; getent passwd $(id -u) | cut -d: -f3; getent group $(id -g) | cut -d: -f3; getent hosts localhost | wc -l",
    ),
    prints(
        "perl with modules and files",
        &["perl"],
        "mkdir lib; printf 'package A; sub f { return 42 } 1;' > lib/A.pm; \
         perl -Ilib -MA -MFile::Temp=tempfile -MCwd -e 'my ($h, $n) = tempfile(UNLINK => 1); print $h \"x\"; close $h; print A::f(), \" \", -s $n, \" \", getcwd() =~ m{/project$}, \"\\n\"'; \
         perl -ne 'print if /b/' <<< $'a\\nb'; perl -e 'print `echo sub`; local $SIG{ALRM} = sub { print \"alarm\\n\"; exit }; alarm 1; sleep 9'",
    ),
    prints(
        "node: files, workers, processes and streams",
        &["node"],
        "cat > a.js <<'E'\nconst fs = require('fs'), os = require('os'), path = require('path'), cp = require('child_process');\n\
         const { Worker, isMainThread, parentPort } = require('worker_threads');\n\
         if (!isMainThread) { parentPort.postMessage('from a worker'); return; }\n\
         if (process.argv[2] === 'child') { process.send('from a child'); process.disconnect(); return; }\n\
         const d = fs.mkdtempSync(path.join(os.tmpdir(), 'x-')); fs.writeFileSync(d + '/f', 'y'); console.log(fs.readdirSync(d)); fs.rmSync(d, { recursive: true });\n\
         console.log(cp.execSync('echo shell').toString().trim());\n\
         new Worker(__filename).on('message', (m) => { console.log(m);\n  cp.fork(__filename, ['child']).on('message', (m) => { console.log(m);\n    const s = require('http').createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', () =>\n      require('http').get({ port: s.address().port, agent: false }, (r) => r.on('data', (b) => { console.log(b.toString()); s.close(); }))); }); });\n\
         E\nnode a.js; node --test 2>&1 | grep -c '# fail 0'",
    ),
    prints(
        "node: packages of the project and of no one",
        &["node", "npm"],
        "mkdir -p node_modules/a/bin node_modules/.bin; echo '{\"name\":\"a\",\"version\":\"1.0.0\",\"main\":\"i.js\",\"bin\":\"bin/a\"}' > node_modules/a/package.json; \
         echo 'module.exports = 42' > node_modules/a/i.js; printf '#!/usr/bin/env node\\nconsole.log(\"a program\")\\n' > node_modules/a/bin/a; chmod +x node_modules/a/bin/a; ln -s ../a/bin/a node_modules/.bin/a; \
         echo '{\"name\":\"p\",\"version\":\"1.0.0\",\"dependencies\":{\"a\":\"1.0.0\"},\"scripts\":{\"test\":\"a && node -p \\\"require(\\u0027a\\u0027)\\\"\"}}' > package.json; \
         npm test --silent; npx --no-install a; npm ls --parseable | wc -l; npm pack --silent; tar tf p-1.0.0.tgz",
    ),
    prints(
        "ruby with files, a gem of the system and processes",
        &["ruby"],
        "ruby -rtmpdir -rjson -ropen3 -rsocket -e 'Dir.mktmpdir { |d| File.write(d + \"/f\", \"x\"); puts Dir.children(d) }; \
         puts JSON.generate({a: 1}); puts Open3.capture2(\"tr a b\", stdin_data: \"aa\")[0]; \
         s = TCPServer.new(\"127.0.0.1\", 0); Thread.new { s.accept.puts \"served\" }; puts TCPSocket.new(\"127.0.0.1\", s.addr[1]).gets; \
         puts fork { exit 3 }.then { |p| Process.wait2(p)[1].exitstatus }'; gem --version > /dev/null; echo $?",
    ),
    leaves(
        "bundler without gems of others",
        &["bundle"],
        "echo '' > Gemfile",
        "bundle config set --local path vendor > /dev/null; bundle install --local > log 2>&1; echo $?; bundle exec ruby -e 'puts 42'",
        "ls",
    ),
    prints(
        "java: compile, run, pack",
        &["javac", "jar"],
        "mkdir p; printf 'package p; public class A { public static void main(String[] a) throws Exception { \
         var f = java.nio.file.Files.createTempFile(\"x\", \"y\"); java.nio.file.Files.delete(f); \
         System.out.println(\"home \" + System.getProperty(\"user.home\").equals(System.getenv(\"HOME\")) + \" \" + Thread.currentThread().getName()); } }' > p/A.java; \
         javac -d o p/A.java && java -cp o p.A | cut -d' ' -f1,3 && jar cfe a.jar p.A -C o . && java -jar a.jar | cut -d' ' -f1",
    ),
    prints(
        "go: build, test, run",
        &["go"],
        "export GOFLAGS=-mod=mod GOCACHE=$PWD/.cache GOPATH=$PWD/.go GOTOOLCHAIN=local; go mod init example.org/a 2> /dev/null; \
         printf 'package main\\n\\nimport \"fmt\"\\n\\nfunc f() int { return 42 }\\n\\nfunc main() { fmt.Println(f()) }\\n' > a.go; \
         printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestF(t *testing.T) { if f() != 42 { t.Fail() } }\\n' > a_test.go; \
         go run . && go build -o a . && ./a && go test ./... | cut -c1-2 && go vet ./... && gofmt -l .",
    ),
    prints(
        "cargo and rustc",
        &["cargo", "rustc"],
        "export CARGO_HOME=$PWD/.cargo-home; cargo init -q --vcs none --name a . 2> /dev/null && cargo build -q --offline 2>&1 && target/debug/a && cargo test -q --offline 2>&1 | grep -c 'test result: ok'",
    ),
    prints(
        "php on the command line and its server",
        &["php"],
        "php -r 'echo strtoupper(\"x\"), tempnam(sys_get_temp_dir(), \"p\") !== false, \"\\n\"; echo json_encode([1]), PHP_EOL;'",
    ),
    prints(
        "awk, bc, jq and lua",
        &["awk", "jq"],
        "awk 'BEGIN { while (i++ < 5) s += i; print s; \"echo sub\" | getline x; print x; print \"o\" > \"f\" }' && cat f; \
         echo '{\"a\":[1,2,{\"b\":3}]}' | jq -c '.a[2]'; echo '2^64' | bc 2> /dev/null || echo no bc",
    ),
];
