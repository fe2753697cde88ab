//! The load: every connection asks again as soon as it is answered.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::connection::Connection;
use super::course::Course;
use super::request::Request;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;

/// Nobody answers for so long who is alive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does what the task says.
///
/// # Errors
/// An answer that does not let its request pass, a connection lost, or no answer at all.
pub fn run(task: &Task) -> Outcome<Sample> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    let request = Request::post(&task.ask.path, &task.ask.body);
    for number in 0..task.connections as usize {
        let token = Token(number);
        let connection = Connection::open(task.address, request.clone(), poll.registry(), token)?;
        connections.push(connection);
    }
    let mut course = Course::new(task)?;
    let mut under_way = 0;
    for connection in &mut connections {
        under_way += u32::from(go_on(connection, &mut course, Instant::now())?);
    }
    let mut events = Events::with_capacity(connections.len());
    while under_way > 0 {
        poll.poll(&mut events, Some(PATIENCE))?;
        if events.is_empty() {
            return Err(format!("no answer for {} s", PATIENCE.as_secs()).into());
        }
        for event in &events {
            let Token(number) = event.token();
            let connection = connections.get_mut(number).ok_or("an event of nobody")?;
            let Some(received) = connection.receive()? else { continue };
            let now = Instant::now();
            course.answered(received, now);
            under_way -= u32::from(!go_on(connection, &mut course, now)?);
        }
    }
    course.finish(Instant::now())
}

/// Sends the next request, if there is one.
fn go_on(connection: &mut Connection, course: &mut Course, now: Instant) -> Outcome<bool> {
    let Some(numbers) = course.next(now)? else { return Ok(false) };
    connection.send(numbers, now)?;
    Ok(true)
}
