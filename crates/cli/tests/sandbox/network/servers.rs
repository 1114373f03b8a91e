//! A test environment with servers around it: some that may be granted, and witnesses behind a name
//! that is not.

use std::sync::OnceLock;

use fixtures::{Authority, RunOutput, Server, TestEnv, User};

/// The name that is granted.
pub(super) const GRANTED: &str = "granted.example.org";
/// A name that never is. It leads to the same machine, and nothing but the missing grant keeps a
/// client from it.
pub(super) const OTHER: &str = "other.example.org";

/// What takes the proxy away from a client.
pub(super) const UNSET: &str = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY \
    all_proxy GRPC_PROXY grpc_proxy NO_PROXY no_proxy NODE_USE_ENV_PROXY; ";

/// What every server gives out at `/page.txt`.
pub(super) const PAGE: &str = "PAGE\n";

pub(super) struct NetworkEnv {
    pub(super) env: TestEnv,
    pub(super) plain: Server,
    pub(super) tls: Server,
    pub(super) witness: Server,
    pub(super) tls_witness: Server,
}

impl NetworkEnv {
    pub(super) fn new(who: User) -> Self {
        let env = TestEnv::new(who);
        env.write("served/page.txt", PAGE);
        env.write("project/authority.crt", &authority().pem);
        let served = env.path("served");
        let tls = || Server::tls(&served, authority().server.clone());
        let plain = || Server::plain(&served);
        let net_env =
            Self { plain: plain(), tls: tls(), witness: plain(), tls_witness: tls(), env };
        net_env.configure("[violation]\naction = \"deny\"\n", &net_env.grants());
        net_env
    }

    /// What may be reached by default: the granted name at the first two servers.
    pub(super) fn grants(&self) -> String {
        format!("\"{GRANTED}:{}\", \"{GRANTED}:{}\"", self.plain.port, self.tls.port)
    }

    /// The user's configuration, with these entries in `allowed_domains`. Every name may lead to
    /// this machine: only grants decide.
    pub(super) fn configure(&self, more: &str, grants: &str) {
        let text = format!(
            "version = 1\n[network]\nallowed_domains = [{grants}]\nprivate_domains = [{}]\n{more}",
            self.private()
        );
        self.env.write("home/.config/ringwall/ringwall.toml", &text);
    }

    /// Every name at every server.
    pub(super) fn private(&self) -> String {
        let servers = [&self.plain, &self.tls, &self.witness, &self.tls_witness];
        let entries = servers
            .iter()
            .flat_map(|server| [GRANTED, OTHER].map(|name| format!("\"{name}:{}\"", server.port)));
        entries.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn run(&self, script: &str) -> RunOutput {
        self.run_with(&[], script)
    }

    pub(super) fn run_with(&self, options: &[&str], script: &str) -> RunOutput {
        run(&self.env, options, script)
    }

    /// Nobody came to the witnesses.
    pub(super) fn assert_unseen(&self, what: &dyn std::fmt::Debug) {
        for witness in [&self.witness, &self.tls_witness] {
            let seen = witness.seen();
            assert_eq!(seen.connections, 0, "{what:?}\n{seen:?}");
        }
    }
}

/// A script behind the wall, where the test's names lead to this machine.
pub(super) fn run(env: &TestEnv, options: &[&str], script: &str) -> RunOutput {
    env.run_with(&[("RINGWALL_TEST_HOSTS", &hosts())], options, script)
}

pub(super) fn hosts() -> String {
    format!("{GRANTED}=127.0.0.1,{OTHER}=127.0.0.1")
}

/// One for all tests. Its servers may use any of the names, so that it is never the certificate
/// that keeps a client away.
fn authority() -> &'static Authority {
    static ONE: OnceLock<Authority> = OnceLock::new();
    ONE.get_or_init(|| Authority::for_names(&[GRANTED, OTHER]))
}
