//! Trees of parents and children, over any number of queues: new -> waiting-children | waiting | prioritized | delayed, and what is known
//! of a parent's children.

use std::collections::HashMap;

use redis::Value;

use crate::{
    error::{Error, Result},
    frame::{prioritized_body, record_body},
    keys::{qualified_name, slot_of, Keys},
    options::JobOptions,
    pack::Packer,
    queue::{read_code, Queue},
    server::{
        reply::Reply,
        script::{Arg, ADD_FLOWS, CUT_CHILD, PARK_JOB, REMOVE_CHILDREN},
    },
};

/// A job of a tree.
#[derive(Debug, Clone, Copy)]
pub struct FlowNode<'a> {
    /// Index of its queue.
    pub queue: usize,
    /// What waits for it.
    pub parent: NodeParent<'a>,
    /// Its id; empty: the queue's next number.
    pub id: &'a str,
    /// The id was chosen by somebody: a job of it may exist.
    pub is_given: bool,
    /// Its name.
    pub name: &'a str,
    /// Its data, JSON text.
    pub data: &'a str,
    /// Its options.
    pub options: &'a JobOptions,
}

/// The parent of a job of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeParent<'a> {
    /// None.
    None,
    /// A job before it in the tree, by its index.
    Node(usize),
    /// A job that exists: its queue's qualified name, and its id.
    Job(&'a str, &'a str),
}

