//! Slots taken, renewed and released during an outage.

use tollgate::{Permit, PermitId};

use super::*;

fn exports() -> Limit {
    Limit::concurrency(4, Duration::from_secs(60)).unwrap()
}

fn hold<S: Store>(store: &S, limit: &Limit) -> Option<Permit> {
    let subject = Subject::of(["k"]);
    let plan = one(&subject, limit).with_permit(PermitId::random());
    let decision = take(store, &plan);
    Permit::of(&plan, &decision)
}

#[test]
fn slot_taken_in_an_outage_is_released_on_its_node() {
    let (fleet, limit) = (Fleet::of(2), exports());
    fleet.lose();
    let node = &fleet.nodes[0];
    let permits: Vec<Permit> = (0..9).filter_map(|_| hold(node, &limit)).collect();
    assert_eq!(permits.len(), 2, "the share of one of two nodes");
    assert!(block_on(node.release(&permits[0])).unwrap());
    let again = hold(node, &limit).unwrap();
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 2);
    // Permits of the outage stay valid after it.
    assert!(block_on(node.release(&permits[1])).unwrap());
    assert!(block_on(node.release(&again)).unwrap());
    assert_eq!(fleet.counted(&limit), 0);
    assert!(!block_on(node.release(&again)).unwrap());
}

#[test]
fn slot_in_the_store_cannot_be_released_in_an_outage() {
    let (fleet, limit) = (Fleet::of(1), exports());
    let permit = hold(&fleet.nodes[0], &limit).unwrap();
    fleet.lose();
    assert!(block_on(fleet.nodes[0].release(&permit)).is_err());
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 1);
    assert!(block_on(fleet.nodes[0].release(&permit)).unwrap());
    assert_eq!(fleet.counted(&limit), 0);
}

#[test]
fn renew_works_with_and_without_the_store() {
    let (fleet, limit) = (Fleet::of(1), exports());
    fleet.lose();
    let node = &fleet.nodes[0];
    let permit = hold(node, &limit).unwrap();
    fleet.wait(40);
    let until = block_on(node.renew(&permit)).unwrap().unwrap();
    fleet.wait(40);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 1, "until {until:?}");
    assert!(block_on(node.renew(&permit)).unwrap().unwrap() > until);
    fleet.wait(59);
    assert_eq!(fleet.counted(&limit), 1);
    fleet.wait(1);
    assert_eq!(fleet.counted(&limit), 0);
    assert_eq!(block_on(node.renew(&permit)).unwrap(), None);
}
