mod cuts;
mod demoted;
mod faults;
mod flush;
mod shared_connection;

use tokio::sync::{mpsc, oneshot};

use super::Link;
use crate::failure::Failure;
use crate::resp::{Command, Reply};

fn echo(number: u64) -> Command {
    Command::new("ECHO").number(number)
}

/// What `echo` is answered.
fn bulk(number: u64) -> Result<Reply, Failure> {
    Ok(Reply::Bulk(number.to_string().into_bytes()))
}

/// Sends all of them at once. What each was told, which must be one thing each.
async fn send_all(
    link: &Link,
    commands: impl IntoIterator<Item = Command>,
) -> Vec<Result<Reply, Failure>> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut told = Vec::new();
    for (index, command) in commands.into_iter().enumerate() {
        let sender = sender.clone();
        told.push(Vec::new());
        link.send(command, Box::new(move |outcome| sender.send((index, outcome)).unwrap()));
    }
    drop(sender);
    // Ends when no `then` is left that could be called.
    while let Some((index, outcome)) = receiver.recv().await {
        told[index].push(outcome);
    }
    assert!(told.iter().all(|told| told.len() == 1), "{told:?}");
    told.into_iter().flatten().collect()
}

/// Waits until there is a connection, and sends nothing on it.
async fn connected(link: &Link) {
    let (sender, receiver) = oneshot::channel();
    let next = link.inner.shared.want_open(Box::new(|info| drop(sender.send(info)))).unwrap();
    link.go_on(next);
    receiver.await.unwrap().unwrap();
}
