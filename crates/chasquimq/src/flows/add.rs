//! Adds trees of jobs, and changes what parents wait for.

use std::collections::HashMap;

use redis::Value;

use super::{
    node::{FlowNode, NodeParent},
    plan::PlanBuilder,
};
use crate::{
    add::producer::{read_full, read_group_full},
    error::{Error, Result},
    keys::{qualified_name, slot_of, Keys},
    queue::{read_code, Queue},
    redis::call::{
        library::{args, Arg, ADD_FLOWS, MOVE_TO_WAITING_CHILDREN, REMOVE_DEPENDENCY},
        reply::Reply,
    },
};

/// Trees of jobs as the script takes them, ready to be sent.
#[derive(Debug)]
pub struct Flows {
    now_ms: u64,
    base: String,
    // of its queues, and of parents that exist
    bases: Vec<String>,
    plan: Vec<u8>,
    bodies: Vec<Vec<u8>>,
    // what the script is given in a place: this job, or a frame of children from it on
    places: Vec<usize>,
    // of the jobs that may be refused because of their parents, as users see these
    parent_keys: HashMap<usize, String>,
    named_by: Vec<String>,
    frames: Vec<(usize, u32)>,
}

/// What became of the jobs of flows.
#[derive(Debug)]
pub struct AddedFlows {
    /// Those whose id is not the one that was sent.
    pub exceptions: Vec<FlowException>,
    /// What the ids that the engine made for children begin with, in each of the queues ([`crate::job::frame::child_id`]).
    pub named_by: Vec<String>,
    /// Of these children, in order.
    pub named: Vec<NamedChildren>,
}

/// Children whose ids the engine made, with numbers that follow one another.
#[derive(Debug)]
pub struct NamedChildren {
    /// Index of their queue.
    pub queue: usize,
    /// The number of the first.
    pub first: u64,
    /// How many there are.
    pub count: u32,
}

/// What became of a job whose id is not the one that was sent.
#[derive(Debug)]
pub struct FlowException {
    /// Its index.
    pub index: usize,
    /// Its id, or why it was not added.
    pub id: Result<String>,
}

impl Flows {
    /// Packs jobs, each behind its parent. `now_ms` is the caller's clock.
    /// # Errors
    /// [`Error::Invalid`] when there are none, a parent stands behind its child, or has no id, or a child has a deduplication id.
    pub fn pack(now_ms: u64, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Result<Self> {
        let base = nodes.first().and_then(|node| queues.get(node.queue));
        let base = base
            .ok_or_else(|| Error::Invalid("a flow without jobs".into()))?
            .base
            .clone();
        let mut builder = PlanBuilder::new(now_ms, queues, nodes);
        for (index, node) in nodes.iter().enumerate() {
            let is_lost = |parent: usize| parent >= index || nodes[parent].id.is_empty();
            if matches!(node.parent, NodeParent::Node(parent) if is_lost(parent)) || node.queue >= queues.len() {
                return Err(Error::Invalid(format!("job {index} of a flow has no place in it")));
            }
            if node.parent != NodeParent::None && node.options.deduplication.is_some() {
                let text = "Deduplication and parent options cannot be used together";
                return Err(Error::Invalid(text.into()));
            }
            if !builder.push_framed(index, nodes, queues) {
                builder.close_frame();
                builder.push(index, nodes, queues);
            }
        }
        builder.close_frame();
        Ok(Self {
            now_ms,
            base,
            plan: builder.plan(queues, nodes),
            bases: builder.bases,
            bodies: builder.bodies,
            places: builder.places,
            parent_keys: builder.parent_keys,
            named_by: builder.named_by,
            frames: builder.frames,
        })
    }

    /// What the script is given of these jobs: its plan, and their bodies.
    pub fn packed(&self) -> (&[u8], &[Vec<u8>]) {
        (&self.plan, &self.bodies)
    }

    /// # Errors
    /// [`Error::Invalid`] when no single node of a cluster has all of it.
    fn check_slot(&self) -> Result<()> {
        let slot = slot_of(&self.base);
        match self.bases.iter().find(|base| slot_of(base) != slot) {
            None => Ok(()),
            Some(other) => Err(Error::Invalid(format!(
                "CROSSSLOT The jobs of a flow, and flows that are added together, must lie in one hash slot of the cluster, and {} does \
                 not lie where {} does: give their queues a prefix with a hash tag, such as {{bull}}",
                qualified_name(other),
                qualified_name(&self.base)
            ))),
        }
    }

    fn read_full(&self, reply: &mut Reply) -> Result<Error> {
        let base = reply.numbers().last().and_then(|index| self.bases.get(index as usize));
        reply.int()?;
        read_full(reply, qualified_name(base.unwrap_or(&self.base)))
    }

    fn read(&self, reply: Value) -> Result<AddedFlows> {
        let mut reply = Reply::new("the answer to add_flows", reply)?;
        let first = reply.numbers().next();
        match first {
            Some(-12) => return Err(self.read_full(&mut reply)?),
            Some(-13) => {
                reply.int()?;
                return Err(read_group_full(&mut reply)?);
            }
            _ => {}
        }
        let (mut flat, mut firsts) = (reply.array()?, reply.array()?);
        let mut exceptions = Vec::new();
        while !flat.is_empty() {
            let place = flat.int()? as usize;
            let index = self.places.get(place).copied().unwrap_or(place);
            let text = flat.text()?;
            let code = text.strip_prefix('-').and_then(|code| code.parse::<i64>().ok());
            let key = self.parent_keys.get(&index);
            let id = match (code, key) {
                (Some(code), Some(key)) => Err(Error::from_code(code.saturating_neg(), key, "", "addJob")),
                _ => Ok(text),
            };
            exceptions.push(FlowException { index, id });
        }
        let named = self
            .frames
            .iter()
            .map(|&(queue, count)| {
                let first = firsts.int()? as u64;
                Ok(NamedChildren { queue, first, count })
            })
            .collect::<Result<_>>()?;
        Ok(AddedFlows {
            exceptions,
            named_by: self.named_by.clone(),
            named,
        })
    }
}

impl Queue {
    /// Adds trees of jobs to any queues on this connection's server, exactly once, in one atomic step. Gives the ids that were made for
    /// children; the jobs that have another id than was sent: their number, or that of a job they yield to; and those that were refused
    /// because of their parents.
    /// # Errors
    /// As [`crate::Connection::send`]; [`Error::QueueFull`]; [`Error::Invalid`] when they lie in several slots of a cluster.
    pub async fn add_flows(&self, flows: &Flows) -> Result<AddedFlows> {
        if self.connection().is_of_cluster() {
            flows.check_slot()?;
        }
        let (plan, bodies) = flows.packed();
        let mut args = Vec::with_capacity(1 + bodies.len());
        args.push(Arg::from(plan));
        args.extend(bodies.iter().map(|body| Arg::from(body.as_slice())));
        let reply = self.run_once_at(&flows.base, &ADD_FLOWS, flows.now_ms, &args).await?;
        flows.read(reply)
    }

