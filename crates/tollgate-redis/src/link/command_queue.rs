//! The command queue between the handles of a link and its driver.
//!
//! No lock is held while a callback runs, because a callback may send another command.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::SendGate;
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::resp::Reply;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Handle, Mutex, MutexGuard};

/// Minimum time between a failed connection attempt and the next attempt.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// A callback with the reply to a command.
pub(super) type OnReply = Box<dyn FnOnce(Result<Reply, Failure>) + Send>;

/// Receives the result of a connection attempt.
pub(super) type Opener = oneshot::Sender<Result<Option<ServerInfo>, Failure>>;

/// A command and the callback for its reply.
pub(super) struct Pending {
    pub(super) bytes: Bytes,
    pub(super) reply_cap: usize,
    /// Number of replies to skip before its own.
    pub(super) skipped_replies: usize,
    pub(super) deadline: Instant,
    /// The gate of a command that its caller may withdraw.
    pub(super) gate: Option<Arc<SendGate>>,
    pub(super) on_reply: OnReply,
}

/// The action of a handle after it has queued a command, without the lock.
pub(super) enum DriverAction {
    None,
    Wake(Waker),
    Spawn(Handle),
}

/// The next action of the driver.
pub(super) enum AfterTurn {
    /// More commands have arrived.
    Again,
    Sleep,
    /// All handles are dropped and all commands are finished.
    Stop,
}

pub(super) struct CommandQueue {
    state: Mutex<State>,
    /// Number of commands that are queued or in flight.
    pending: AtomicUsize,
    max_pending: usize,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Pending>,
    openers: Vec<Opener>,
    driver: DriverState,
    failed_connect: Option<FailedConnect>,
    is_closed: bool,
    /// Whether the connection must close after all replies in flight.
    is_retiring: bool,
    /// When the server last replied, or had nothing to reply to. `None` without a connection.
    silent_since: Option<Instant>,
}

#[derive(Default)]
enum DriverState {
    #[default]
    Absent,
    Awake,
    Asleep(Waker),
}

/// A failed connection attempt, which also fails commands until the next attempt.
struct FailedConnect {
    retry_at: Instant,
    failure: Failure,
}

/// Used by the handles.
impl CommandQueue {
    pub(super) fn new(max_pending: usize) -> Self {
        Self { state: Mutex::default(), pending: AtomicUsize::new(0), max_pending }
    }

    /// Queues a command, or returns its callback and the failure.
    pub(super) fn push(
        &self,
        pending: Pending,
        now: Instant,
    ) -> Result<DriverAction, (OnReply, Failure)> {
        let mut state = self.state.lock();
        if let Some(failed) = &state.failed_connect {
            if now < failed.retry_at {
                return Err((pending.on_reply, failed.failure.clone()));
            }
            state.failed_connect = None;
        }
        if self.pending.load(Ordering::Relaxed) >= self.max_pending {
            return Err((pending.on_reply, Failure::Overloaded));
        }
        match state.ensure_driver() {
            Ok(action) => {
                if self.pending.fetch_add(1, Ordering::Relaxed) == 0 {
                    state.replied(now);
                }
                state.commands.push_back(pending);
                Ok(action)
            }
            Err(failure) => Err((pending.on_reply, failure)),
        }
    }

    /// Requests a connection.
    pub(super) fn request_open(&self, opener: Opener) -> Result<DriverAction, Failure> {
        let mut state = self.state.lock();
        let action = state.ensure_driver()?;
        state.openers.push(opener);
        Ok(action)
    }

    /// Whether the server is connected and has replied within `max_silence`, if commands are pending.
    pub(super) fn is_replying(&self, now: Instant, max_silence: Duration) -> bool {
        let is_idle = self.pending.load(Ordering::Relaxed) == 0;
        self.silence(now).is_some_and(|silence| is_idle || silence < max_silence)
    }

    /// Returns the time since the server last replied, or had nothing to reply to. `None` without a connection.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        self.state.lock().silent_since.map(|since| now.saturating_duration_since(since))
    }

    /// Finishes a command. Decrements the count first, because the callback may send the next command.
    pub(super) fn finish(&self, on_reply: OnReply, reply: Result<Reply, Failure>) {
        self.pending.fetch_sub(1, Ordering::Relaxed);
        on_reply(reply);
    }

    /// Closes the connection after all replies in flight. Returns the waker of a sleeping driver.
    pub(super) fn retire_connection(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        state.is_retiring = true;
        state.sleeping_driver()
    }

    /// Called when the last handle is dropped.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let waker = state.sleeping_driver();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Used by the driver.
impl CommandQueue {
    /// The driver runs, so handles need not wake it.
    pub(super) fn driver_awake(&self) {
        self.state.lock().driver = DriverState::Awake;
    }

