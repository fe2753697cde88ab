//! Starts a Redis cluster.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::admin::AdminConnection;
use super::deployment::Programs;
use crate::Outcome;
use crate::server::{Address, Server};

/// Number of hash slots of a cluster.
const SLOTS: u32 = 16_384;

/// Maximum time until the nodes form a cluster.
const FORM_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a cluster of `primaries` nodes that share the slots equally. Node files are in `files`.
pub(super) fn start(programs: &Programs, primaries: u16, files: &Path) -> Outcome<Vec<Server>> {
    let (mut servers, mut admins, mut buses) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..primaries {
        // The default bus port (port + 10000) may exceed 65535.
        let bus = Address::free()?.port().to_string();
        let server = programs.start(|command| {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
            command.arg("--cluster-config-file").arg(files.join(format!("node{index}")));
        })?;
        let mut admin = AdminConnection::connect(format!("redis://{}", server.address()))?;
        let begin = |index| (SLOTS * u32::from(index) / u32::from(primaries)).to_string();
        let end = SLOTS * (u32::from(index) + 1) / u32::from(primaries) - 1;
        admin.cluster(["ADDSLOTSRANGE", &begin(index), &end.to_string()])?;
        admin.cluster(["SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        servers.push(server);
        admins.push(admin);
        buses.push(bus);
    }
    for (server, bus) in servers.iter().zip(&buses).skip(1) {
        let (host, port) = (server.address().ip().to_string(), server.address().port().to_string());
        admins
            .iter_mut()
            .take(1)
            .try_for_each(|first| first.cluster(["MEET", &host, &port, bus]))?;
    }
    admins.iter_mut().try_for_each(|admin| wait(admin, usize::from(primaries)))?;
    Ok(servers)
}

/// Waits until a node knows the owner of every slot.
fn wait(admin: &mut AdminConnection, nodes: usize) -> Outcome<()> {
    let deadline = Instant::now() + FORM_TIMEOUT;
    while !admin.is_cluster_ready(nodes)? {
        if Instant::now() > deadline {
            return Err("the nodes did not form a cluster in time".into());
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}