    /// Parks an active job until its children have ended. False, and it stays active, when it waits for none, or not for `child` (its
    /// key; empty: any). The token `0` moves anybody's.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::LockMissing`], [`Error::NotInState`], [`Error::LockMismatch`], and [`Error::FailedChildren`].
    pub async fn move_to_waiting_children(&self, now_ms: u64, id: &str, token: &str, child: &str) -> Result<bool> {
        let args = args![id, token, child];
        let reply = self.run_once(&MOVE_TO_WAITING_CHILDREN, now_ms, &args).await?;
        let code = read_code(&MOVE_TO_WAITING_CHILDREN, &reply, id, "active", "moveToWaitingChildren")?;
        Ok(code == 0)
    }

    /// Lets a job's parent, which users see by this key, not wait for it any more. False when it did not.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::ParentMissing`].
    pub async fn remove_dependency(&self, now_ms: u64, id: &str, parent_key: &str) -> Result<bool> {
        let reply = self.run_once(&REMOVE_DEPENDENCY, now_ms, &args![id]).await?;
        match read_code(&REMOVE_DEPENDENCY, &reply, id, "active", "removeChildDependency") {
            Err(Error::ParentMissing { command, .. }) => Err(Error::ParentMissing {
                parent: parent_key.to_owned(),
                command,
            }),
            done => done.map(|code| code == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::options::JobOptions;

    fn node<'a>(id: &'a str, parent: NodeParent<'a>, options: &'a JobOptions) -> FlowNode<'a> {
        FlowNode {
            queue: 0,
            parent,
            id,
            is_given: true,
            name: "a",
            data: "1",
            options,
        }
    }

    #[test]
    fn jobs_without_a_place_are_refused() {
        let (options, queues) = (JobOptions::none("{}"), [Keys::new("bull", "q")]);
        let packs = |nodes: &[FlowNode<'_>]| Flows::pack(7, &queues, nodes).is_ok();
        let root = node("r", NodeParent::None, &options);
        assert!(packs(&[root, node("c", NodeParent::Node(0), &options)]));
        assert!(!packs(&[]));
        assert!(!packs(&[node("c", NodeParent::Node(1), &options), root]));
        assert!(!packs(&[
            node("", NodeParent::None, &options),
            node("c", NodeParent::Node(0), &options)
        ]));
        assert!(!packs(&[FlowNode { queue: 1, ..root }]));
    }

    #[test]
    fn refusals_name_the_parent() {
        let options = JobOptions::none("{}");
        let queues = [Keys::new("bull", "q")];
        let nodes = [
            node("r", NodeParent::Job("bull:p", "7"), &options),
            node("c", NodeParent::Node(0), &options),
        ];
        let flows = Flows::pack(7, &queues, &nodes).expect("flows");
        let flat = [Value::Int(0), Value::Int(-5), Value::Int(1), Value::Int(-7)];
        let reply = Value::Array(vec![Value::Array(flat.to_vec()), Value::Array(Vec::new())]);
        let texts: Vec<String> = flows
            .read(reply)
            .expect("exceptions")
            .exceptions
            .into_iter()
            .map(|exception| exception.id.expect_err("a refusal").to_string())
            .collect();
        assert_eq!(
            texts,
            [
                "Missing key for parent job bull:p:7. addJob",
                "The parent job bull:q:r cannot be replaced. addJob"
            ]
        );
    }
}
