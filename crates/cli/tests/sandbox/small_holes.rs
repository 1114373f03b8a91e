//! What a run could still see, use up or leave behind.

use fixtures::{TestEnv, User, users};

#[test]
fn private_files_have_an_end() {
    for who in users() {
        let fill = "for place in /tmp /dev/shm /var/tmp; do \
                    head -c 100M /dev/zero > $place/x 2> /dev/null; stat -c %s $place/x; done";
        for (limits, most) in [("memory = \"64MiB\"", 64), ("private_files = \"32MiB\"", 32)] {
            let env = env(who, &format!("[limits]\n{limits}\n"));
            let ran = env.run(&[], fill);
            let sizes = ran.stdout.lines().map(|line| line.parse::<u64>().unwrap());
            let stored: u64 = sizes.sum();
            // Where a control group counts, it may have killed the program first.
            assert!(stored <= most << 20, "{limits}: {stored}");
        }
        // Unless limited, there is as much as a build needs.
        let env = env(who, "");
        let ran = env.run(&[], fill);
        assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), ["104857600"; 3], "{ran:?}");
    }
}

#[test]
fn the_number_of_private_files_has_an_end() {
    for who in users() {
        let env = env(who, "[limits]\nprivate_files = \"16MiB\"\n");
        let script =
            "perl -e 'for (1..100_000) { open F, q(>), qq(/tmp/$_) or last; $n++ } print $n'";
        let ran = env.run(&[], script);
        let made: u32 = ran.stdout.parse().unwrap();
        assert!((1000..5000).contains(&made), "{made}");
    }
}

#[test]
fn the_host_has_no_name_and_no_disks() {
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    for who in users() {
        let env = env(who, "");
        let script = "uname -n; cat /proc/sys/kernel/hostname /etc/hostname; \
                      cat /proc/cmdline /proc/partitions /proc/diskstats /proc/swaps /proc/modules \
                      /proc/keys /proc/key-users; cat /proc/bus/* /proc/scsi/* 2> /dev/null; exit 0";
        let ran = env.run(&[], script);
        assert_eq!(ran.stdout, "ringwall\nringwall\nringwall\n", "{ran:?}");
        assert!(host == "ringwall" || !ran.stdout.contains(&host));
        // The name that programs see leads to this machine.
        let ran = env.run(&[], "getent hosts $(uname -n)");
        assert!(ran.stdout.contains("127.0.0.1"), "{ran:?}");
    }
}

#[test]
fn directories_of_the_system_are_no_workspaces() {
    for who in users() {
        let env = env(who, "");
        let places = [
            "/run",
            "/etc",
            "/sys",
            "/dev",
            "/usr/share",
            "/tmp",
            "/var",
            "/var/tmp",
            "/proc",
            "/boot",
            "/opt",
            "/home",
            "/usr",
            "/var/lib",
            "/proc/sys/kernel",
            "/etc/ssl",
            "/dev/shm",
        ];
        for place in places.into_iter().filter(|place| std::path::Path::new(place).is_dir()) {
            let mut command = env.command(env.binary());
            let named = command.args(["run", "--workspace", place, "--", "true"]).output().unwrap();
            let started =
                env.bare(&format!("cd {place} && {} run -- true", env.binary().display()));
            for refused in [named, started] {
                let errors = String::from_utf8_lossy(&refused.stderr);
                assert_eq!(refused.status.code(), Some(64), "{place}: {errors}");
                assert!(errors.contains("the workspace would be"), "{place}: {errors}");
            }
        }
        // A directory in one of them that everyone may use is one.
        let dir = tempfile::Builder::new().prefix("ringwall-").tempdir_in("/tmp").unwrap();
        env.own_tree(dir.path());
        let place = dir.path().display();
        let ran = env.bare(&format!("cd {place} && {} run -- true", env.binary().display()));
        assert!(ran.status.success(), "{ran:?}");
    }
}

