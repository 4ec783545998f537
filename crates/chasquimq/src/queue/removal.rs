//! The removal of families that are too great for one script call: their parent, its children and theirs, in steps of which each blocks the
//! server for a few milliseconds and leaves whole queues behind. Parents go before their children: of a removal that ends half-way, jobs
//! are left that nothing waits for. What a worker takes meanwhile stays.

use std::collections::{HashMap, HashSet};

use super::{read_code, Queue};
use crate::{
    active::{Active, Whose},
    error::Result,
    flows::children::split,
    job::msgpack::Packer,
    keys::qualified_name,
    redis::call::{
        library::{args, LIST_CHILDREN, REMOVE_CHILDREN, REMOVE_DESCENDANTS, REMOVE_JOB},
        reply::Reply,
    },
};

/// What `remove_job` and `remove_children` answer of a great family.
const TOO_MANY: i64 = 2;
/// Children that one step removes, and ids that one command asks for.
const DESCENDANTS_A_STEP: usize = 100;
const IDS_A_CALL: usize = 1000;

/// A job with children: its queue's base, and its id.
type Place = (String, String);

/// A child of a family, which stands behind its parent.
struct Descendant {
    /// Index of its parent; `None`: the head of the family.
    parent: Option<usize>,
    key: String,
    /// The head waits for it, directly or not.
    waited_for: bool,
    /// Where it is, if it has children of its own.
    place: Option<Place>,
}

/// All that a job has below it.
struct Family {
    head: Place,
    descendants: Vec<Descendant>,
}

impl Family {
    fn place(&self, at: Option<usize>) -> Option<&Place> {
        at.map_or(Some(&self.head), |at| self.descendants[at].place.as_ref())
    }
}

impl Queue {
    /// Removes a job, and with `children` all of those it has or had, and theirs. False, and nothing is removed, when a worker holds it
    /// or, with `children`, one that it waits for; true also when there is no such job. A family of more than 100 goes in steps.
    /// # Errors
    /// [`crate::Error::OfScheduler`].
    pub async fn remove(&self, now_ms: u64, id: &str, children: bool) -> Result<bool> {
        match self.remove_at_once(now_ms, id, children).await? {
            TOO_MANY => {}
            code => return Ok(code == 1),
        }
        let family = self.family(id, true).await?;
        if self.is_held(&family).await? || self.remove_at_once(now_ms, id, false).await? != 1 {
            return Ok(false);
        }
        self.remove_descendants(now_ms, &family, true).await?;
        Ok(true)
    }

    async fn remove_at_once(&self, now_ms: u64, id: &str, children: bool) -> Result<i64> {
        let reply = self.run_once(&REMOVE_JOB, now_ms, &args![id, children]).await?;
        read_code(&REMOVE_JOB, &reply, id, "", "removeJob")
    }

    /// Removes what a job waits for, directly or not, but for what a worker holds and what has failed. More than 100 go in steps.
    pub async fn remove_pending_children(&self, now_ms: u64, id: &str) -> Result<()> {
        if self.int_once(&REMOVE_CHILDREN, now_ms, &args![id]).await? == TOO_MANY {
            let family = self.family(id, false).await?;
            self.remove_descendants(now_ms, &family, false).await?;
        }
        Ok(())
    }

    /// Those that these jobs wait for, directly or not, parents first: the base of the queue of the parent of each, the parent's id, and its own key.
    pub(super) async fn waited_for(&self, ids: &[&str]) -> Result<Vec<[String; 3]>> {
        let mut below = Vec::new();
        for (id, is_parent) in ids.iter().zip(self.are_parents(&self.keys().base, ids).await?) {
            if is_parent {
                let family = self.family(id, false).await?;
                below.extend(family.descendants.iter().map(|one| {
                    let (base, id) = family.place(one.parent).unwrap_or(&family.head);
                    [base.clone(), id.clone(), one.key.clone()]
                }));
            }
        }
        Ok(below)
    }

    /// Everybody below a job; without `ended` only what is waited for.
    async fn family(&self, id: &str, ended: bool) -> Result<Family> {
        let mut family = Family {
            head: (self.keys().base.clone(), id.to_owned()),
            descendants: Vec::new(),
        };
        let mut seen = HashSet::from([family.head.clone()]);
        let mut parents = vec![None];
        while let Some(parent) = parents.pop() {
            let from = family.descendants.len();
            self.list_children(&mut family, parent, ended).await?;
            self.find_parents(&mut family.descendants[from..]).await?;
            for at in from..family.descendants.len() {
                let place = family.descendants[at].place.clone();
                // a job may have been made a child of its own
                if place.is_some_and(|place| seen.insert(place)) {
                    parents.push(Some(at));
                }
            }
        }
        Ok(family)
    }

