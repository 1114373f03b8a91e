//! `cargo xtask bench proxy`: what the network boundary costs a download.
//!
//! One client program downloads from one server program on loopback: without a sandbox, in ours by
//! every route, and in sandbox-runtime's. Every route must transfer the bytes before it is measured.

mod place;
mod processes;
mod scene;

// A program of its own, built by `scene`; a module only so that it is checked like the rest.
#[cfg(test)]
#[expect(dead_code, reason = "nothing calls its main function here")]
mod ends;

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use self::place::Place;
use self::processes::{Cpu, load};
use self::scene::Scene;
use super::measure::{Bound, Figure, Times, in_turn, print_figures, skipped};
use super::peers::Peers;
use crate::failure::Failure;
use crate::workspace::Workspace;

const DIRECT: &str = "direct";
const CONNECT: &str = "ringwall, CONNECT";
const TUNNEL: &str = "ringwall, CONNECT, not HTTP in it";
const HTTP: &str = "ringwall, HTTP";
const SOCKS: &str = "ringwall, SOCKS";
const NAMES: &str = "ringwall, by DNS";
const PEER_CONNECT: &str = "sandbox-runtime, CONNECT";
const PEER_HTTP: &str = "sandbox-runtime, HTTP";
const PEER_SOCKS: &str = "sandbox-runtime, SOCKS";

/// A route by its name, and what the client calls it.
type Named = (&'static str, &'static str);

const OURS: [Named; 5] =
    [(CONNECT, "connect"), (TUNNEL, "tunnel"), (HTTP, "http"), (SOCKS, "socks"), (NAMES, "plain")];
const THEIRS: [Named; 3] = [(PEER_CONNECT, "connect"), (PEER_HTTP, "http"), (PEER_SOCKS, "socks")];

/// Rounds that do not count.
const WARM_UP: u32 = 1;
/// How often a download of another program may fail in one round.
const SPARE_TRIES: u32 = 3;
/// How many connections are set up one after the other, and how much each of them brings.
const QUEUE: (u32, u64) = (200, 1000);
/// How many are open at once, and how much each of them brings.
const CROWD: (u32, u64) = (1000, 1_000_000);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each route is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How much is downloaded each time
    #[arg(long, value_name = "MB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    megabytes: u64,
    /// Only measure: exit with 0 even if a limit is exceeded
    #[arg(long)]
    no_check: bool,
}

pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode, Failure> {
    let peers = Peers::fetch(&workspace.target.join("bench-peers"))?;
    let scene = Scene::set(workspace)?;
    let outside = RefCell::new(scene.outside()?);
    let inside = RefCell::new(scene.inside()?);
    let peer = peers.sandbox_runtime.map(|runtime| scene.inside_peer(&runtime)).transpose();
    let peer = peer.unwrap_or_else(|failure| {
        skipped("sandbox-runtime", &failure);
        None
    });
    let peer = peer.map(RefCell::new);
    let mut ways = vec![Way::new((DIRECT, "plain"), &outside)];
    ways.extend(OURS.iter().map(|way| Way::new(*way, &inside)));
    let theirs = peer.iter().flat_map(|peer| THEIRS.iter().map(move |way| Way::new(*way, peer)));
    ways.extend(theirs);

    println!("ringwall is the release build, plus the host names for tests");
    println!("{} routes, {} rounds of {} MB; {}", ways.len(), args.rounds, args.megabytes, load());
    let bytes = args.megabytes * 1_000_000;
    let fetch = |way: &mut Way, _| way.fetch_whole(&scene, bytes).map(Some);
    let downloads = in_turn(&mut ways, WARM_UP, args.rounds, fetch)?;
    let downloads = named(&ways, downloads);
    print_downloads(&downloads, &ways, args.megabytes);

    let queue = |way: &mut Way, _| way.queue().map(Some);
    let queues = in_turn(&mut ways, WARM_UP, args.rounds, queue)?;
    print_queues(&named(&ways, queues));
    println!("{}", load());

    let growth = crowd(&scene)?;
    let find = |name: &str| downloads.iter().find(|times| times.name == name);
    let speed = |ours: &str, theirs: &str| Some(find(theirs)?.ratio_to(find(ours)?));
    let figure = |claim, bound, measured| Figure { claim, bound, measured };
    let figures = [
        figure("by CONNECT, relative to direct", Bound::AtLeast(0.6), speed(CONNECT, DIRECT)),
        figure(
            "by CONNECT, not HTTP, relative to direct",
            Bound::AtLeast(0.6),
            speed(TUNNEL, DIRECT),
        ),
        figure("by DNS, relative to direct", Bound::AtLeast(0.6), speed(NAMES, DIRECT)),
        figure(
            "by CONNECT, relative to sandbox-runtime",
            Bound::AtLeast(2.0),
            speed(CONNECT, PEER_CONNECT),
        ),
        figure("by HTTP, relative to sandbox-runtime", Bound::AtLeast(2.0), speed(HTTP, PEER_HTTP)),
        figure(
            "by SOCKS, relative to sandbox-runtime",
            Bound::AtLeast(2.0),
            speed(SOCKS, PEER_SOCKS),
        ),
        figure("memory for 1000 connections", Bound::Megabytes(64.0), Some(growth)),
    ];
    Ok(print_figures(&figures, args.no_check))
}

