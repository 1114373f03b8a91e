//! ssh, and git over it, to a server on this machine.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fixtures::{has, users};

use super::clients::publish_repository;
use super::servers::{GRANTED, NetworkEnv, OTHER, PAGE, UNSET};

/// How long a server may take to listen on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

const SSH: &str = "ssh -F /dev/null -i key -o IdentitiesOnly=yes -o BatchMode=yes \
    -o UserKnownHostsFile=known -o StrictHostKeyChecking=yes";

#[test]
fn ssh_reaches_what_is_granted_and_nothing_else() {
    if !has("ssh") {
        return;
    }
    let Some(program) = program() else {
        eprintln!("skipped: there is no sshd here, and none can be fetched");
        return;
    };
    let Some(user) = name() else {
        eprintln!("skipped: ssh knows nobody who has a number only");
        return;
    };
    for who in users() {
        let net_env = NetworkEnv::new(who);
        publish_repository(&net_env);
        let server = Sshd::start(&net_env, &program);
        let port = server.port;
        let grants = format!("\"{GRANTED}:{port}\"");
        let more = format!(
            "version = 1\n[network]\nallowed_domains = [{grants}]\nprivate_domains = [{grants}, {}]\n\
             [violation]\naction = \"deny\"\n",
            net_env.private()
        );
        net_env.env.write("home/.config/ringwall/ringwall.toml", &more);
        let repository = net_env.env.path("served/repository.git").display().to_string();
        for unset in ["", UNSET] {
            let scripts = [
                format!("{SSH} -p {port} {user}@{GRANTED} cat {repository}/../page.txt"),
                format!(
                    "GIT_SSH_COMMAND='{SSH}' git clone -q ssh://{user}@{GRANTED}:{port}{repository} \
                     /tmp/clone && cat /tmp/clone/page.txt"
                ),
            ];
            for script in scripts {
                let ran = net_env.run(&format!("{unset}{script}"));
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), PAGE), "{ran:?}");
                let connections = ran.events("connection");
                let [connection] = &connections[..] else { panic!("{ran:?}") };
                assert_eq!(connection["host"], GRANTED, "{ran:?}");
                assert_eq!(connection["route"], "transparent", "{ran:?}");
                assert_eq!(connection["program"]["path"], "/usr/bin/ssh", "{ran:?}");
            }
            for port in [port, net_env.witness.port] {
                let ran = net_env.run(&format!("{unset}{SSH} -p {port} {user}@{OTHER} true"));
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(255), ""), "{ran:?}");
                assert_eq!(ran.violations()[0]["path"], OTHER, "{ran:?}");
                assert_eq!(ran.events("connection").len(), 0, "{ran:?}");
                net_env.assert_unseen(&ran);
            }
        }
    }
}

struct Sshd {
    child: Child,
    port: u16,
}

impl Sshd {
    /// Starts a server with keys of its own, for the user who runs these tests.
    fn start(net_env: &NetworkEnv, program: &Path) -> Self {
        let env = &net_env.env;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let keys = "ssh-keygen -q -t ed25519 -N '' -f key && \
            ssh-keygen -q -t ed25519 -N '' -f ../outside/host";
        let mut make = Command::new("/bin/sh");
        let made = make.args(["-c", keys]).current_dir(env.project()).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let host = env.read("outside/host.pub");
        env.write("project/known", &format!("[{GRANTED}]:{port} {host}[{OTHER}]:{port} {host}"));
        let dir = env.path("outside");
        let dir = dir.display();
        let config = env.write(
            "outside/sshd_config",
            &format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {dir}/host\nPidFile none\n\
                 AuthorizedKeysFile {}/key.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
                 PasswordAuthentication no\nKbdInteractiveAuthentication no\n",
                env.project().display()
            ),
        );
        let root = rustix::process::geteuid().is_root();
        let mut command = if root {
            // Root's server needs an account to drop to, and a place for it, which this machine need
            // not have. Other files stand for its own, in this process only.
            let account =
                format!("root:*:0:0::{dir}/account:/bin/sh\nsshd:*:100:65534::/:/bin/false\n");
            env.write("outside/passwd", &account);
            env.write("outside/shadow", "root:*:::::::\n");
            env.write("outside/account/.gitconfig", "[safe]\n\tdirectory = *\n");
            let mut command = Command::new("unshare");
            command.args(["-m", "--propagation", "private", "/bin/sh", "-c"]).arg(format!(
                "mount --bind {dir}/passwd /etc/passwd && mount --bind {dir}/shadow /etc/shadow && \
                 mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec \"$@\""
            ));
            command.arg("sshd");
            command
        } else {
            Command::new("env")
        };
        // It checks who owns its key.
        let chown = Command::new("chown").arg(me()).arg(format!("{dir}/host")).status();
        assert!(chown.unwrap().success());
        let libraries = program.ancestors().nth(3).unwrap().join("usr/lib").join(libraries());
        let child = command
            .arg(program)
            .args(["-D", "-e", "-f"])
            .arg(config)
            .env("LD_LIBRARY_PATH", libraries)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(env.path("outside/log")).unwrap())
            .spawn()
            .unwrap();
        let mut server = Self { child, port };
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().unwrap();
            let log = env.read("outside/log");
            assert!(ended.is_none() && since.elapsed() < PATIENCE, "{ended:?} {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's program: this machine's own, or Debian's, unpacked beside the tests.
fn program() -> Option<PathBuf> {
    let own = PathBuf::from("/usr/sbin/sshd");
    if own.exists() {
        return Some(own);
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sshd");
    let program = dir.join("usr/sbin/sshd");
    if !program.exists() {
        std::fs::create_dir_all(&dir).ok()?;
        let script = "apt-get download openssh-server libwrap0 && \
            for package in *.deb; do dpkg -x $package . || exit 1; done; rm *.deb";
        let fetched =
            Command::new("/bin/sh").args(["-c", script]).current_dir(&dir).output().ok()?;
        if !fetched.status.success() {
            eprintln!("note: {}", String::from_utf8_lossy(&fetched.stderr));
            return None;
        }
    }
    let libraries = dir.join("usr/lib").join(libraries());
    let tried = Command::new(&program).arg("-?").env("LD_LIBRARY_PATH", libraries).output().ok()?;
    // It knows no such option, and says so if it runs at all.
    (tried.status.code() == Some(1)).then_some(program)
}

/// The name of the directory in which Debian keeps libraries for this kind of machine.
fn libraries() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

fn me() -> String {
    rustix::process::geteuid().as_raw().to_string()
}

/// Whom the server lets in: who runs these tests, if they have a name.
fn name() -> Option<String> {
    let output = Command::new("id").arg("-un").output().unwrap();
    let name = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    output.status.success().then_some(name)
}
