//! Jobs that use keys which have limits (`lua/rules/key_limits.lua`): which of them start, and when the others are due

use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{of, Fail, Step},
};

const HOUR: i64 = 3_600_000;
/// More than a test takes.
const MINUTE: u64 = 60_000;

fn each(ids: &[&str], limits: &[(&str, i64, i64, i64)]) -> Plan {
    ids.iter().fold(Plan::new(), |plan, id| plan.limited(id, limits, ""))
}

impl TestQueue {
    /// The due times of delayed jobs, less this time, in minutes, rounded.
    fn minutes_from(&mut self, now_ms: u64) -> String {
        let set: Vec<(String, f64)> =
            redis::from_redis_value(self.command("ZRANGE", "delayed", &["0", "-1", "WITHSCORES"])).expect("a set");
        let minutes = |score: f64| ((score / 4096.0 - now_ms as f64) / MINUTE as f64).round() as i64;
        let mut all: Vec<(i64, String)> = set.into_iter().map(|(id, score)| (minutes(score), id)).collect();
        all.sort();
        let each: Vec<String> = all.iter().map(|(minutes, id)| format!("{id}+{minutes}")).collect();
        each.join(" ")
    }

    /// What was used of a key in its actual window.
    fn used(&mut self, key: &str) -> f64 {
        self.window(key)[1]
    }

    /// When the actual window of a key is over, and what was used in it.
    fn window(&mut self, key: &str) -> [f64; 2] {
        let raw: Vec<u8> =
            redis::from_redis_value(self.command("GET", &format!("key-limit:{key}"), &[])).expect("a state");
        let number = |at: usize| raw.get(at..at + 8).map(|bytes| bytes.try_into().expect("a number"));
        [0, 8].map(|at| number(at).map_or(0.0, f64::from_le_bytes))
    }

    fn delayed(&mut self) -> usize {
        redis::from_redis_value(self.command("ZCARD", "delayed", &[])).expect("a number")
    }
}

#[test]
fn a_job_without_room_is_delayed_and_uses_none_of_its_other_keys() {
    let mut queue = TestQueue::with(
        Plan::new()
            .limited("a", &[("k", 1, HOUR, 1)], "")
            .limited("b", &[("j", 5, HOUR, 1), ("k", 1, HOUR, 1)], "")
            .limited("c", &[("j", 5, HOUR, 3)], ""),
    );
    queue.skip_events();
    queue.step(Step::by("w").want(3));
    queue.key_is("delayed", "b@3601001+0");
    queue.key_is("state", "cursor=3-r1 id=3 active=2 references=1");
    let [k, j] = [queue.window("k")[0], queue.window("j")[0]];
    let b = "b={d:3600994 kl:[[j 5 3600000 1] [k 1 3600000 1]] kr:1}";
    let expected = format!("a={{kl:[[k 1 3600000 1]] ku:[{k}]}} {b} c={{kl:[[j 5 3600000 3]] ku:[{j}]}}");
    queue.key_is("vitals", &expected);
    assert_eq!([queue.used("k"), queue.used("j")], [1.0, 3.0]);
    let told: Vec<String> = queue
        .told()
        .iter()
        .map(|event| format!("{} {}", event.name, event.fields[0].1))
        .collect();
    assert_eq!(told, ["delayed b", "active a", "active c"]);
}

#[test]
fn those_in_line_are_due_window_after_window_and_who_comes_anew_stands_behind_them() {
    let limits = [("k", 2, HOUR, 1)];
    let mut queue = TestQueue::with(each(&["a", "b", "c", "d", "e"], &limits));
    queue.step(Step::by("w").want(1));
    // that step looked at one, this one at all
    queue.step(Step::by("w").want(9));
    queue.add(1000, each(&["f", "g"], &limits));
    queue.step(Step::by("w").want(9));
    assert_eq!(queue.minutes_from(1000), "c+60 d+60 e+120 f+120 g+180");
    assert_eq!(queue.used("k"), 2.0);
}

#[test]
fn a_step_that_is_sent_again_uses_nothing_more() {
    let mut queue = TestQueue::with(each(&["a", "b", "c"], &[("k", 2, HOUR, 1)]));
    let call = queue.step_call(&Step::by("w").number(7).want(9));
    queue.carry_out(&call);
    let keys = queue.show();
    let again = queue.carry_out(&call);
    assert!(again.contains(" a <") && again.contains(" b <"), "{again}");
    assert_eq!((queue.show(), queue.used("k")), (keys, 2.0));
}

