//! What an add was answered whose reply was lost.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    tree::Tree,
};

#[test]
fn an_add_that_was_carried_out_is_recalled_as_it_was_answered() {
    let mut queue = TestQueue::fresh();
    let plain = Plan::new().frame(2);
    let answer = queue.add_numbered(1000, 4, &plain);
    assert_eq!(run!(queue, RECALL, "c", 0, 4), answer);
    // what came later has its place
    let named = Plan::new().record("x").frame(1);
    let answer = queue.add_numbered(1000, 5, &named);
    assert_eq!(run!(queue, RECALL, "c", 0, 5), answer);
    let tree = Tree::new().root("r").child_with("r", "a", "{}");
    queue.add_flows_numbered(1000, 1, &tree);
    assert!(run!(queue, RECALL, "f", 0, 1).starts_with('['));
}

#[test]
fn an_add_that_never_came_is_not_known() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run!(queue, RECALL, "c", 0, 1), "nil");
    queue.add_numbered(1000, 1, &Plan::new().frame(1));
    for (client, slot, number) in [("c", 0, 2), ("c", 1, 1), ("d", 0, 1)] {
        assert_eq!(run!(queue, RECALL, client, slot, number), "nil");
    }
    queue.keys_are(
        "log: 1-1
         state: id=1 waiting=1
         wake: set",
    );
}
