//! A cluster: each slot has its server, and slots move.
//!
//! A call goes to the server that is believed to have its slot. One that says otherwise has not run the call,
//! which is then sent where it says. What may have run is never sent again.

mod journey;
mod redirect;
mod topology;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::address::{Login, Place};
use crate::caller::{Caller, Scripting, Work};
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::{Link, Patience, Then};
use crate::resp::Command;
use crate::script::Programs;
use crate::slot::Slot;
use crate::target::{Endpoint, Target};
use crate::tls::Tls;
use journey::Journey;
use redirect::Redirect;
use topology::{Member, Topology, stretches};

/// How often a call is sent elsewhere. Where it is to wait, only its time is the bound.
const MOST_REDIRECTS: usize = 16;

/// How long until a call is tried again that a node cannot run yet.
const LATER: Duration = Duration::from_millis(10);

/// How old what is known of a cluster may become.
const OLDEST: Duration = Duration::from_secs(15);

/// What every node of a cluster is reached with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) login: Option<Login>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) patience: Patience,
    pub(crate) programs: Arc<Programs>,
    pub(crate) scripting: Scripting,
}

/// A cluster, by what is known of it.
#[derive(Debug)]
pub(crate) struct Cluster {
    means: Means,
    seeds: Vec<Place>,
    topology: Mutex<Topology>,
    looked_at: Mutex<Option<Instant>>,
    is_looking: AtomicBool,
}

/// How a node is asked: as the owner of a slot, or as who is about to be.
type Send = fn(&Arc<Caller>, Work, Then);

impl Means {
    fn target(&self, place: &Place) -> Target {
        let endpoint = Endpoint::at(place.clone(), self.tls.as_ref());
        Target { endpoint, login: self.login.clone(), database: 0 }
    }

    fn caller(&self, place: &Place) -> Caller {
        let link = Link::new(self.target(place), self.patience);
        Caller::new(link, Arc::clone(&self.programs), self.scripting)
    }
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<Place>, means: Means) -> Self {
        let mut topology = Topology::new();
        for seed in &seeds {
            topology.member(seed, |place| means.caller(place));
        }
        let (topology, looked_at) = (Mutex::new(topology), Mutex::default());
        Self { means, seeds, topology, looked_at, is_looking: AtomicBool::new(false) }
    }

    /// Sends it where the slot is. `then` is told once, and must not block.
    pub(crate) fn send(self: &Arc<Self>, slot: Slot, work: Work, then: Then) {
        let until = Instant::now() + self.means.patience.reply;
        let journey = Journey::new(slot, work, until, then);
        if self.is_outdated() {
            self.look_in_background();
        }
        self.go(journey);
    }

    fn go(self: &Arc<Self>, journey: Journey) {
        let member = {
            let topology = self.topology.lock();
            topology.owner(journey.slot).or_else(|| topology.anyone())
        };
        match member {
            Some(member) => self.go_to(&member, journey, Caller::send),
            None => journey.end(Err(Failure::Unreachable("no node is known".to_owned()))),
        }
    }

    fn go_to(self: &Arc<Self>, member: &Arc<Member>, journey: Journey, send: Send) {
        let this = Arc::clone(self);
        let (work, place) = (journey.work.clone(), member.place.clone());
        let then: Then = Box::new(move |result| match result {
            Err(failure) => this.redirect(journey, failure, &place),
            answered => journey.end(answered),
        });
        send(&member.caller, work, then);
    }

    /// Sends on what has not run, while there is time.
    fn redirect(self: &Arc<Self>, mut journey: Journey, failure: Failure, asked: &Place) {
        let redirect = Redirect::of(&failure, asked);
        if matches!(failure, Failure::Lost(_) | Failure::Timeout) {
            self.look_in_background();
        }
        let has_time = Instant::now() < journey.until && journey.redirects < MOST_REDIRECTS;
        let Some(redirect) = redirect.filter(|_| has_time) else {
            return journey.end(Err(failure));
        };
        journey.redirects += usize::from(redirect != Redirect::Later);
        match redirect {
            Redirect::Moved { slot, to } => {
                let member = self.member(&to);
                self.topology.lock().assign(slot.unwrap_or(journey.slot), Arc::clone(&member));
                self.look_in_background();
                self.go_to(&member, journey, Caller::send);
            }
            Redirect::Ask { to } => self.go_to(&self.member(&to), journey, Caller::send_asking),
            Redirect::Later => {
                self.look_in_background();
                let this = Arc::clone(self);
                let later = async move {
                    sleep(LATER).await;
                    this.go(journey);
                };
                // Where the runtime has ended, dropping it tells whoever waits.
                drop(Handle::try_current().map(|runtime| runtime.spawn(later)));
            }
        }
    }

    fn member(&self, place: &Place) -> Arc<Member> {
        self.topology.lock().member(place, |place| self.means.caller(place))
    }

    fn is_outdated(&self) -> bool {
        self.looked_at.lock().is_none_or(|at| at.elapsed() > OLDEST)
    }

    /// Looks at who has what, unless somebody does already.
    fn look_in_background(self: &Arc<Self>) {
        if self.is_looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let looking = Looking(Arc::clone(self));
        let look = async move { drop(looking.0.look().await) };
        // Calls that end with their runtime come here too, and there is nothing left to look for.
        drop(Handle::try_current().map(|runtime| runtime.spawn(look)));
    }

    /// Asks one node after the other who has what, until one knows.
    async fn look(&self) -> Result<(), Failure> {
        let mut last = Failure::Unreachable("no node is known".to_owned());
        let mut members = self.topology.lock().members();
        members.extend(self.seeds.iter().map(|seed| self.member(seed)));
        for member in members {
            let command = Command::new("CLUSTER").arg("SLOTS");
            let told = member.caller.link().ask(command).await;
            match told.map(|reply| stretches(&reply, &member.place)) {
                Ok(Some(stretches)) if !stretches.is_empty() => {
                    self.topology.lock().adopt(&stretches, |place| self.means.caller(place));
                    *self.looked_at.lock() = Some(Instant::now());
                    return Ok(());
                }
                Ok(_) => last = Failure::Unreachable(no_cluster(&member.place)),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Proves that the cluster can be reached, and every primary of it.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        // Nodes that are reached for the first time may take as long as connecting takes.
        for seed in &self.seeds {
            if self.member(seed).caller.link().open().await.is_ok() {
                break;
            }
        }
        self.look().await?;
        let mut info = None;
        let primaries = self.topology.lock().primaries();
        for member in primaries {
            info = info.or(member.caller.link().open().await?);
        }
        Ok(info)
    }

    /// The links to all primaries, in an order that stays while the cluster does.
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Failure> {
        if self.is_outdated() {
            self.look().await?;
        }
        let primaries = self.topology.lock().primaries();
        Ok(primaries.iter().map(|member| member.caller.link().clone()).collect())
    }
}

/// Somebody looks at who has what, until this is dropped: also when a runtime ends in between.
struct Looking(Arc<Cluster>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_looking.store(false, Ordering::Release);
    }
}

fn no_cluster(place: &Place) -> String {
    format!("Redis at {place} is no node of a cluster that has slots")
}
