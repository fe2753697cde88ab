//! A server that has become a replica is left, and what it was asked is not asked again.

use super::{bulk, echo};
use crate::fixtures::{Peer, Step, patient, say};
use crate::link::Link;

/// Up to Redis 6 what fails within a script is told in the middle of a sentence.
const WITHIN_A_SCRIPT: &str = "-ERR Error running script (call to f_8c): @user_script:1: @user_script: 1: \
                               -READONLY You can't write against a read only replica.\r\n";

#[tokio::test]
async fn a_server_that_says_it_is_a_replica_is_left() {
    for told in ["-READONLY You can't write against a read only replica.\r\n", WITHIN_A_SCRIPT] {
        // Whoever went on asking it would never be answered.
        let demoted = vec![Step::Greet, Step::Expect(1), say(told), Step::Hang];
        let next = vec![Step::Greet, Step::Expect(1), say("$1\r\n2\r\n"), Step::Hang];
        let peer = Peer::start(vec![demoted, next]).await;
        let link = Link::new(peer.address(), patient());
        let refused = link.ask(echo(1)).await.unwrap_err();
        assert!(refused.to_string().contains("is a read-only replica"), "{refused}");
        assert_eq!(link.ask(echo(2)).await, bulk(2));
        assert_eq!(
            (peer.commands(), peer.connections()),
            (vec!["ECHO 1".to_owned(), "ECHO 2".to_owned()], 2)
        );
    }
}
