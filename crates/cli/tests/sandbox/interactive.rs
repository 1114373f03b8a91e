//! A person at a terminal: a shell goes on after a denial, which is shown at the right moment, and the
//! terminal is left clean.

use fixtures::{TestEnv, has, users};

use super::tty::Terminal;

/// Modes of a terminal that takes lines, as it was before.
const MODES: &str = "stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo -e opost | tr '\\n' '+'";

fn repository(env: &TestEnv) {
    env.prepare(
        "git init -q . && git config user.name a && git config user.email a@example.org &&
         for n in 1 2 3; do git commit -q --allow-empty -m \"commit $n\"; done",
    );
}

#[test]
fn a_shell_goes_on_and_says_at_once_what_was_denied() {
    for who in users() {
        let env = TestEnv::new(who);
        repository(&env);
        env.write("outside/other.txt", "other\n");
        let mut terminal = Terminal::of_kind(&env, "xterm");
        let run = format!("{} run -- /bin/bash --norc --noprofile -i\n", env.binary().display());
        terminal.send(&run);
        terminal.tell("PS1='in''ner> '", "inner> ");

        // Shown before the next prompt, and the shell goes on.
        terminal.tell("cat ../outside/secret.txt", "denied: `cat` tried to read");
        terminal.expect("ringwall grant read");
        terminal.tell("echo alive-$((1+1))", "alive-2");

        // A pager, and the key that ends it.
        terminal.tell("export LESS=R PAGER=less; git log", "commit 1");
        terminal.send("q");
        terminal.tell("echo paged-$((1+1))", "paged-2");

        // An editor has the whole screen: what is denied meanwhile is shown when lines are read again.
        let editor = if has("vim") { "vim" } else { "vi" };
        terminal.send(&format!("{editor} made.txt\n"));
        terminal.expect("\"made.txt\"");
        terminal.send("ihello\x1b");
        terminal.send(":r ../outside/other.txt\r");
        terminal.send(":w\r");
        terminal.expect("written");
        assert_eq!(
            terminal.transcript.matches("tried to read").count(),
            1,
            "{}",
            terminal.transcript
        );
        terminal.send(":q!\r");
        terminal.expect("inner> ");
        terminal.tell("echo edited-$((1+1)); sleep 1", "edited-2");
        assert_eq!(env.read("project/made.txt"), "hello\n");

        terminal.tell("bash -c 'echo sleeps-$((1+1)); exec sleep 1000'", "sleeps-2");
        terminal.send("\x03");
        terminal.tell("echo status-$?", "status-130");
        let reads = "bash -c 'echo reads-$((1+1)); read -r l; echo got-$l-$((1+1))'";
        terminal.tell(reads, "reads-2");
        terminal.send("\x1a");
        terminal.expect("Stopped");
        terminal.tell("jobs -s | wc -l; echo stopped-$((1+1))", "stopped-2");
        terminal.send("fg\n");
        terminal.expect("read -r l");
        terminal.tell("one", "got-one-2");
        terminal.expect("inner> ");

        terminal.send("exit 0\n");
        terminal.expect("outer> ");
        terminal.tell("echo status-$?", "status-0");
        terminal.tell(MODES, "opost+icanon+echo+");
        // Each was shown once: the second when the editor had gone, or at the end.
        let shown = &terminal.transcript;
        let (_, after) = shown.split_once(&format!("{editor} made.txt")).unwrap();
        let (_, after) = after.split_once("\x1b[?1049l").unwrap();
        assert!(after.contains("outside/other.txt\r\n  "), "{shown}");
        assert_eq!(shown.matches("tried to read ").count(), shown_denials(shown), "{shown}");
    }
}

/// How many different paths are named in denials.
fn shown_denials(shown: &str) -> usize {
    let paths = shown.split("tried to read ").skip(1);
    let paths: std::collections::BTreeSet<_> =
        paths.filter_map(|rest| rest.split_whitespace().next()).collect();
    paths.len()
}

#[test]
fn an_agent_or_a_script_on_a_terminal_is_still_stopped() {
    for who in users() {
        let env = TestEnv::new(who);
        let mut terminal = Terminal::of_kind(&env, "xterm");
        let run = format!("{} run", env.binary().display());
        let script = "bash -c 'cat ../outside/secret.txt; echo went-$((1+1))'";
        terminal.tell(&format!("{run} -- {script}"), "stopped: `cat` tried to read");
        terminal.tell("echo status-$?", "status-77");
        // A shell, too, if the user says so.
        terminal.send(&format!("{run} --on-violation stop -- bash --norc --noprofile -i\n"));
        terminal.tell("PS1='in''ner> '", "inner> ");
        terminal.tell("cat ../outside/secret.txt", "stopped: `cat` tried to read");
        terminal.tell("echo status-$?", "status-77");
        assert!(!terminal.transcript.contains("went-2"), "{}", terminal.transcript);
    }
}

#[test]
fn a_stop_leaves_the_screen_clean_and_its_message_below() {
    for who in users() {
        let env = TestEnv::new(who);
        let mut terminal = Terminal::of_kind(&env, "xterm");
        let full = "printf \"\\033[?1049h\\033[?25l\\033[?1000h\\033[?2004h\"; stty raw -echo";
        let script = format!("bash -c '{full}; cat ../outside/secret.txt'");
        terminal.send(&format!("{} run -- {script}\n", env.binary().display()));
        terminal.expect("\x1b[?1049h");
        for undone in ["\x1b[?1049l", "\x1b[?25h", "\x1b[0m", "\x1b[?1000l", "\x1b[?2004l"] {
            terminal.expect(undone);
        }
        terminal.expect("stopped: `cat` tried to read");
        terminal.tell("echo status-$?", "status-77");
        terminal.tell(MODES, "opost+icanon+echo+");
    }
}

#[test]
fn a_stop_names_the_locks_that_git_left() {
    for who in users() {
        let env = TestEnv::new(who);
        repository(&env);
        let ran = env.run(&[], "touch .git/index.lock src.lock; cat ../outside/secret.txt");
        assert_eq!(ran.code, Some(77), "{ran:?}");
        let lock = env.project().join(".git/index.lock").display().to_string();
        assert!(ran.stderr.contains(&format!("`rm -f {lock}`")), "{ran:?}");
        assert!(!ran.stderr.contains("src.lock"), "{ran:?}");
        // One that was there before is not the run's.
        let before = "touch -d '1 hour ago' .git/index.lock";
        env.prepare(before);
        let ran = env.run(&[], "cat ../outside/secret.txt");
        assert!(ran.code == Some(77) && !ran.stderr.contains("rm -f"), "{ran:?}");
    }
}