#[test]
fn of_many_that_are_due_at_once_no_more_start_than_there_is_room_for() {
    let mut queue = TestQueue::with(each(&["a", "b", "c", "d", "e"], &[("k", 1, HOUR, 1)]));
    queue.step(Step::by("w").want(9));
    assert_eq!(queue.minutes_from(1000), "b+60 c+120 d+180 e+240");
    // by the clock of the server the window is not over: the caller's is far ahead
    let later = 100 * HOUR as u64;
    queue.step(Step::by("w").at(later).want(9));
    assert_eq!(queue.minutes_from(later), "b+60 c+120 d+180 e+240");
    assert_eq!(queue.used("k"), 1.0);
}

#[test]
fn those_that_come_too_early_go_on_in_the_next_window_or_at_the_end_of_the_line() {
    let mut queue = TestQueue::with(each(&["a", "b", "c", "d", "e"], &[("k", 1, HOUR, 1)]));
    queue.step(Step::by("w").want(9));
    for id in ["c", "d"] {
        run_once!(queue, MOVE_DELAYED, 1010, id, 0);
    }
    queue.step(Step::by("w").want(9));
    assert_eq!(queue.minutes_from(1000), "b+60 c+60 e+240 d+300");
}

#[test]
fn each_try_counts() {
    let mut queue = TestQueue::with(each(&["a"], &[("k", 1, HOUR, 1)]));
    queue.step(Step::by("w").want(1));
    let reply = queue.step(Step::by("w").want(1).fail(&of("a"), &Fail::to("waiting")));
    // the worker is told that it was not late
    assert!(reply.ends_with(" 0 1]"), "{reply}");
    assert_eq!(queue.minutes_from(1000), "a+60");
    queue.key_is("active", "(none)");
}

#[test]
fn a_job_that_is_given_back_unrun_has_used_nothing_and_stands_before_those_in_line() {
    let (k, j) = (("k", 2, HOUR, 1), ("j", 3, HOUR, 3));
    let mut queue = TestQueue::with(each(&["a"], &[k, j]).limited("b", &[k], "").limited("c", &[k], ""));
    queue.step(Step::by("w").want(3));
    assert_eq!([queue.used("k"), queue.used("j")], [2.0, 3.0]);
    queue.step(Step::by("w").back(&of("a"), false));
    // of j no window has begun
    assert_eq!([queue.used("k"), queue.window("j")[0]], [1.0, 0.0]);
    // who comes anew stands behind those in line, also where there is room
    queue.add(1000, each(&["d"], &[k]));
    queue.step(Step::by("v").want(2));
    assert_eq!(queue.minutes_from(1000), "c+60 d+60");
    assert_eq!([queue.used("k"), queue.used("j")], [2.0, 3.0]);
    // a limit that its handler met is no reason: it has started
    queue.step(Step::by("v").back(&of("a"), true));
    assert_eq!([queue.used("k"), queue.used("j")], [2.0, 3.0]);
}

#[test]
fn what_is_given_back_unrun_of_a_window_that_is_over_counts_in_no_other() {
    let mut queue = TestQueue::with(each(&["a"], &[("k", 2, HOUR, 1)]).limited("b", &[("k", 2, 2 * HOUR, 1)], ""));
    queue.step(Step::by("w").want(1));
    // another window begins
    queue.command("DEL", "key-limit:k", &[]);
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").back(&of("a"), false));
    assert_eq!(queue.used("k"), 1.0);
}

#[test]
fn a_group_does_not_count_a_job_that_does_not_start() {
    let none_left = [("k", 1, HOUR, 1)];
    let mut queue = TestQueue::with(
        Plan::new()
            .limited("a", &none_left, "")
            .limited("b", &none_left, "g")
            .limited("c", &[("j", 1, HOUR, 1)], "g"),
    );
    // one job of a group at once, and one start in an hour
    let reply = queue.step(Step::by("w").want(3).group_rules(1, 1, HOUR));
    assert!(reply.contains(" c "), "{reply}");
    assert_eq!(queue.minutes_from(1000), "b+60");
    assert_eq!(
        queue.command("HGET", "group-active", &["g"]),
        Value::BulkString(b"1".to_vec())
    );
    assert_eq!(
        queue.command("GET", "group-starts:g", &[]),
        Value::BulkString(b"1".to_vec())
    );
}