/// Trees of jobs as the script takes them, ready to be sent.
#[derive(Debug)]
pub struct Flows {
    now_ms: u64,
    base: String,
    // of its queues, and of parents that exist
    bases: Vec<String>,
    plan: Vec<u8>,
    bodies: Vec<Vec<u8>>,
    // of the jobs that may be refused because of their parents, as users see these
    parent_keys: HashMap<usize, String>,
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
    /// [`Error::Invalid`] when there are none, or a parent stands behind its child, or has no id.
    pub fn pack(now_ms: u64, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Result<Self> {
        let base = nodes.first().and_then(|node| queues.get(node.queue));
        let base = base
            .ok_or_else(|| Error::Invalid("a flow without jobs".into()))?
            .base
            .clone();
        let mut packing = Packing::new(now_ms, queues, nodes);
        for (index, node) in nodes.iter().enumerate() {
            let is_lost = |parent: usize| parent >= index || nodes[parent].id.is_empty();
            if matches!(node.parent, NodeParent::Node(parent) if is_lost(parent)) || node.queue >= queues.len() {
                return Err(Error::Invalid(format!("job {index} of a flow has no place in it")));
            }
            packing.push(index, nodes, queues);
        }
        Ok(Self {
            now_ms,
            base,
            plan: packing.plan(queues, nodes),
            bases: packing.bases,
            bodies: packing.bodies,
            parent_keys: packing.parent_keys,
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

    fn read(&self, reply: Value) -> Result<Vec<FlowException>> {
        let mut flat = Reply::new("the answer to add_flows", reply)?;
        let mut exceptions = Vec::new();
        while !flat.is_empty() {
            let index = flat.int()? as usize;
            let text = flat.text()?;
            let code = text.strip_prefix('-').and_then(|code| code.parse::<i64>().ok());
            let key = self.parent_keys.get(&index);
            let id = match (code, key) {
                (Some(code), Some(key)) => Err(Error::from_code(-code, key, "", "addJob")),
                _ => Ok(text),
            };
            exceptions.push(FlowException { index, id });
        }
        Ok(exceptions)
    }
}

struct Packing {
    now_ms: u64,
    has_children: Vec<bool>,
    extras: Packer,
    extras_count: usize,
    bodies: Vec<Vec<u8>>,
    bases: Vec<String>,
    parent_keys: HashMap<usize, String>,
}

impl Packing {
    fn new(now_ms: u64, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Self {
        let mut has_children = vec![false; nodes.len()];
        for node in nodes {
            if let NodeParent::Node(parent) = node.parent {
                if let Some(has) = has_children.get_mut(parent) {
                    *has = true;
                }
            }
        }
        Self {
            now_ms,
            has_children,
            extras: Packer::default(),
            extras_count: 0,
            bodies: Vec::with_capacity(nodes.len()),
            bases: queues.iter().map(|keys| keys.base.clone()).collect(),
            parent_keys: HashMap::new(),
        }
    }

    fn push(&mut self, index: usize, nodes: &[FlowNode<'_>], queues: &[Keys]) {
        let node = &nodes[index];
        let options = node.options;
        let timestamp = options.timestamp.unwrap_or(self.now_ms);
        self.bodies.push(if options.priority == 0 {
            record_body(timestamp, &options.text, node.name, node.data)
        } else {
            prioritized_body(timestamp, &options.text, node.name, node.data, options.priority)
        });
        // what is said of the failure of a job without a parent says nothing
        let policy = match node.parent {
            NodeParent::None => "",
            _ => options.on_failure.letter(),
        };
        let is_like_others = !node.is_given
            && policy.is_empty()
            && options.delay_ms == 0
            && !options.lifo
            && options.priority == 0
            && options.deduplication.is_none()
            && !matches!(node.parent, NodeParent::Job(..));
        if is_like_others {
            return;
        }
        self.extras_count += 1;
        let is_due_later = options.delay_ms > 0 && !self.has_children[index];
        let due_ms = if is_due_later { timestamp + options.delay_ms } else { 0 };
        self.extras.int(index as i64 + 1).array(8).int(i64::from(node.is_given));
        self.extras
            .int(due_ms as i64)
            .int(i64::from(options.lifo))
            .int(options.priority);
        self.extras.str(policy).int(options.delay_ms as i64);
        match node.parent {
            NodeParent::Job(queue, id) => {
                let base = Keys::of_qualified(queue).base;
                self.extras.array(2).str(&base).str(id);
                self.bases.push(base);
                self.parent_keys.insert(index, format!("{queue}:{id}"));
            }
            NodeParent::Node(parent) => {
                self.extras.int(0);
                let queue = &queues[nodes[parent].queue].qualified_name;
                self.parent_keys.insert(index, format!("{queue}:{}", nodes[parent].id));
            }
            NodeParent::None => {
                self.extras.int(0);
            }
        }
        match &options.deduplication {
            Some(dedup) => dedup.pack(&mut self.extras),
            None => {
                self.extras.int(0);
            }
        }
    }

    fn plan(&self, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Vec<u8> {
        let mut plan = Packer::with_capacity(64 * nodes.len() + self.extras.0.len());
        plan.array(6);
        plan.column(queues.iter().map(|keys| keys.base.as_str()), false);
        plan.array(nodes.len());
        for node in nodes {
            plan.int(node.queue as i64 + 1);
        }
        plan.column(nodes.iter().map(|node| node.id), false);
        plan.column(nodes.iter().map(|node| node.name), false);
        plan.array(nodes.len());
        for node in nodes {
            plan.int(match node.parent {
                NodeParent::Node(parent) => parent as i64 + 1,
                _ => 0,
            });
        }
        plan.map(self.extras_count).0.extend_from_slice(&self.extras.0);
        plan.0
    }
}

impl Queue {
    /// Adds trees of jobs to any queues on this connection's server, exactly once, in one atomic step. Gives the jobs that have another
    /// id than was sent: their number, or that of a job they yield to; and those that were refused because of their parents.
    /// # Errors
    /// As [`crate::Connection::send`]; [`Error::Invalid`] when they lie in several slots of a cluster.
    pub async fn add_flows(&self, flows: &Flows) -> Result<Vec<FlowException>> {
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

    /// What the children of a job that completed returned (JSON texts), by their keys.
    /// # Errors
    /// As [`crate::Connection::send`].
    pub async fn children_values(&self, id: &str) -> Result<Vec<(String, String)>> {
        let mut all = redis::cmd("HGETALL");
        all.arg(self.keys().key(&format!("processed:{id}")));
        let mut flat = Reply::new("the values of children", self.connection().send(&all).await?)?;
        let mut values = Vec::with_capacity(flat.len() / 2);
        while !flat.is_empty() {
            values.push((flat.text()?, flat.text()?));
        }
        Ok(values)
    }

    /// Parks an active job until its children have ended. False, and it stays active, when it waits for none, or not for `child` (its
    /// key; empty: any). The token `0` moves anybody's.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::LockMissing`], [`Error::NotInState`], [`Error::LockMismatch`], and [`Error::FailedChildren`].
    pub async fn move_to_waiting_children(&self, now_ms: u64, id: &str, token: &str, child: &str) -> Result<bool> {
        let args = [Arg::from(id), Arg::from(token), Arg::from(child)];
        let reply = self.run_once(&PARK_JOB, now_ms, &args).await?;
        let code = read_code(&PARK_JOB, &reply, id, "active", "moveToWaitingChildren")?;
        Ok(code == 0)
    }

    /// Removes what a job waits for, directly or not, but for what a worker holds and what has failed.
    /// # Errors
    /// As [`crate::Connection::send`].
    pub async fn remove_pending_children(&self, now_ms: u64, id: &str) -> Result<()> {
        let args = [Arg::Int(now_ms as i64), Arg::from(id)];
        self.run(&REMOVE_CHILDREN, &args).await.map(drop)
    }

    /// Lets a job's parent, which users see by this key, not wait for it any more. False when it did not.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::ParentMissing`].
    pub async fn cut_child(&self, now_ms: u64, id: &str, parent_key: &str) -> Result<bool> {
        let reply = self.run_once(&CUT_CHILD, now_ms, &[Arg::from(id)]).await?;
        match read_code(&CUT_CHILD, &reply, id, "active", "removeChildDependency") {
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
        let texts: Vec<String> = flows
            .read(Value::Array(flat.to_vec()))
            .expect("exceptions")
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
