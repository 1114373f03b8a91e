//! Sockets of programs on the host, in directories that a run can see: closed unless a grant names
//! them. Sockets of the run itself work as everywhere.

use std::io::BufRead;
use std::process::{Child, Stdio};

use fixtures::{RunOutput, TestEnv, User, has, has_python, users};

const HOST: &str = include_str!("unix_sockets/host.py");
const REACH: &str = include_str!("unix_sockets/reach.py");
const FLIP: &str = include_str!("unix_sockets/flip.py");

/// The ways in which a run can be enforced and watched.
const WAYS: &[&[&str]] =
    &[&["--attribution", "tripwire"], &["--attribution", "notify"], &["--enforcement", "landlock"]];

/// A program on the host that serves sockets, until the end of the test.
struct Host(Child);

impl Host {
    fn serve(env: &TestEnv, sockets: &[&str]) -> Self {
        let mut command = env.command("/usr/bin/python3");
        command.args(["-c", HOST]).args(sockets).stdout(Stdio::piped());
        let mut host = command.spawn().unwrap();
        let mut said = std::io::BufReader::new(host.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn env(who: User) -> TestEnv {
    let env = TestEnv::new(who);
    env.configure("[confinement]\nminimum = \"landlock\"\n");
    for dir in ["shared", "kept"] {
        std::fs::create_dir_all(env.path(dir)).unwrap();
    }
    env.write("project/reach.py", REACH);
    env.write("project/flip.py", FLIP);
    env
}

fn heard(env: &TestEnv) -> String {
    std::fs::read_to_string(env.path("heard")).unwrap_or_default()
}

fn each(mut test: impl FnMut(&TestEnv, &[&str])) {
    for who in users().into_iter().filter(|_| has_python()) {
        for way in WAYS {
            test(&env(who), way);
        }
    }
}

#[test]
fn host_sockets_in_what_a_run_sees_are_not_reached() {
    each(|env, way| {
        let kinds = ["stream", "packets", "datagrams"];
        let (mut served, mut tried) = (Vec::new(), Vec::new());
        for (number, kind) in kinds.iter().enumerate() {
            for dir in [".", "../shared", "../kept"] {
                served.push(format!("{kind}:{dir}/{number}.sock"));
                tried.push(format!("{dir}/{number}.sock"));
                served.push(format!("late:{kind}:{dir}/late-{number}.sock"));
                tried.push(format!("{dir}/late-{number}.sock"));
            }
        }
        let served: Vec<_> = served.iter().map(String::as_str).collect();
        let _host = Host::serve(env, &served);
        let script = format!("/usr/bin/python3 reach.py {}", tried.join(" "));
        let shared = env.path("shared").display().to_string();
        let kept = env.path("kept").display().to_string();
        let options = [way, &["--learn", "--allow-read", &shared, "--allow-write", &kept]].concat();
        let ran = env.run(&options, &script);
        assert_eq!(ran.stdout, "tried\n", "{way:?}: {ran:?}");
        assert_eq!(heard(env), "", "{way:?}: {ran:?}");
        let connects = ran.violations().into_iter().filter(|one| one["operation"] == "connect");
        let rules: Vec<_> = connects.map(|one| one["rule"].as_str().unwrap()).collect();
        assert!(rules.len() >= 12, "{way:?}: {ran:?}");
        assert!(rules.iter().all(|rule| *rule == "network.allow_unix"), "{way:?}: {ran:?}");
    });
}

#[test]
fn a_connection_to_a_host_socket_stops_the_run_and_names_the_grant() {
    each(|env, way| {
        let _host = Host::serve(env, &["stream:app.sock"]);
        let script = "/usr/bin/python3 -c 'import socket
socket.socket(socket.AF_UNIX).connect(\"app.sock\")'; echo next";
        let ran = env.run(way, script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{way:?}: {ran:?}");
        let socket = env.project().join("app.sock").display().to_string();
        for part in [
            format!("tried to connect to {socket}"),
            "why:   a socket of a program outside the sandbox".into(),
            format!("allow: ringwall grant unix {socket}"),
            "rule:  network.allow_unix (built in)".into(),
        ] {
            assert!(ran.stderr.contains(&part), "{way:?}: {part}: {ran:?}");
        }
        assert_eq!(heard(env), "", "{way:?}: {ran:?}");
    });
}

#[test]
fn a_socket_that_gives_the_machine_away_is_not_proposed() {
    each(|env, way| {
        let _host = Host::serve(env, &["stream:docker.sock"]);
        let script = "/usr/bin/python3 -c 'import socket
socket.socket(socket.AF_UNIX).connect(\"docker.sock\")'";
        let ran = env.run(way, script);
        assert_eq!(ran.code, Some(77), "{way:?}: {ran:?}");
        assert!(ran.stderr.contains("can start containers"), "{way:?}: {ran:?}");
        assert!(!ran.stderr.contains("allow:"), "{way:?}: {ran:?}");
        let learned = env.run(&[way, &["--learn"]].concat(), script);
        assert!(!learned.stderr.contains("allow_unix = ["), "{way:?}: {learned:?}");
        assert!(!learned.stdout.contains("allow_unix = ["), "{way:?}: {learned:?}");
    });
}

#[test]
fn a_thread_that_changes_the_address_does_not_reach_a_host_socket() {
    each(|env, way| {
        let both = if way.contains(&"landlock") { "path" } else { "both" };
        let _host = Host::serve(env, &["late:stream:late.sock", "late:stream:late"]);
        let options = [way, &["--learn"]].concat();
        let ran = env.run(&options, &format!("/usr/bin/python3 flip.py {both}"));
        assert_eq!(ran.stdout, "tried\n", "{way:?}: {ran:?}");
        assert_eq!(heard(env), "", "{way:?}: {ran:?}");
    });
}

#[test]
fn what_an_ended_server_left_behind_is_only_a_file() {
    each(|env, way| {
        let left = "import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind('left.sock')
server.listen()";
        assert!(env.bare(&format!("/usr/bin/python3 -c \"{left}\"")).status.success());
        let script = "import os, socket
try:
    socket.socket(socket.AF_UNIX).connect('left.sock')
except ConnectionRefusedError:
    os.unlink('left.sock')
server = socket.socket(socket.AF_UNIX)
server.bind('left.sock')
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('left.sock')
client.send(b'again')
print(server.accept()[0].recv(9))";
        let ran = env.run(way, &format!("/usr/bin/python3 -c \"{script}\""));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "b'again'\n"), "{way:?}: {ran:?}");
    });
}

/// Between `bind` and `listen` a socket is no server yet.
#[test]
fn a_server_that_is_just_beginning_to_listen_is_the_runs_own() {
    each(|env, way| {
        let script = "import os, socket, threading
for n in range(300):
    name = 's%d' % n
    server = socket.socket(socket.AF_UNIX)
    def serve():
        server.bind(name)
        server.listen()
    thread = threading.Thread(target=serve)
    thread.start()
    while True:
        try:
            client = socket.socket(socket.AF_UNIX)
            client.connect(name)
            break
        except (FileNotFoundError, ConnectionRefusedError):
            pass
    thread.join()
    os.unlink(name)
print('all')";
        let ran = env.run(way, &format!("/usr/bin/python3 -c \"{script}\""));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "all\n"), "{way:?}: {ran:?}");
    });
}

/// Every program of this test talks to another one of the same run.
#[test]
fn sockets_of_the_run_itself_work() {
    const SOCKETS: &str = r"
import multiprocessing.managers, os, socket, subprocess, sys, threading, time

class Manager(multiprocessing.managers.BaseManager):
    pass

Manager.register('answer', lambda: 'from a manager')

def talk(path, kind=socket.SOCK_STREAM):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    # As ssh does for connections that it shares.
    os.link(path, path + '.linked')
    os.rename(path, path + '.moved')
    server.listen(1)
    inside = os.open(path + '.linked', os.O_PATH)
    os.symlink(os.path.abspath(path + '.moved'), path + '.sym')
    for name in path + '.linked', path + '.moved', path + '.sym', f'/proc/self/fd/{inside}':
        client = subprocess.Popen([sys.executable, '-c', '''
import socket, sys
client = socket.socket(socket.AF_UNIX, int(sys.argv[2]))
client.connect(sys.argv[1])
client.send(b'hello')
assert client.getpeername() == sys.argv[3], client.getpeername()
''', name, str(int(kind)), path], pass_fds=[inside])
        peer, _ = server.accept()
        assert peer.recv(9) == b'hello'
        assert client.wait() == 0
    for end in 'linked', 'moved', 'sym':
        os.unlink(f'{path}.{end}')

if __name__ == '__main__':
    with Manager() as manager:
        print(manager.answer()._getvalue())
    os.makedirs('data/sockets', exist_ok=True)
    for place in sys.argv[1:]:
        os.makedirs(place, exist_ok=True)
        talk(f'{place}/own.sock')
        talk(f'{place}/packets.sock', socket.SOCK_SEQPACKET)
    # A server that is slow: the third client has to wait.
    slow = socket.socket(socket.AF_UNIX)
    slow.bind('slow.sock')
    slow.listen(0)
    done = []
    def connect():
        client = socket.socket(socket.AF_UNIX)
        client.connect('slow.sock')
        done.append(client)
    threads = [threading.Thread(target=connect) for _ in range(4)]
    for thread in threads:
        thread.start()
    hasty = socket.socket(socket.AF_UNIX)
    hasty.setblocking(False)
    while len(done) < 1:
        time.sleep(0.001)
    try:
        for _ in range(9):
            hasty = socket.socket(socket.AF_UNIX)
            hasty.setblocking(False)
            hasty.connect('slow.sock')
    except BlockingIOError:
        print('busy')
    patient = socket.socket(socket.AF_UNIX)
    patient.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (0).to_bytes(8, 'little') + (50000).to_bytes(8, 'little'))
    try:
        patient.connect('slow.sock')
    except BlockingIOError:
        print('no time')
    slow.settimeout(0.01)
    while len(done) < 4:
        try:
            slow.accept()
        except TimeoutError:
            pass
    for thread in threads:
        thread.join()
    print('all')
";
    each(|env, way| {
        env.write("project/sockets.py", SOCKETS);
        let landlock = way.contains(&"landlock");
        let places = if landlock { "data ." } else { "data . /tmp/a /dev/shm ~/.cache/x" };
        let ran = env.run(way, &format!("/usr/bin/python3 sockets.py {places}"));
        let expected = "from a manager\nbusy\nno time\nall\n";
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{way:?}: {ran:?}");
        assert!(ran.violations().is_empty(), "{way:?}: {ran:?}");
    });
}

#[test]
fn a_node_server_on_a_path_works() {
    const SERVER: &str = "
const net = require('net');
const server = net.createServer(peer => peer.end('from node'));
server.listen('node.sock', () => net.connect('node.sock').on('data', text => {
  console.log(String(text));
  server.close();
}));";
    for who in users().into_iter().filter(|_| has("node")) {
        let env = env(who);
        env.write("project/server.js", SERVER);
        let ran = env.run(&[], "node server.js");
        if ran.code == Some(127) {
            eprintln!("skipped: node is not where a run can see it");
            continue;
        }
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "from node\n"), "{ran:?}");
    }
}

