//! A link leaves a server that has become a replica, and does not resend commands.

use super::{bulk, echo};
use crate::fixtures::{Peer, Step, long_timeouts, send};
use crate::link::Link;

/// Up to Redis 6, the error of a script contains the code in the middle.
const WITHIN_A_SCRIPT: &str = "-ERR Error running script (call to f_8c): @user_script:1: @user_script: 1: \
                               -READONLY You can't write against a read only replica.\r\n";

#[tokio::test]
async fn link_leaves_a_server_that_became_a_replica() {
    for results in ["-READONLY You can't write against a read only replica.\r\n", WITHIN_A_SCRIPT] {
        // Another command on this connection would get no reply.
        let demoted = vec![Step::Handshake, Step::Expect(1), send(results), Step::Hang];
        let next = vec![Step::Handshake, Step::Expect(1), send("$1\r\n2\r\n"), Step::Hang];
        let peer = Peer::start(vec![demoted, next]).await;
        let link = Link::new(peer.address(), long_timeouts());
        let refused = link.request(echo(1)).await.unwrap_err();
        assert!(refused.to_string().contains("is a read-only replica"), "{refused}");
        assert_eq!(link.request(echo(2)).await, bulk(2));
        assert_eq!(
            (peer.commands(), peer.connections()),
            (vec!["ECHO 1".to_owned(), "ECHO 2".to_owned()], 2)
        );
    }
}
