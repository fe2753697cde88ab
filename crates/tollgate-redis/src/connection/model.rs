//! Connections to the server of a model.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{DuplexStream, duplex};

use super::{Connection, Transport};
use crate::resp::Decoder;

/// Bytes in transit: less than a call, so that a call is sent in parts.
const BUFFER: usize = 256;

thread_local! {
    /// The listener of the run. All threads of a run are in one thread of the system.
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Accepts the connections of a run.
#[derive(Clone, Default)]
pub(crate) struct Listener(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The server's ends of new connections.
    accepted: VecDeque<DuplexStream>,
    is_closed: bool,
    /// The task that accepts them.
    waker: Option<Waker>,
}

impl Transport for DuplexStream {}

impl Listener {
    /// Begins to listen, in place of an earlier listener.
    pub(crate) fn new() -> Self {
        let listener = Self::default();
        LISTENER.set(Some(listener.clone()));
        listener
    }

    /// Waits for the next connection. Returns the server's end of it; `None` after [`close`](Self::close).
    pub(crate) async fn accept(&self) -> Option<DuplexStream> {
        poll_fn(|context| {
            let mut state = self.0.lock();
            state.waker = Some(context.waker().clone());
            match state.accepted.pop_front() {
                None if !state.is_closed => Poll::Pending,
                accepted => Poll::Ready(accepted),
            }
        })
        .await
    }

    pub(crate) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// Connects to the server of the run; `None` if there is none.
pub(super) fn connect() -> Option<Connection> {
    let listener = LISTENER.with_borrow(Clone::clone)?;
    let (client, server) = duplex(BUFFER);
    listener.change(|state| state.accepted.push_back(server));
    Some(Connection { stream: Box::new(client), decoder: Decoder::default(), info: None })
}
