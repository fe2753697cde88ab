mod cuts;
mod demoted;
mod faults;
mod flush;
mod large_replies;
mod send_gate;
mod shared_connection;

use tokio::sync::{mpsc, oneshot};

use super::Link;
use crate::failure::Failure;
use crate::resp::{Command, Reply};

fn echo(number: u64) -> Command {
    Command::new("ECHO").number(number)
}

/// The reply to `echo`.
fn bulk(number: u64) -> Result<Reply, Failure> {
    Ok(Reply::Bulk(number.to_string().into_bytes()))
}

/// Sends all commands together. Asserts one result per command.
async fn send_all(
    link: &Link,
    commands: impl IntoIterator<Item = Command>,
) -> Vec<Result<Reply, Failure>> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut results = Vec::new();
    for (index, command) in commands.into_iter().enumerate() {
        let sender = sender.clone();
        results.push(Vec::new());
        link.send(command, Box::new(move |outcome| sender.send((index, outcome)).unwrap()));
    }
    drop(sender);
    // Ends when all callbacks are called or dropped.
    while let Some((index, outcome)) = receiver.recv().await {
        results[index].push(outcome);
    }
    assert!(results.iter().all(|results| results.len() == 1), "{results:?}");
    results.into_iter().flatten().collect()
}

/// Waits for a connection without sending a command.
async fn open(link: &Link) {
    let (sender, receiver) = oneshot::channel();
    let action = link.inner.queue.request_open(sender).unwrap();
    link.perform(action);
    receiver.await.unwrap().unwrap();
}