/// Says what a connection brought, and what can be done with it.
const USE: &str = "import os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
text, brought, _, _ = socket.recv_fds(peer, 99, 9)
print(text.decode(), len(brought))
for name, flags in ('secret.txt', os.O_RDONLY), ('new', os.O_WRONLY | os.O_CREAT), ('.', os.O_RDONLY):
    try:
        os.open(name, flags, dir_fd=brought[0])
        print('OPENED', name)
    except OSError:
        pass
";

fn use_socket(env: &TestEnv, options: &[&str], socket: &str) -> RunOutput {
    env.write("project/use.py", USE);
    env.run(options, &format!("/usr/bin/python3 use.py {socket}"))
}

#[test]
fn a_granted_socket_is_reached_and_its_descriptors_give_no_more_than_the_run_has() {
    each(|env, way| {
        let _host = Host::serve(
            env,
            &["stream:app.sock", "stream:../outside/db.sock", "late:stream:later.sock"],
        );
        let outside = env.path("outside/db.sock").display().to_string();
        let said = "from the host 1\n";
        let granted = |socket: &str, rule: &str| {
            let ran = use_socket(env, &[way, &["--learn", "--allow-unix", rule]].concat(), socket);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), said), "{way:?}: {ran:?}");
        };
        granted("app.sock", "app.sock");
        granted("./app.sock", env.project().to_str().unwrap());
        granted(&outside, &outside);
        // What is beside it is not granted.
        let ran = use_socket(env, &[way, &["--allow-unix", "app.sock"]].concat(), &outside);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{way:?}: {ran:?}");
        // A deny rule wins.
        let config = "[confinement]\nminimum = \"landlock\"\n";
        env.configure(&format!("{config}[filesystem]\ndeny_read = [\"**/app.sock\"]\n"));
        let ran = use_socket(env, &[way, &["--allow-unix", "app.sock"]].concat(), "app.sock");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(77), ""), "{way:?}: {ran:?}");
        // A socket that is granted before it exists.
        env.configure(&format!(
            "{config}[network]\nallow_unix = [\"{0}\"]\n",
            env.project().join("later.sock").display()
        ));
        env.write("project/use.py", USE);
        let script = "touch go; until [ -e bound ]; do sleep 0.01; done
            /usr/bin/python3 use.py later.sock";
        let ran = env.run(&[way, &["--learn"]].concat(), script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), said), "{way:?}: {ran:?}");
    });
}