#[test]
fn no_name_forges_a_line_of_ours() {
    let forged = "x\nerror: forged";
    for who in users() {
        let env = env(who, "[violation]\naction = \"deny\"\n");
        env.prepare("cp /bin/mkdir $'x\\nerror: forged'; mkdir $'d\\nerror: forged'");
        let scripts = [
            "run -- $'./x\\nerror: forged' ../outside/a",
            "run -- $'nope\\nerror: forged'",
            "run --learn -- mkdir ../outside/$'x\\nerror: forged'",
            "run --level $'x\\nerror: forged' -- true",
            "run --workspace $'x\\nerror: forged' -- true",
            "run --events $'no/x\\nerror: forged' -- true",
            "run --workspace $'d\\nerror: forged' --plan -- true",
        ];
        for script in scripts {
            let script = format!("{} {script}", env.binary().display());
            let ran = env.bare(&script);
            let text = [ran.stdout, ran.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            // What the program itself prints is its own.
            let own = ["cannot create directory", "./x"];
            let ours = text.lines().collect::<Vec<_>>();
            let at = ours.iter().position(|line| line.starts_with("error: forged"));
            let is_own = |at: usize| at > 0 && own.iter().any(|own| ours[at - 1].contains(own));
            assert!(at.is_none_or(is_own), "{script} {forged:?}: {text}");
        }
    }
}

#[test]
fn modes_of_the_streams_end_with_the_run() {
    for who in users() {
        let env = env(who, "");
        let set = "use Fcntl; for (0, 1, 2) { open F, qq(+<&=$_); \
                   fcntl(F, F_SETFL, fcntl(F, F_GETFL, 0) | O_NONBLOCK | O_APPEND) or die }";
        let look = "perl -MFcntl -e 'print fcntl(STDIN, F_GETFL, 0) & O_NONBLOCK ? q(yes) : q(no)'";
        let script = format!(
            "exec < <(sleep 5); {} run -- perl -e '{set}' > /dev/null 2>&1; echo $?; {look} > ../seen",
            env.binary().display()
        );
        let ran = env.bare(&script);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "0\n", "{ran:?}");
        assert_eq!(env.read("seen"), "no");
    }
}

#[test]
fn an_events_file_that_others_write_is_reported() {
    for who in users() {
        let env = env(who, "");
        let binary = env.binary();
        // One run that began before the file existed writes to it while another one goes on.
        let script = format!(
            "{0} run -- bash -c '> began; until grep -q started told.jsonl; do sleep 0.05; done; \
             echo forged >> told.jsonl' & \
             until [ -e began ]; do sleep 0.05; done; \
             {0} run --events told.jsonl -- bash -c 'until grep -q ^forged told.jsonl; do sleep 0.05; \
             done' 2> ../err; wait",
            binary.display()
        );
        let ran = env.bare(&script);
        assert!(ran.status.success(), "{ran:?}");
        let errors = env.read("err");
        assert!(errors.contains("the events file was changed"), "{errors}");
    }
}

#[test]
fn events_go_through_no_link() {
    for who in users() {
        let env = env(who, "");
        env.prepare("ln -s ../outside/profile told.jsonl");
        let ran = env.ringwall(&["run", "--events", "told.jsonl", "--", "true"]);
        assert_eq!(ran.status.code(), Some(64), "{ran:?}");
        assert!(!env.path("outside/profile").exists());
    }
}

/// The kernel does not count the processes of root; the numbers that it has for them have an end.
#[test]
fn processes_of_root_have_an_end() {
    for who in users() {
        let env = env(who, "");
        let ran = env.run(&[], "cat /proc/sys/kernel/pid_max; ulimit -u");
        let numbers: Vec<u64> = ran.stdout.lines().map(|line| line.parse().unwrap()).collect();
        let root = who == User::Me && rustix::process::geteuid().is_root();
        assert_eq!(numbers[1], 4096, "{ran:?}");
        let own = env.run(&[], "uname -r").stdout;
        let new = own.split('.').take(2).map(|n| n.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
        if root && new >= vec![6, 14] {
            assert_eq!(numbers[0], 4396, "{ran:?}");
        }
    }
}

fn env(who: User, config: &str) -> TestEnv {
    let env = TestEnv::new(who);
    env.write("home/.config/ringwall/ringwall.toml", config);
    env.own();
    env
}