    /// Returns what the driver does next. The check for commands and the switch to sleep happen under one
    /// lock, so that no command is missed.
    pub(super) fn after_turn(&self, waker: &Waker, can_take: bool) -> AfterTurn {
        let mut state = self.state.lock();
        if can_take && state.needs_connection() {
            return AfterTurn::Again;
        }
        let is_done = state.openers.is_empty() && self.pending.load(Ordering::Relaxed) == 0;
        if state.is_closed && is_done {
            return AfterTurn::Stop;
        }
        state.driver = DriverState::Asleep(waker.clone());
        AfterTurn::Sleep
    }

    /// Whether commands or openers wait for a connection.
    pub(super) fn needs_connection(&self) -> bool {
        self.state.lock().needs_connection()
    }

    /// Appends all queued commands to `unsent`. Returns the callers that wait only for the connection.
    pub(super) fn take(&self, unsent: &mut VecDeque<Pending>) -> Vec<Opener> {
        let mut state = self.state.lock();
        unsent.append(&mut state.commands);
        mem::take(&mut state.openers)
    }

    /// Returns unsent commands to the front of the queue.
    pub(super) fn put_back(&self, unsent: VecDeque<Pending>) {
        let mut state = self.state.lock();
        let newer = mem::replace(&mut state.commands, unsent);
        state.commands.extend(newer);
    }

    pub(super) fn oldest_deadline(&self) -> Option<Instant> {
        self.state.lock().commands.front().map(|pending| pending.deadline)
    }

    /// Removes the commands whose deadline has passed.
    pub(super) fn remove_expired(&self, now: Instant) -> Vec<Pending> {
        let mut state = self.state.lock();
        let count = state.commands.iter().take_while(|pending| pending.deadline <= now).count();
        state.commands.drain(..count).collect()
    }

    /// A connection attempt has succeeded.
    pub(super) fn connected(&self) {
        let mut state = self.state.lock();
        (state.failed_connect, state.is_retiring) = (None, false);
        state.silent_since = Some(Instant::now());
    }

    /// The connection is closed.
    pub(super) fn disconnected(&self) {
        self.state.lock().silent_since = None;
    }

    /// The server has sent a reply.
    pub(super) fn replied(&self) {
        self.state.lock().replied(Instant::now());
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.state.lock().is_retiring
    }

    /// A connection attempt has failed. Fails all queued commands, and new ones for [`RECONNECT_DELAY`].
    pub(super) fn connect_failed(&self, failure: &Failure) {
        let mut state = self.state.lock();
        let retry_at = Instant::now() + RECONNECT_DELAY;
        state.failed_connect = Some(FailedConnect { retry_at, failure: failure.clone() });
        self.fail_all(state, failure);
    }

    /// The driver has stopped, regularly or because its runtime shuts down.
    pub(super) fn driver_stopped(&self, failure: &Failure) {
        let mut state = self.state.lock();
        state.driver = DriverState::Absent;
        self.fail_all(state, failure);
    }

    fn fail_all(&self, mut state: MutexGuard<'_, State>, failure: &Failure) {
        let (commands, openers) = (mem::take(&mut state.commands), mem::take(&mut state.openers));
        drop(state);
        for opener in openers {
            // The caller may no longer wait.
            let _ = opener.send(Err(failure.clone()));
        }
        for pending in commands {
            self.finish(pending.on_reply, Err(failure.clone()));
        }
    }
}

#[cfg(tollgate_model)]
impl CommandQueue {
    /// Returns the number of commands that are queued or in flight.
    pub(super) fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }
}

impl State {
    /// The server has replied, or has had nothing to reply to until now.
    fn replied(&mut self, now: Instant) {
        if let Some(since) = &mut self.silent_since {
            *since = now;
        }
    }

    fn needs_connection(&self) -> bool {
        !self.commands.is_empty() || !self.openers.is_empty()
    }

    fn sleeping_driver(&self) -> Option<Waker> {
        match &self.driver {
            DriverState::Asleep(waker) => Some(waker.clone()),
            DriverState::Absent | DriverState::Awake => None,
        }
    }

    /// Returns the action that makes a driver process the queue.
    fn ensure_driver(&mut self) -> Result<DriverAction, Failure> {
        let action = match mem::replace(&mut self.driver, DriverState::Awake) {
            DriverState::Awake => DriverAction::None,
            DriverState::Asleep(waker) => DriverAction::Wake(waker),
            DriverState::Absent => match Handle::try_current() {
                Ok(runtime) => DriverAction::Spawn(runtime),
                Err(_) => {
                    self.driver = DriverState::Absent;
                    return Err(Failure::no_runtime());
                }
            },
        };
        Ok(action)
    }
}