#[test]
fn grant_unix_adds_the_entry_and_asks_for_what_gives_the_machine_away() {
    for who in users().into_iter().filter(|_| has_python()) {
        let env = env(who);
        let _host = Host::serve(&env, &["stream:app.sock"]);
        env.said(&["grant", "unix", "app.sock"]);
        let written = env.read("project/ringwall.toml");
        assert!(written.contains("[network]\nallow_unix = ["), "{written}");
        let ran = use_socket(&env, &["--learn"], "app.sock");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "from the host 1\n"), "{ran:?}");

        let refused = env.ringwall(&["grant", "unix", "/run/docker.sock"]);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(64), "{text}");
        assert!(text.contains("can start containers") && text.contains("--yes"), "{text}");
        env.said(&["grant", "unix", "/run/docker.sock", "--yes", "--user"]);
    }
}

#[test]
fn abstract_names_of_the_host_are_not_reached() {
    const LISTEN: &str = "import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind('\\0' + sys.argv[1])
server.listen()
print('ready', flush=True)
server.accept()
open('../heard', 'w').write('abstract')";
    each(|env, way| {
        let name = format!("ringwall-{}", env.root.display());
        let mut command = env.command("/usr/bin/python3");
        command.args(["-c", LISTEN, &name]).stdout(Stdio::piped());
        let mut host = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let script = format!(
            "/usr/bin/python3 -c 'import socket
own = socket.socket(socket.AF_UNIX)
own.bind(\"\\0own{name}\")
own.listen()
socket.socket(socket.AF_UNIX).connect(\"\\0own{name}\")
print(\"own\", flush=True)
socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")
print(\"REACHED\")'"
        );
        let ran = env.run(way, &script);
        let _ = host.kill();
        let _ = host.wait();
        assert_eq!(ran.stdout, "own\n", "{way:?}: {ran:?}");
        assert_eq!(heard(env), "", "{way:?}: {ran:?}");
    });
}
