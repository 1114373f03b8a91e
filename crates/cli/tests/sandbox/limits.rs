//! Limits: each holds, the events say which, and nothing is left of what held it.

use fixtures::{RunOutput, TestEnv, User, users};

use crate::traces::Traces;

#[test]
fn too_much_time_ends_a_run() {
    for who in users() {
        let env = env(who, "wall_seconds = 2");
        let ran = run(&env, "while :; do echo x; sleep 0.1; done");
        ended_by(&ran, "wall_seconds");
        // Less than that is no reason to end it.
        let ran = run(&env, "exit 3");
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.events("limit").is_empty(), "{ran:?}");
    }
}

/// Whoever watches a run does not hold it up.
#[test]
fn a_reader_that_does_not_read_keeps_no_run_alive() {
    for who in users() {
        let env = env(who, "wall_seconds = 4\n[violation]\naction = \"deny\"");
        for number in 0..600 {
            env.write(&format!("outside/{number}"), "x");
        }
        let script = format!(
            "exec 9> >(exec sleep 60 > /dev/null 2>&1); {} run --events fd:9 -- bash -c \
             'for n in {{0..599}}; do : < ../outside/$n; done; exec sleep 50'",
            env.binary().display()
        );
        let ran = env.bare(&script);
        assert_eq!(ran.status.code(), Some(124), "{ran:?}");
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(errors.contains("the last events are lost: no one reads them"), "{errors}");
    }
}

#[test]
fn events_that_cannot_be_written_are_missed() {
    for who in users() {
        let env = env(who, "");
        let ran = env.ringwall(&["run", "--events", "/dev/full", "--", "true"]);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{errors}");
        assert_eq!(errors.matches("events are lost").count(), 1, "{errors}");
        // What is told about a run is not the run's to write.
        let told = ["run", "--events", "told.jsonl", "--", "bash", "-c"];
        for script in ["echo x >> told.jsonl", "rm -f told.jsonl", "mv told.jsonl x"] {
            let ran = env.ringwall(&[&told[..], &[script]].concat());
            assert_eq!(ran.status.code(), Some(77), "{script}: {ran:?}");
            let told = env.read("project/told.jsonl");
            assert!(told.lines().last().unwrap().contains("\"stopped\""), "{script}: {told}");
            std::fs::remove_file(env.project().join("told.jsonl")).unwrap();
        }
    }
}

#[test]
fn too_long_without_anything_ends_a_run() {
    for who in users() {
        let env = env(who, "idle_seconds = 4");
        ended_by(&run(&env, "echo once; exec sleep 1000"), "idle_seconds");
        let pause = "select undef, undef, undef, 0.2";
        for sign_of_life in
            ["print qq(x\\n)", "open F, q(>), q(x); close F", "mkdir q(d); rmdir q(d)"]
        {
            // One process, which starts no other: nothing else counts here.
            let script =
                format!("exec perl -e '$| = 1; for (1..25) {{ {sign_of_life}; {pause} }} exit 5'");
            let ran = run(&env, &script);
            assert_eq!(ran.code, Some(5), "{sign_of_life}: {ran:?}");
            assert!(ran.events("limit").is_empty(), "{ran:?}");
        }
    }
}

#[test]
fn without_namespaces_time_is_limited_too() {
    for who in users() {
        let env =
            env(who, "wall_seconds = 8\nidle_seconds = 2\n[confinement]\nminimum = \"landlock\"");
        let landlock = ["--enforcement", "landlock"];
        let traces = Traces::before(&env);
        let ran = env.run(&landlock, "(setsid sleep 1000 > /dev/null 2>&1 &); exec sleep 1000");
        ended_by(&ran, "idle_seconds");
        ended_by(&env.run(&landlock, "while :; do echo x; sleep 0.1; done"), "wall_seconds");
        traces.nothing("limits", &[], &[]);
    }
}

#[test]
fn a_file_grows_no_further() {
    for who in users() {
        let env = env(who, "file_size = \"1MiB\"");
        let ran =
            run(&env, "head -c 3000000 /dev/zero > big; echo $?; head -c 1000 /dev/zero > small");
        // SIGXFSZ, and the run goes on.
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "153\n"), "{ran:?}");
        assert_eq!(env.project().join("big").metadata().unwrap().len(), 1 << 20);
        assert_eq!(env.project().join("small").metadata().unwrap().len(), 1000);
        assert_eq!(ran.events("stopped")[0]["end"], "exited");
    }
}

