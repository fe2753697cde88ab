//! The load generator: each connection sends its next request as soon as it has the response.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::connection::Connection;
use super::request::Request;
use super::run_state::RunState;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;

/// Maximum time without any response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Executes the task.
///
/// # Errors
/// A response does not allow its request, a connection is lost, or responses stop.
pub fn run(task: &Task) -> Outcome<Sample> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    let request = Request::post(&task.requests.path, &task.requests.body);
    for number in 0..task.connections as usize {
        let token = Token(number);
        let connection = Connection::open(task.address, request.clone(), poll.registry(), token)?;
        connections.push(connection);
    }
    let mut run_state = RunState::new(task)?;
    let mut in_flight = 0;
    for connection in &mut connections {
        in_flight += u32::from(send_next(connection, &mut run_state, Instant::now())?);
    }
    let mut events = Events::with_capacity(connections.len());
    while in_flight > 0 {
        poll.poll(&mut events, Some(RESPONSE_TIMEOUT))?;
        if events.is_empty() {
            return Err(format!("no response for {} s", RESPONSE_TIMEOUT.as_secs()).into());
        }
        for event in &events {
            let Token(number) = event.token();
            let connection =
                connections.get_mut(number).ok_or("event for an unknown connection")?;
            let Some(received) = connection.receive()? else { continue };
            let now = Instant::now();
            run_state.record(received, now);
            in_flight -= u32::from(!send_next(connection, &mut run_state, now)?);
        }
    }
    run_state.finish(Instant::now())
}

/// Sends the next request. Returns `false` when the run is over.
fn send_next(connection: &mut Connection, run_state: &mut RunState, now: Instant) -> Outcome<bool> {
    let Some(numbers) = run_state.next(now)? else { return Ok(false) };
    connection.send(numbers, now)?;
    Ok(true)
}
