//! Sentinels: they know which server is the primary now.
//!
//! They are asked anew for every connection. A connection ends when it fails, when its server turns out to be a
//! replica, and when a sentinel tells that another is the primary: so a failover is followed by itself.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;

use crate::address::Place;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::{Link, Patience};
use crate::resp::{Command, REPLY_CAP, Reply};
use crate::route::Route;
use crate::subscription::{Listener, Subscription};
use crate::target::{Endpoint, Target};

/// Where sentinels tell that a primary has changed.
const SWITCHED: &str = "+switch-master";

/// Some sentinels, and the name of the primary they watch. Displayed as messages name it.
#[derive(Debug)]
pub(crate) struct Sentinels {
    sentinels: Vec<Target>,
    master: String,
    /// How the primary is reached once its place is known.
    primary: Target,
}

impl Sentinels {
    /// `primary` is reached wherever they say, not where it says.
    pub(crate) const fn new(sentinels: Vec<Target>, master: String, primary: Target) -> Self {
        Self { sentinels, master, primary }
    }

    /// Connects to the primary that the first sentinel with an answer names.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Connection, Failure> {
        let mut last = Failure::Unreachable("the address names no sentinel".to_owned());
        for sentinel in &self.sentinels {
            let place = match self.ask(sentinel, patience).await {
                Ok(place) => place,
                Err(failure) => {
                    last = failure;
                    continue;
                }
            };
            match self.reach(place, patience).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Where this sentinel believes the primary to be.
    async fn ask(&self, sentinel: &Target, patience: Duration) -> Result<Place, Failure> {
        let unreachable = |why: String| {
            Failure::Unreachable(format!("the sentinel at {} {why}", sentinel.endpoint))
        };
        let mut connection = Connection::open(sentinel, patience).await?;
        let command = Command::new("SENTINEL").arg("get-master-addr-by-name").arg(&self.master);
        match exchange(&mut connection, command, patience).await.map_err(unreachable)? {
            Reply::Array(parts) => place(&parts),
            Reply::Null => {
                return Err(unreachable(format!("knows no primary called {:?}", self.master)));
            }
            _ => None,
        }
        .ok_or_else(|| unreachable("does not answer as a sentinel does".to_owned()))
    }

    async fn reach(&self, place: Place, patience: Duration) -> Result<Connection, Failure> {
        let endpoint = match &self.primary.endpoint {
            Endpoint::Tls(_, tls) => Endpoint::Tls(place, Arc::clone(tls)),
            Endpoint::Tcp(_) | Endpoint::Unix(_) => Endpoint::Tcp(place),
        };
        let target = Target { endpoint, ..self.primary.clone() };
        let unreachable =
            |why: String| Failure::Unreachable(format!("Redis at {} {why}", target.endpoint));
        let mut connection = Connection::open(&target, patience).await?;
        // A sentinel may not have heard yet, and a replica would refuse every take.
        let role = exchange(&mut connection, Command::new("ROLE"), patience).await;
        match role.map_err(unreachable)? {
            Reply::Array(parts) if is_replica(&parts) => {
                Err(unreachable("is a replica, though a sentinel calls it the primary".to_owned()))
            }
            _ => Ok(connection),
        }
    }
}

/// Lets a link leave its server when a sentinel tells of another.
pub(crate) struct Follower {
    sentinels: Arc<Sentinels>,
    patience: Patience,
    begun: OnceLock<Vec<Subscription>>,
}

impl Follower {
    pub(crate) const fn new(sentinels: Arc<Sentinels>, patience: Patience) -> Self {
        Self { sentinels, patience, begun: OnceLock::new() }
    }

    /// Begins to listen, unless that has begun. Needs a runtime.
    pub(crate) fn begin(&self, link: &Link) {
        let listen = |sentinel: &Target| {
            let listener = Switched { master: self.sentinels.master.clone(), link: link.clone() };
            let route = Route::To(sentinel.clone());
            Subscription::start(route, self.patience, SWITCHED.to_owned(), Arc::new(listener))
        };
        self.begun.get_or_init(|| self.sentinels.sentinels.iter().map(listen).collect());
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("sentinels", &self.sentinels).finish_non_exhaustive()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of its sentinels", self.master)
    }
}

/// Hears from one sentinel.
struct Switched {
    master: String,
    link: Link,
}

impl Listener for Switched {
    fn live(&self) {}

    fn message(&self, payload: &[u8]) {
        let name = payload.split(|byte| *byte == b' ').next();
        if name == Some(self.master.as_bytes()) {
            self.link.leave();
        }
    }

    fn lost(&self) {}
}

async fn exchange(
    connection: &mut Connection,
    command: Command,
    patience: Duration,
) -> Result<Reply, String> {
    let exchanged = async {
        connection.write([command]).await.map_err(|error| error.to_string())?;
        connection.read(REPLY_CAP).await.map_err(|error| error.to_string())
    };
    timeout(patience, exchanged).await.unwrap_or_else(|_| Err("does not answer".to_owned()))
}

fn place(parts: &[Reply]) -> Option<Place> {
    let [Reply::Bulk(host), Reply::Bulk(port)] = parts else { return None };
    let host = String::from_utf8(host.clone()).ok()?;
    Some(Place { host, port: std::str::from_utf8(port).ok()?.parse().ok()? })
}

fn is_replica(parts: &[Reply]) -> bool {
    matches!(parts.first(), Some(Reply::Bulk(role)) if role == b"slave")
}