#[test]
fn a_job_of_several_keys_that_found_no_room_again_has_room_held_in_all_of_them() {
    let (a, b) = (("k", 2, HOUR, 1), ("j", 1, HOUR, 1));
    let mut queue = TestQueue::with(each(&["a"], &[b]));
    queue.step(Step::by("w").want(1));
    queue.add(1000, each(&["b"], &[a, b]));
    queue.step(Step::by("w").want(1));
    let later = 100 * HOUR as u64;
    queue.step(Step::by("w").at(later).want(1));
    assert_eq!(queue.minutes_from(later), "b+60");
    // of the two places of k one is free for others
    queue.add(later, each(&["c", "d"], &[a]));
    queue.step(Step::by("w").at(later).want(2));
    assert_eq!(queue.used("k"), 1.0);
    queue.command("DEL", "key-limit:j", &[]);
    queue.step(Step::by("w").at(later + 2 * HOUR as u64).want(1));
    assert_eq!((queue.used("k"), queue.used("j")), (2.0, 1.0));
}

#[test]
fn a_job_that_comes_before_its_time_keeps_what_is_held_for_it() {
    let (k, j) = (("k", 1, HOUR, 1), ("j", 1, HOUR, 1));
    let mut queue = TestQueue::with(each(&["a"], &[j]));
    queue.step(Step::by("w").want(1));
    queue.add(1000, each(&["b"], &[k, j]));
    // by the clock of the server it is early each time
    for hours in [0, 100, 200] {
        let later = 1000 + hours * HOUR as u64;
        queue.step(Step::by("w").at(later).want(1));
        assert_eq!(queue.minutes_from(later), "b+60");
    }
    queue.command("DEL", "key-limit:j", &[]);
    queue.step(Step::by("w").at(300 * HOUR as u64).want(1));
    assert_eq!([queue.used("k"), queue.used("j")], [1.0, 1.0]);
}

#[test]
fn a_window_may_last_for_ever() {
    let limits = [("k", 1, 1 << 53, 1)];
    let mut queue = TestQueue::with(each(&["a", "b", "c"], &limits));
    queue.step(Step::by("w").want(9));
    assert_eq!((queue.delayed(), queue.used("k")), (2, 1.0));
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("waiting")));
    for at in [1000, 1 << 60] {
        queue.step(Step::by("w").at(at).want(9));
        assert_eq!((queue.delayed(), queue.used("k")), (3, 1.0));
    }
}

#[test]
fn a_line_ends_before_jobs_that_were_removed() {
    let limits = [("k", 1, HOUR, 1)];
    let mut queue = TestQueue::with(each(&["a", "b", "c", "d"], &limits));
    queue.step(Step::by("w").want(9));
    for id in ["c", "d"] {
        run_once!(queue, REMOVE_JOB, 1010, id, 0);
    }
    queue.add(1000, each(&["e"], &limits));
    queue.step(Step::by("w").want(1));
    assert_eq!(queue.minutes_from(1000), "b+60 e+120");
}

#[test]
fn no_job_that_uses_keys_is_taken_in_advance() {
    let mut queue = TestQueue::with(each(&["a", "b"], &[("k", 9, HOUR, 1)]));
    queue.command("ZADD", "wake", &["0", "0"]);
    queue.step(Step::by("w").want(1).surplus(8));
    queue.key_is("state", "cursor=2-r1 id=2 waiting=1 active=1 references=1");
}

#[test]
fn a_step_looks_at_so_many_keys_and_leaves_the_rest() {
    let mut plan = Plan::new();
    for _ in 0..1000 {
        plan = plan.limited("", &[("k", 1, HOUR, 1)], "");
    }
    let mut queue = TestQueue::with(plan);
    let mut seen = Vec::new();
    for _ in 0..4 {
        queue.step(Step::by("w").want(9));
        seen.push(queue.delayed());
    }
    assert!(seen[1] < 500 && seen[3] == 999, "{seen:?}");
}