#[test]
fn processes_are_counted_together() {
    for who in users() {
        let env = env(who, "processes = 20");
        // Each of five processes tries to have ten more, once all five exist.
        let script = "perl -e 'pipe R, W; for (1..5) { next if fork; close W; <R>; \
            for (1..10) { my $p = fork; last unless defined $p; \
            if (!$p) { sleep 1000 } syswrite STDOUT, qq(x\\n) } sleep 1000 } \
            close W; sleep 10; exit 3'";
        let ran = run(&env, script);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let by = limited_by(&ran);
        if who == User::Me && rustix::process::geteuid().is_root() && by == "process" {
            eprintln!(
                "skipped: no control group can be made here, and root's processes are not counted"
            );
            continue;
        }
        let started = ran.stdout.lines().count();
        assert!((1..20).contains(&started), "{started}: {ran:?}");
        assert_eq!(limits(&ran), if by == "process" { vec![] } else { vec!["processes"] });
    }
}

#[test]
fn a_run_of_two_processes_has_both() {
    for who in users() {
        if limited_by(&run(&env(who, "processes = 20"), "exit 3")) == "process" {
            eprintln!("skipped: no control group can be made here, and others' processes count");
            continue;
        }
        let ran = run(&env(who, "processes = 2"), "exit 3");
        assert_eq!(ran.code, Some(3), "{ran:?}");
    }
}

#[test]
fn memory_is_limited() {
    for who in users() {
        let env = env(who, "memory = \"100MiB\"");
        // `tail` holds a line until it is complete.
        let ran =
            run(&env, "head -c 300M /dev/zero | tail -n 1 | wc -c; echo ${PIPESTATUS[1]}; exit 3");
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let lines: Vec<_> = ran.stdout.lines().collect();
        assert_eq!(lines[0], "0", "{ran:?}");
        if limited_by(&ran) == "process" {
            assert_eq!((lines[1], limits(&ran)), ("1", vec![]), "{ran:?}");
        } else {
            assert_eq!((lines[1], limits(&ran)), ("137", vec!["memory"]), "{ran:?}");
        }
        let ran = run(&env, "head -c 10M /dev/zero | tail -n 1 | wc -c");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "10485760\n"), "{ran:?}");
        assert!(limits(&ran).is_empty(), "{ran:?}");
    }
}

#[test]
fn a_command_that_takes_all_memory_is_killed() {
    for who in users() {
        let env = env(who, "memory = \"100MiB\"");
        let ran = run(&env, "exec tail -n 1 < /dev/zero");
        let expected = if limited_by(&ran) == "process" { 1 } else { 137 };
        assert_eq!(ran.code, Some(expected), "{ran:?}");
    }
}

/// Runs a script and looks that nothing of the limits is left.
fn run(env: &TestEnv, script: &str) -> RunOutput {
    let traces = Traces::before(env);
    let ran = env.run(&[], script);
    let run = ran.events("started")[0]["run"].as_str().unwrap().to_owned();
    // A run is named after its time and its supervisor.
    let supervisor = u32::from_str_radix(run.rsplit('-').next().unwrap(), 16).unwrap();
    traces.nothing(script, &[supervisor], &["big", "small", "x"]);
    ran
}

fn ended_by(ran: &RunOutput, limit: &str) {
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert_eq!(limits(ran), [limit], "{ran:?}");
    assert_eq!(ran.events("stopped")[0]["end"], "limit", "{ran:?}");
    assert_eq!(ran.events("stopped")[0]["exit"], 124, "{ran:?}");
    assert!(ran.stderr.contains(&format!("limits.{limit}")), "{ran:?}");
}

fn limits(ran: &RunOutput) -> Vec<&str> {
    ran.events("limit").iter().filter_map(|event| event["limit"].as_str()).collect()
}

fn limited_by(ran: &RunOutput) -> &str {
    let by = ran.events("stopped")[0]["limited_by"].as_str().unwrap();
    assert!(["cgroup", "cgroup v1", "process"].contains(&by), "{ran:?}");
    by
}

fn env(who: User, limits: &str) -> TestEnv {
    let env = TestEnv::new(who);
    env.write("home/.config/ringwall/ringwall.toml", &format!("[limits]\n{limits}\n"));
    env
}
