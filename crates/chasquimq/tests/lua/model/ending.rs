//! How jobs end, in the model: what a worker reports, which of it is refused, what is dropped afterwards.

use std::collections::BTreeSet;

use redis::Value;

use super::{
    drive::{Belief, Drive},
    state::{At, Ending, Keep, State},
};
use crate::given::{
    queue::show_reply,
    step::{Fail, Place, Step},
};

/// A refusal: where the job was, and the codes that are right.
pub type Rejected = (String, Vec<i64>);

impl Drive {
    /// Ends some of the jobs a worker believes it holds. Gives the refusals.
    pub fn end_some(&mut self, owner: &'static str, keep: Keep, step: Step) -> (Step, Vec<Rejected>) {
        let mut ended = Vec::new();
        let mut kept = Vec::new();
        // runs of completed jobs are long when most jobs complete
        let (all, mostly_completed) = (self.random.once_in(2), self.random.once_in(2));
        for belief in self.held.remove(owner).unwrap_or_default() {
            if all || self.random.once_in(2) {
                let ending = self.ending(&belief, mostly_completed);
                ended.push((belief, ending));
            } else {
                kept.push(belief);
            }
        }
        self.held.insert(owner, kept);
        // a worker packs completions first, in the order of the frames
        ended.sort_by_key(|(belief, ending)| match (ending, &belief.place) {
            (Ending::Completed { .. }, Place::Frame(first, _, offset)) => (0, *first, *offset),
            (Ending::Completed { .. }, Place::Record(_)) => (1, 0, 0),
            _ => (2, 0, 0),
        });
        if ended
            .iter()
            .any(|(_, ending)| matches!(ending, Ending::Failed { to: "waiting", .. }))
        {
            self.model.promote_due();
        }
        let step = pack(&ended, step);
        let (mut rejected, mut waiting, mut front, mut latest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut just_ended = BTreeSet::new();
        let mut finished: (u64, u64) = (0, 0);
        for (belief, ending) in &ended {
            let id = &belief.id;
            self.note(format!("  {id} {:?} ends {ending:?}", belief.place));
            if !self.model.is_held_by(id, owner, belief.claim) {
                // that a job was let go is no claim
                if matches!(ending, Ending::LetGo) {
                    continue;
                }
                let codes = match self.model.state(id) {
                    _ if just_ended.contains(id) => vec![-1, -2],
                    Some(State::Active { .. }) => vec![-6],
                    Some(_) => vec![-2],
                    None => vec![-1],
                };
                rejected.push((shown(&belief.place), codes));
                continue;
            }
            just_ended.insert(id.clone());
            match self.model.end(id, ending) {
                Some(("front", At::End)) => latest.push((id.clone(), At::End)),
                Some(("front", at)) => front.push((id.clone(), at)),
                Some(_) => waiting.push(id.clone()),
                None => {}
            }
            match self.model.state(id) {
                Some(State::Completed) if keep.0 != 0 => finished.0 += 1,
                Some(State::Failed) => finished.1 += 1,
                _ => {}
            }
            if keep.0 == 0 && matches!(self.model.state(id), Some(State::Completed | State::Failed)) {
                self.model.remove(id);
            }
        }
        self.model.wait_last(waiting);
        self.model.wait_first(&front);
        self.model.wait_one_by_one(&latest);
        for (state, ended) in [("completed", finished.0), ("failed", finished.1)] {
            if ended > 0 {
                self.expect_drops(state, keep, ended);
            }
        }
        (step, rejected)
    }

    fn ending(&mut self, belief: &Belief, mostly_completed: bool) -> Ending {
        let now_ms = self.model.now_ms;
        match self.random.below(if mostly_completed { 100 } else { 8 }) {
            4.. => Ending::Completed {
                result: if self.random.once_in(3) {
                    format!("\"r{}\"", belief.id)
                } else {
                    String::new()
                },
            },
            0 | 1 => {
                let to = *self.random.pick(&["failed", "delayed", "waiting", "front"]);
                let reason = *self.random.pick(&[Some("boom"), Some("boom"), Some(""), None]);
                Ending::Failed {
                    to,
                    due_ms: now_ms + 1 + self.random.below(20),
                    attempts_made: belief.attempts_made + 1,
                    reason: reason.map(str::to_owned),
                }
            }
            2 if self.random.once_in(3) => Ending::LetGo,
            _ => Ending::Back {
                started: self.random.once_in(2),
            },
        }
    }

    /// Remembers what retention has to drop; which of the jobs that ended in one millisecond go is the script's choice.
    fn expect_drops(&mut self, state: &'static str, keep: Keep, ended: u64) {
        let (by_age, by_count) = self.model.excess(state, keep, ended);
        let finished = self.model.finished(state);
        let oldest_kept = self.model.now_ms as i64 - keep.1 * 1000;
        let expired = finished
            .iter()
            .filter(|id| self.model.finished_on(id) as i64 <= oldest_kept)
            .count();
        // the newest of the expired jobs go first, then the oldest of what is left
        let mut left = finished;
        if by_age > 0 {
            left.drain(expired - by_age..expired);
        }
        left.drain(..by_count);
        self.drops.push((state, left));
    }

    /// Finds out which jobs retention dropped, and whether it had to.
    pub fn drop_finished(&mut self) {
        for (state, left) in std::mem::take(&mut self.drops) {
            let snapshot = self.queue.probe.snapshot();
            let found: BTreeSet<String> = match state {
                "completed" => snapshot.completed().into_iter().collect(),
                _ => snapshot.set(state).iter().map(|(id, _)| id.clone()).collect(),
            };
            let mut before = self.model.finished(state);
            let times = |ids: &[String]| ids.iter().map(|id| self.model.finished_on(id)).collect::<Vec<_>>();
            let expected = times(&left);
            let dropped = before.extract_if(.., |id| !found.contains(id)).collect::<Vec<_>>();
            self.same(
                &format!("{state} {:?}", times(&before)),
                &format!("{state} {expected:?}"),
            );
            for id in dropped {
                self.model.remove(&id);
            }
        }
    }

    /// Compares the refusals of a reply.
    pub fn accept(&mut self, owner: &str, reply: &Value, expected: &[Rejected]) {
        let Value::Array(refusals) = reply else {
            panic!("{reply:?}")
        };
        let found: Vec<(String, i64)> = refusals
            .iter()
            .map(|refusal| {
                let Value::Array(parts) = refusal else {
                    panic!("{refusal:?}")
                };
                let place = format!("{} {}", show_reply(&parts[0]), show_reply(&parts[1]));
                (place, redis::from_redis_value(parts[2].clone()).expect("code"))
            })
            .collect();
        let is_same =
            |((place, code), (expected, codes)): (&(String, i64), &Rejected)| place == expected && codes.contains(code);
        if found.len() != expected.len() || !found.iter().zip(expected).all(is_same) {
            panic!("refused to {owner}: {found:?}, expected {expected:?}");
        }
    }
}

fn shown(place: &Place) -> String {
    match place {
        Place::Frame(first, _, offset) | Place::Child(first, _, offset, _) => format!("{first} {offset}"),
        Place::Record(id) => format!("0 {id}"),
    }
}

/// Completed jobs that lie one behind the other in a frame become one outcome, as a worker packs them.
fn pack(ended: &[(Belief, Ending)], mut step: Step) -> Step {
    let mut at = 0;
    while at < ended.len() {
        let (belief, ending) = &ended[at];
        let mut next = at + 1;
        step = step.of_claim(belief.claim);
        step = match (ending, &belief.place) {
            (Ending::Completed { .. }, Place::Record(_)) => {
                let (mut records, mut claims) = (Vec::new(), Vec::new());
                while let Some((
                    Belief {
                        place: Place::Record(id),
                        claim,
                        ..
                    },
                    Ending::Completed { result },
                )) = ended.get(next - 1)
                {
                    records.push((id.as_str(), result.as_str()));
                    claims.push(*claim);
                    next += 1;
                }
                next -= 1;
                step.done_records_of(&claims, &records)
            }
            (Ending::Completed { result }, Place::Child(..)) => step.done_children(&belief.place, &[result]),
            (Ending::Completed { .. }, Place::Frame(first, n, offset)) => {
                let follows = |i: usize| match ended.get(i) {
                    Some((other, Ending::Completed { .. })) => {
                        other.claim == belief.claim
                            && matches!(other.place, Place::Frame(f, _, o) if f == *first && o == offset + (i - at) as u64)
                    }
                    _ => false,
                };
                while follows(next) {
                    next += 1;
                }
                let results: Vec<&str> = ended[at..next]
                    .iter()
                    .map(|(_, ending)| match ending {
                        Ending::Completed { result } => result.as_str(),
                        _ => "",
                    })
                    .collect();
                step.done_with(*first, *n, *offset, &results)
            }
            (
                Ending::Failed {
                    to,
                    due_ms,
                    attempts_made,
                    reason,
                },
                place,
            ) => step.fail(
                place,
                &Fail {
                    due_ms: *due_ms,
                    attempts_made: u64::from(*attempts_made),
                    reason: reason.clone().unwrap_or_default(),
                    wordless: reason.is_none(),
                    ..Fail::to(to)
                },
            ),
            (Ending::Back { started }, place) => step.back(place, *started),
            (Ending::LetGo, place) => step.let_go(place),
        };
        at = next;
    }
    step
}
