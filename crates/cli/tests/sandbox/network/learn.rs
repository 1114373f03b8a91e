//! `--learn` proposes the hosts that a run was refused, and no more than that.

use fixtures::users;

use super::servers::{NetworkEnv, OTHER, UNSET};

#[test]
fn learning_prints_the_hosts_that_would_have_been_enough() {
    for who in users() {
        let net_env = NetworkEnv::new(who);
        let port = net_env.witness.port;
        let denied = "denied_domains = [\"denied.example.org\", \"*.deep.example.org\"]\n";
        net_env.configure(denied, "");
        net_env.env.write("home/other/notes.txt", "notes");
        let proxied = [
            format!("http://{OTHER}:{port}/page.txt"),
            "http://usual.example.net/".into(),
            "https://usual.example.net/".into(),
            format!("http://127.0.0.1:{port}/page.txt"),
            // Never proposed: what is denied, and what is not public.
            "http://denied.example.org/".into(),
            "http://very.deep.example.org:8080/".into(),
            "http://169.254.169.254/latest/meta-data/".into(),
            "http://10.0.0.1:8443/".into(),
        ];
        // With the name of the host, in another spelling, and only looked up.
        let script = format!(
            "export NO_PROXY= no_proxy=; for url in {}; do curl -s -m 60 -o /dev/null $url; done; \
             curl -s -o /dev/null http://OTHER.example.org.:{port}/; \
             {UNSET}for name in looked.example.net usual.example.net denied.example.org; do \
             getent hosts $name; done; cat ~/other/notes.txt; exit 0",
            proxied.join(" ")
        );
        let ran = net_env.run_with(&["--learn"], &script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        net_env.assert_unseen(&ran);
        let (_, learned) = ran.stderr.split_once("\n[filesystem]\n").expect("nothing learned");
        let (files, network) = learned.split_once("[network]\n").expect("no network learned");
        assert!(files.contains("/other\""), "{ran:?}");
        let network = network.split_once("# no entry is").map_or(network, |(entries, _)| entries);
        let expected = format!(
            "# only looked up, so the port is not known: looked.example.net\n\
             allowed_domains = [\"looked.example.net\", \"{OTHER}:{port}\", \
             \"usual.example.net\"]\nallow_local_ports = [{port}]\n"
        );
        assert_eq!(network.trim_end(), expected.trim_end(), "{ran:?}");

        // With exactly these lines, nothing is missing any more that could be granted.
        let domains = network.lines().find(|line| line.starts_with("allowed_domains")).unwrap();
        let domains = domains.trim_start_matches("allowed_domains = [").trim_end_matches(']');
        net_env.configure(&format!("{denied}allow_local_ports = [{port}]\n"), domains);
        let ran = net_env.run_with(&["--learn", "--allow-read", "~/other"], &script);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("# nothing more is needed"), "{ran:?}");
        assert_eq!(net_env.witness.seen().requests.len(), 3, "{ran:?}");
    }
}
