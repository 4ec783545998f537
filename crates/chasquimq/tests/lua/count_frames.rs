//! how many jobs of taken frames are active

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::Step,
};

fn firsts(numbers: &[i64]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(numbers.len());
    for number in numbers {
        packed.int(*number);
    }
    packed.0
}

#[test]
fn the_active_jobs_of_each_are_counted() {
    let mut queue = TestQueue::with(Plan::new().frame(4).frame(3).frame(2));
    queue.step(Step::by("w").want(7));
    queue.step(Step::by("w").done(5, 3, 1, 1));
    // as they were taken, with one that has left, still waiting, and not there
    assert_eq!(run!(queue, COUNT_FRAMES, firsts(&[1, 5, 8, 99])), "[4 2 0 0]");
    assert_eq!(run!(queue, COUNT_FRAMES, firsts(&[])), "[]");
}
