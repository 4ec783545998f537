//! delayed -> waiting, many at once

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn nothing_is_delayed() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.skip_events();
    let keys = queue.show();
    assert_eq!(run!(queue, PROMOTE_JOBS, 1001, 10), "[0 0]");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn those_due_first_wait_first() {
    let mut queue = TestQueue::with(
        Plan::new()
            .delayed("x", 9000)
            .delayed("y", 8000)
            .delayed("z", 9500)
            .frame(1),
    );
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    assert_eq!(run!(queue, PROMOTE_JOBS, 1001, 2), "[2 1]");
    queue.keys_are(
        "delayed: z@9500+0
         jobs: x=[7 {} a 1] y=[7 {} a 1] z=[7 {} a 1]
         log: 4-1 4-r1(y x)
         state: id=4 waiting=3 references=1
         wake: set",
    );
    queue.events_are("[X waiting [y x] prev delayed]");
    assert_eq!(run!(queue, PROMOTE_JOBS, 1002, 2), "[1 0]");
}
