//! What the handles of a link and its driver share: the queue, and whether the driver must be woken.
//!
//! The lock is never held while anybody is told anything: whoever is told may send again.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::resp::Reply;

/// For how long after a failed attempt to connect there is no other.
const PAUSE: Duration = Duration::from_millis(100);

/// Told how a command ended.
pub(crate) type Then = Box<dyn FnOnce(Result<Reply, Failure>) + Send>;

/// Told how an attempt to connect ended.
pub(super) type Opened = Box<dyn FnOnce(Result<Option<ServerInfo>, Failure>) + Send>;

/// A command and who waits for its reply.
pub(super) struct Pending {
    pub(super) bytes: Bytes,
    pub(super) reply_cap: usize,
    /// How many replies are to be let pass before its own.
    pub(super) replies_before: usize,
    pub(super) deadline: Instant,
    pub(super) then: Then,
}

/// What the caller that has queued something must do, without the lock.
pub(super) enum Next {
    Nothing,
    Wake(Waker),
    Spawn(Handle),
}

/// What the driver does when it has done all it could.
pub(super) enum Rest {
    /// More has come meanwhile.
    Again,
    Sleep,
    /// Nobody will ever ask again.
    End,
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// How many commands are queued or under way.
    pending: AtomicUsize,
    most: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Pending>,
    openers: Vec<Opened>,
    driver: Presence,
    refusal: Option<Refusal>,
    is_closed: bool,
    /// Whether the connection is to end once all is answered that was sent on it.
    is_leaving: bool,
}

/// Whether there is a driver.
#[derive(Default)]
enum Presence {
    #[default]
    Absent,
    Awake,
    Asleep(Waker),
}

/// After a failed attempt to connect.
struct Refusal {
    until: Instant,
    why: Failure,
}

impl Shared {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), pending: AtomicUsize::new(0), most }
    }

    /// Takes a command in, or gives it back with the reason.
    pub(super) fn queue(&self, pending: Pending) -> Result<Next, (Then, Failure)> {
        let mut state = self.state.lock();
        if let Some(refusal) = &state.refusal {
            if Instant::now() < refusal.until {
                return Err((pending.then, refusal.why.clone()));
            }
            state.refusal = None;
        }
        if self.pending.load(Ordering::Relaxed) >= self.most {
            return Err((pending.then, Failure::Overloaded));
        }
        match state.summon() {
            Ok(next) => {
                self.pending.fetch_add(1, Ordering::Relaxed);
                state.queue.push_back(pending);
                Ok(next)
            }
            Err(failure) => Err((pending.then, failure)),
        }
    }

    /// Asks for a connection.
    pub(super) fn want_open(&self, opened: Opened) -> Result<Next, Failure> {
        let mut state = self.state.lock();
        let next = state.summon()?;
        state.openers.push(opened);
        Ok(next)
    }

    /// Tells how a command ended. It makes room first, as the one told may send the next.
    pub(super) fn finish(&self, then: Then, reply: Result<Reply, Failure>) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
        then(reply);
    }

    /// Lets the connection end once all is answered; who must be woken to see to it.
    pub(super) fn leave_server(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        state.is_leaving = true;
        match &state.driver {
            Presence::Asleep(waker) => Some(waker.clone()),
            Presence::Absent | Presence::Awake => None,
        }
    }

    /// The last handle is gone.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let waker = match &state.driver {
            Presence::Asleep(waker) => Some(waker.clone()),
            Presence::Absent | Presence::Awake => None,
        };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What the driver does.
impl Shared {
    /// From now on it looks for itself, and need not be woken.
    pub(super) fn awake(&self) {
        self.state.lock().driver = Presence::Awake;
    }

    /// Sleeps unless there is something that it could take. The look and the sleep are one step, so
    /// that nothing comes between.
    pub(super) fn rest(&self, waker: &Waker, can_take: bool) -> Rest {
        let mut state = self.state.lock();
        if can_take && state.is_wanted() {
            return Rest::Again;
        }
        let is_done = state.openers.is_empty() && self.pending.load(Ordering::Relaxed) == 0;
        if state.is_closed && is_done {
            return Rest::End;
        }
        state.driver = Presence::Asleep(waker.clone());
        Rest::Sleep
    }

    /// Whether anybody waits for a connection.
    pub(super) fn is_wanted(&self) -> bool {
        self.state.lock().is_wanted()
    }

    /// Moves all that is queued to the end of what is to be written, and returns who waits for the
    /// connection alone.
    pub(super) fn take(&self, unsent: &mut VecDeque<Pending>) -> Vec<Opened> {
        let mut state = self.state.lock();
        unsent.append(&mut state.queue);
        mem::take(&mut state.openers)
    }

    /// Puts back what was taken and not sent, before what has come since.
    pub(super) fn put_back(&self, unsent: VecDeque<Pending>) {
        let mut state = self.state.lock();
        let since = mem::replace(&mut state.queue, unsent);
        state.queue.extend(since);
    }

    /// When the oldest in the queue must have its reply.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.state.lock().queue.front().map(|pending| pending.deadline)
    }

    /// Takes out what has waited for too long.
    pub(super) fn expired(&self, now: Instant) -> Vec<Pending> {
        let mut state = self.state.lock();
        let count = state.queue.iter().take_while(|pending| pending.deadline <= now).count();
        state.queue.drain(..count).collect()
    }

    /// There is a connection.
    pub(super) fn accept(&self) {
        let mut state = self.state.lock();
        (state.refusal, state.is_leaving) = (None, false);
    }

    /// Whether the connection is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.state.lock().is_leaving
    }

    /// There is none: tells all who wait, and for a while all who come.
    pub(super) fn refuse(&self, why: &Failure) {
        let mut state = self.state.lock();
        state.refusal = Some(Refusal { until: Instant::now() + PAUSE, why: why.clone() });
        self.dismiss(state, why);
    }

    /// The driver ends, as it should or because its runtime does.
    pub(super) fn leave(&self, why: &Failure) {
        let mut state = self.state.lock();
        state.driver = Presence::Absent;
        self.dismiss(state, why);
    }

    fn dismiss(&self, mut state: MutexGuard<'_, State>, why: &Failure) {
        let (queue, openers) = (mem::take(&mut state.queue), mem::take(&mut state.openers));
        drop(state);
        for opened in openers {
            opened(Err(why.clone()));
        }
        for pending in queue {
            self.finish(pending.then, Err(why.clone()));
        }
    }
}

impl State {
    fn is_wanted(&self) -> bool {
        !self.queue.is_empty() || !self.openers.is_empty()
    }

    /// Sees to it that the driver will look.
    fn summon(&mut self) -> Result<Next, Failure> {
        let next = match mem::replace(&mut self.driver, Presence::Awake) {
            Presence::Awake => Next::Nothing,
            Presence::Asleep(waker) => Next::Wake(waker),
            Presence::Absent => match Handle::try_current() {
                Ok(runtime) => Next::Spawn(runtime),
                Err(_) => {
                    self.driver = Presence::Absent;
                    let why = "there is no Tokio runtime here to reach Redis from";
                    return Err(Failure::Unreachable(why.to_owned()));
                }
            },
        };
        Ok(next)
    }
}