/// One route to the server, and its cost so far.
struct Way<'a> {
    name: &'static str,
    place: &'a RefCell<Place>,
    word: &'static str,
    fetched: u64,
    server: Duration,
    cpu: Cpu,
}

impl<'a> Way<'a> {
    fn new((name, word): Named, place: &'a RefCell<Place>) -> Self {
        Self { name, place, word, fetched: 0, server: Duration::ZERO, cpu: Cpu::default() }
    }

    /// A complete download. sandbox-runtime occasionally loses the last bytes of one, which is
    /// reported and not counted; ours must not.
    fn fetch_whole(&mut self, scene: &Scene, bytes: u64) -> Result<Duration, Failure> {
        let theirs = THEIRS.iter().any(|(name, _)| *name == self.name);
        let mut spare = if theirs { SPARE_TRIES } else { 0 };
        loop {
            match self.fetch(scene, bytes) {
                Err(failure) if spare > 0 => {
                    spare -= 1;
                    println!("{}: trying again: {failure}", self.name);
                }
                done => return done,
            }
        }
    }

    fn fetch(&mut self, scene: &Scene, bytes: u64) -> Result<Duration, Failure> {
        let mut place = self.place.borrow_mut();
        let before = (scene.server.cpu(), place.cpu());
        let time = place.queue(self.word, 1, bytes)?;
        let after = (scene.server.cpu(), place.cpu());
        self.server += after.0.client.saturating_sub(before.0.client);
        self.cpu.client += after.1.client.saturating_sub(before.1.client);
        self.cpu.rest += after.1.rest.saturating_sub(before.1.rest);
        self.fetched += bytes;
        Ok(time)
    }

    fn queue(&self) -> Result<Duration, Failure> {
        let (connections, bytes) = QUEUE;
        self.place.borrow_mut().queue(self.word, connections, bytes)
    }
}

/// The times, with the names of their routes.
fn named(ways: &[Way<'_>], all: Vec<Vec<Duration>>) -> Vec<Times> {
    ways.iter().zip(all).map(|(way, times)| Times::new(way.name, times)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "sizes of downloads are far below 2^52")]
fn print_downloads(all: &[Times], ways: &[Way<'_>], megabytes: u64) {
    let Some(base) = all.first() else { return };
    print_head(
        "download, MB/s and CPU s/GB",
        &["best", "median", "of bests", "of medians", "sandbox", "server", "client"],
    );
    for (times, way) in all.iter().zip(ways) {
        let speed = |time: Duration| megabytes as f64 / time.as_secs_f64();
        let per_gigabyte = |time: Duration| time.as_secs_f64() / (way.fetched as f64 / 1e9);
        println!(
            "{:34}{:>12.0}{:>12.0}{:>11.2}x{:>11.2}x{:>12.2}{:>12.2}{:>12.2}",
            times.name,
            speed(times.percentile(0)),
            speed(times.median()),
            base.best_to(times),
            base.ratio_to(times),
            per_gigabyte(way.cpu.rest),
            per_gigabyte(way.server),
            per_gigabyte(way.cpu.client),
        );
    }
}

fn print_head(what: &str, columns: &[&str]) {
    println!("\n{what:34}{}", columns.iter().map(|word| format!("{word:>12}")).collect::<String>());
}

fn print_queues(all: &[Times]) {
    let Some(base) = all.first() else { return };
    print_head("connection, microseconds", &["best", "median", "of bests", "of medians"]);
    for times in all {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(QUEUE.0);
        println!(
            "{:34}{:>12.0}{:>12.0}{:>11.2}x{:>11.2}x",
            times.name,
            each(times.percentile(0)),
            each(times.median()),
            times.best_to(base),
            times.ratio_to(base)
        );
    }
}

/// How many megabytes of memory the supervisor needs for a crowd, on top of those for one client.
fn crowd(scene: &Scene) -> Result<f64, Failure> {
    let mut place = scene.inside()?;
    let (connections, bytes) = CROWD;
    place.queue("connect", 1, bytes)?;
    let before = place.memory()?;
    let time = place.crowd("connect", connections, bytes)?;
    let growth = (place.memory()?.peak - before.now) / 1e6;
    println!(
        "\n{connections} connections at once, {:.1} MB each: all complete in {:.2} s; \
         the supervisor used {:.1} MB before, and at most {growth:.1} MB more",
        f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6,
        time.as_secs_f64(),
        before.now / 1e6,
    );
    Ok(growth)
}
