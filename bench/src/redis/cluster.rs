//! Servers become a cluster.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::inside::Inside;
use super::stage::Programs;
use crate::Outcome;
use crate::server::{Address, Server};

/// How many slots there are to share.
const SLOTS: u32 = 16_384;

/// They know each other by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts so many primaries, with files of their own, that have met and share the slots equally.
pub(super) fn form(programs: &Programs, primaries: u16, files: &Path) -> Outcome<Vec<Server>> {
    let (mut servers, mut insides, mut buses) = (Vec::new(), Vec::new(), Vec::new());
    for place in 0..primaries {
        // What is added to a port by itself may be beyond the last.
        let bus = Address::free()?.port().to_string();
        let server = programs.start(|command| {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
            command.arg("--cluster-config-file").arg(files.join(format!("node{place}")));
        })?;
        let mut inside = Inside::connect(format!("redis://{}", server.address()))?;
        let begin = |place| (SLOTS * u32::from(place) / u32::from(primaries)).to_string();
        let end = SLOTS * (u32::from(place) + 1) / u32::from(primaries) - 1;
        inside.cluster(["ADDSLOTSRANGE", &begin(place), &end.to_string()])?;
        inside.cluster(["SET-CONFIG-EPOCH", &(place + 1).to_string()])?;
        servers.push(server);
        insides.push(inside);
        buses.push(bus);
    }
    for (server, bus) in servers.iter().zip(&buses).skip(1) {
        let (host, port) = (server.address().ip().to_string(), server.address().port().to_string());
        insides
            .iter_mut()
            .take(1)
            .try_for_each(|first| first.cluster(["MEET", &host, &port, bus]))?;
    }
    insides.iter_mut().try_for_each(|inside| wait(inside, usize::from(primaries)))?;
    Ok(servers)
}

/// Waits until a node knows who has which slot.
fn wait(inside: &mut Inside, nodes: usize) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    while !inside.is_whole(nodes)? {
        if Instant::now() > deadline {
            return Err("the nodes do not become a cluster".into());
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}
