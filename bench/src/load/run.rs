//! A run of the load generator: each connection sends its next requests as soon as it has all responses.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::codec::Codec;
use super::connection::Connection;
use super::run_state::RunState;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;

/// Maximum time without any response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Executes the task with a codec for each connection.
///
/// # Errors
/// A response does not allow its request, a connection is lost, or responses stop.
pub fn run<C: Codec>(task: &Task, codec: impl Fn() -> Outcome<C>) -> Outcome<Sample> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for number in 0..task.connections as usize {
        let token = Token(number);
        connections.push(Connection::open(task.address, codec()?, poll.registry(), token)?);
    }
    let mut run_state = RunState::new(task)?;
    let mut busy = 0;
    for connection in &mut connections {
        busy += u32::from(send_next(connection, task.in_flight, &mut run_state, Instant::now())?);
    }
    let mut events = Events::with_capacity(connections.len());
    while busy > 0 {
        poll.poll(&mut events, Some(RESPONSE_TIMEOUT))?;
        if events.is_empty() {
            return Err(format!("no response for {} s", RESPONSE_TIMEOUT.as_secs()).into());
        }
        for event in &events {
            let Token(number) = event.token();
            let connection =
                connections.get_mut(number).ok_or("event for an unknown connection")?;
            let received = connection.receive()?;
            if received.responses == 0 {
                continue;
            }
            let now = Instant::now();
            run_state.record(received, now);
            if connection.is_idle() {
                let is_busy = send_next(connection, task.in_flight, &mut run_state, now)?;
                busy -= u32::from(!is_busy);
            }
        }
    }
    run_state.finish(Instant::now())
}

/// Sends the next requests. Returns `false` when the run is over.
fn send_next<C: Codec>(
    connection: &mut Connection<C>,
    in_flight: u32,
    run_state: &mut RunState,
    now: Instant,
) -> Outcome<bool> {
    run_state.update(now)?;
    for _ in 0..in_flight {
        let Some(numbers) = run_state.next() else { break };
        connection.add(numbers)?;
    }
    if connection.is_idle() {
        return Ok(false);
    }
    connection.send(now)?;
    Ok(true)
}
