//! Ports of the host that lead to servers inside a run.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use config::setup::Setup;
use model::{Net, Plan, Publication};
use proxy::Published;
use sandbox::Program;

use crate::request::Error;

/// Listens outside. Every port must be free before the command starts.
pub(crate) fn listen(publications: &[Publication]) -> Result<Vec<Published>, Error> {
    let mut published = Vec::new();
    for publication in publications {
        let inside = publication.inside;
        let addresses = publication.outside();
        for address in &addresses {
            match TcpListener::bind(address) {
                Ok(listener) => published.push(Published { listener, inside }),
                // This machine has only one of the two loopback addresses.
                Err(error) if addresses.len() > 1 && address.is_ipv6() && is_absent(&error) => {}
                Err(error) => return Err(failed(publication, *address, &error)),
            }
        }
    }
    Ok(published)
}

/// Whether this machine does not have the address, or not the protocol.
fn is_absent(error: &io::Error) -> bool {
    let unsupported = Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == unsupported
}

fn failed(publication: &Publication, address: SocketAddr, error: &io::Error) -> Error {
    let inside = publication.inside;
    let (what, hint) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            "another program listens there".to_owned(),
            format!("stop it, or use another port: `--publish PORT:{inside}`"),
        ),
        io::ErrorKind::PermissionDenied => (
            "ports below 1024 need a privilege".to_owned(),
            format!("use a higher port: `--publish {}:{inside}`", 8000 + inside % 1000),
        ),
        io::ErrorKind::AddrNotAvailable => (
            "this machine does not have the address".to_owned(),
            format!("leave the address out: `--publish {}:{inside}`", publication.port),
        ),
        _ => (error.to_string(), "nothing was run".to_owned()),
    };
    Error::unavailable(format!("cannot publish port {inside} at {address}: {what}")).hint(hint)
}

/// At level `full` the run has no ports of its own.
pub(crate) fn without_effect(setup: &Setup, plan: &Plan) -> Option<String> {
    let asked = !setup.loaded.policy.network.publish.is_empty();
    (asked && plan.network == Net::Host).then(|| {
        "nothing is published: at level `full` servers listen on this machine itself".to_owned()
    })
}

/// What a program is called in a message.
pub(crate) fn name(program: &Program) -> String {
    let typed = program.argv.first().map(Path::new);
    let file = typed.or(program.path.as_deref()).and_then(Path::file_name);
    file.map_or_else(|| "a program".into(), |name| name.to_string_lossy().into_owned())
}

/// Servers inside that are named at the end of a run.
const MOST_NAMED: usize = 3;

/// What no one outside could reach, and how that is changed.
pub(crate) fn not_published(servers: &[(u16, String)]) -> impl Iterator<Item = String> {
    servers.iter().take(MOST_NAMED).map(|(port, program)| {
        format!(
            "`{program}` listened on port {port}, which only the run itself can reach; `--publish {port}` \
             makes it reachable from this machine"
        )
    })
}