    /// Adds the children of one of a family.
    async fn list_children(&self, family: &mut Family, parent: Option<usize>, ended: bool) -> Result<()> {
        let Some((base, id)) = family.place(parent).cloned() else {
            return Ok(());
        };
        let parent_is_waited_for = parent.is_none_or(|at| family.descendants[at].waited_for);
        let connection = self.connection().for_keys(&base);
        let (mut kind, mut cursor) = (1, b"0".to_vec());
        let mut seen = HashSet::new();
        while kind != 0 {
            let args = args![id.as_str(), ended, kind, cursor.as_slice()];
            let mut reply = LIST_CHILDREN.ask(&connection, &base, &args).await?;
            (kind, cursor) = (reply.int()?, reply.bytes()?);
            for is_pending in [true, false] {
                let mut part = reply.array()?;
                let (ranges, keys) = (part.array()?.texts()?, part.array()?.texts()?);
                for key in ranges.iter().flat_map(|range| keys_in_range(range)).chain(keys) {
                    if seen.insert(key.clone()) {
                        family.descendants.push(Descendant {
                            parent,
                            key,
                            waited_for: is_pending && parent_is_waited_for,
                            place: None,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes where those are that have children of their own.
    async fn find_parents(&self, descendants: &mut [Descendant]) -> Result<()> {
        let mut asked: HashMap<String, Vec<(usize, String)>> = HashMap::new();
        for (at, one) in descendants.iter().enumerate() {
            // ids of three parts may be custom ones, and a prefix may have parts as well
            for (keys, id) in [split(&one.key, 1), split(&one.key, 3)].into_iter().flatten() {
                asked.entry(keys.base).or_default().push((at, id));
            }
        }
        for (base, asked) in asked {
            let (places, ids): (Vec<usize>, Vec<String>) = asked.into_iter().unzip();
            let are_parents = self.are_parents(&base, &ids).await?;
            for ((at, id), is_parent) in places.into_iter().zip(ids).zip(are_parents) {
                if is_parent {
                    descendants[at].place = Some((base.clone(), id));
                }
            }
        }
        Ok(())
    }

    /// Which of the jobs of a queue have children of their own.
    async fn are_parents(&self, base: &str, ids: &[impl AsRef<str>]) -> Result<Vec<bool>> {
        let connection = self.connection().for_keys(base);
        let mut are_parents = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_A_CALL) {
            let mut command = redis::cmd("SMISMEMBER");
            command.arg(format!("{base}parents"));
            for id in some {
                command.arg(id.as_ref());
            }
            let mut found = Reply::new("the answer to SMISMEMBER", connection.send(&command).await?)?;
            for _ in some {
                are_parents.push(found.int()? == 1);
            }
        }
        Ok(are_parents)
    }

    /// Whether a worker holds one that the head waits for, directly or not.
    async fn is_held(&self, family: &Family) -> Result<bool> {
        let waited_for: HashSet<&str> = family
            .descendants
            .iter()
            .filter(|one| one.waited_for)
            .map(|one| one.key.as_str())
            .collect();
        let places = waited_for.iter().flat_map(|key| [split(key, 1), split(key, 3)]);
        let bases: HashSet<String> = places.flatten().map(|(keys, _)| keys.base).collect();
        for base in bases {
            let front = qualified_name(&base);
            let connection = self.connection().for_keys(&base);
            for id in Active::find(&connection, &base, Whose::Holders).await? {
                if waited_for.contains(format!("{front}:{id}").as_str()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Removes those below the head, parents first. What is below one that stays stays.
    async fn remove_descendants(&self, now_ms: u64, family: &Family, ended: bool) -> Result<()> {
        let mut stays = vec![false; family.descendants.len()];
        let mut step = Vec::with_capacity(DESCENDANTS_A_STEP);
        for at in 0..family.descendants.len() {
            stays[at] = family.descendants[at].parent.is_some_and(|parent| stays[parent]);
            if !stays[at] {
                step.push(at);
            }
            if step.len() == DESCENDANTS_A_STEP || at + 1 == family.descendants.len() {
                self.remove_step(now_ms, family, &step, ended, &mut stays).await?;
                step.clear();
            }
        }
        Ok(())
    }

    async fn remove_step(
        &self,
        now_ms: u64,
        family: &Family,
        step: &[usize],
        ended: bool,
        stays: &mut [bool],
    ) -> Result<()> {
        let mut packed = Packer::default();
        packed.array(3 * step.len());
        for at in step {
            let one = &family.descendants[*at];
            let (base, id) = family.place(one.parent).unwrap_or(&family.head);
            packed.str(base).str(id).str(&one.key);
        }
        // of an answer that is lost nothing is left to tell which of them went, and what is below those is to go as well
        let reply = self
            .run_once(&REMOVE_DESCENDANTS, now_ms, &args![ended, &packed])
            .await?;
        let mut reply = Reply::new("the answer to remove_descendants", reply)?;
        for at in step {
            stays[*at] = reply.int()? == 0;
        }
        Ok(())
    }
}

/// The children of a sibling range (`lua/jobs/sibling_ranges.lua`); none of what another program wrote there.
fn keys_in_range(range: &str) -> Vec<String> {
    let parts = range.split_once('+').and_then(|(first, rest)| {
        let (count, front) = rest.split_once(' ')?;
        Some((first.parse::<u64>().ok()?, count.parse::<u64>().ok()?, front))
    });
    let Some((first, count, front)) = parts else {
        return Vec::new();
    };
    (first..first.saturating_add(count.min(64)))
        .map(|number| format!("{front}{number:012x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_its_children() {
        assert_eq!(
            keys_in_range("15+2 bull:q:u-"),
            ["bull:q:u-00000000000f", "bull:q:u-000000000010"]
        );
        for odd in ["", "x", "1+2", "a+2 q", "1+a q"] {
            assert!(keys_in_range(odd).is_empty());
        }
    }
}
