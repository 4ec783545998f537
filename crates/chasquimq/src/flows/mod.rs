//! Trees of parents and children, over any number of queues: new -> waiting-children | waiting | prioritized | delayed, and what is known
//! of a parent's children.

pub mod children;

use std::collections::HashMap;

use redis::Value;

use crate::{
    add::producer::read_full,
    error::{Error, Result},
    id::unique_uuid_front,
    job::{
        frame::{prioritized_body, record_body, Brood, FrameBuilder},
        msgpack::Packer,
        options::{self, JobOptions},
    },
    keys::{qualified_name, slot_of, Keys},
    queue::{read_code, Queue},
    redis::{
        library::{Arg, ADD_FLOWS, CUT_CHILD, PARK_JOB},
        reply::Reply,
    },
};

/// A job of a tree.
#[derive(Debug, Clone, Copy)]
pub struct FlowNode<'a> {
    /// Index of its queue.
    pub queue: usize,
    /// What waits for it.
    pub parent: NodeParent<'a>,
    /// Its id; empty: the queue's next number, or, of a child of another of these jobs, a UUID of the engine's.
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
    // what the script is given in a place: this job, or a frame of children from it on
    places: Vec<usize>,
    // of the jobs that may be refused because of their parents, as users see these
    parent_keys: HashMap<usize, String>,
    named_by: String,
    // numbers of children in each frame
    frames: Vec<u32>,
}

/// What became of the jobs of flows.
#[derive(Debug)]
pub struct AddedFlows {
    /// Those whose id is not the one that was sent.
    pub exceptions: Vec<FlowException>,
    /// What the ids that the engine made for children begin with ([`crate::job::frame::child_id`]).
    pub named_by: String,
    /// Of these children, in order: the number of the first, and how many there are.
    pub named: Vec<(u64, u32)>,
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
            if !packing.push_framed(index, nodes, queues) {
                packing.close_frame();
                packing.push(index, nodes, queues);
            }
        }
        packing.close_frame();
        Ok(Self {
            now_ms,
            base,
            plan: packing.plan(queues, nodes),
            bases: packing.bases,
            bodies: packing.bodies,
            places: packing.places,
            parent_keys: packing.parent_keys,
            named_by: packing.named_by,
            frames: packing.frames,
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
        if reply.numbers().next() == Some(-12) {
            return Err(self.read_full(&mut reply)?);
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
                (Some(code), Some(key)) => Err(Error::from_code(-code, key, "", "addJob")),
                _ => Ok(text),
            };
            exceptions.push(FlowException { index, id });
        }
        let named = self
            .frames
            .iter()
            .map(|jobs| Ok((firsts.int()? as u64, *jobs)))
            .collect::<Result<_>>()?;
        Ok(AddedFlows {
            exceptions,
            named_by: self.named_by.clone(),
            named,
        })
    }
}

/// Puts jobs in their places: a place each, or one for a frame of children, which stand behind each other.
struct Packing<'a> {
    now_ms: u64,
    has_children: Vec<bool>,
    // whether a job or what is above it has a parent that may be missing
    may_be_refused: Vec<bool>,
    // the job in each place, or the first of its frame; and the place of each job
    places: Vec<usize>,
    place_of: Vec<usize>,
    extras: Packer,
    extras_count: usize,
    bodies: Vec<Vec<u8>>,
    bases: Vec<String>,
    parent_keys: HashMap<usize, String>,
    named_by: String,
    frames: Vec<u32>,
    frame_plans: Packer,
    open: Option<OpenFrame<'a>>,
}

/// A frame of children that is being filled.
struct OpenFrame<'a> {
    builder: FrameBuilder,
    queue: usize,
    options: &'a JobOptions,
    // of all of the parents
    parent_queue: usize,
    parents: Vec<(usize, u32)>,
    brood: Brood<'a>,
}

impl<'a> Packing<'a> {
    fn new(now_ms: u64, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Self {
        let mut has_children = vec![false; nodes.len()];
        let mut may_be_refused = vec![false; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            match node.parent {
                NodeParent::Node(parent) => {
                    may_be_refused[index] = may_be_refused.get(parent).copied().unwrap_or_default();
                    if let Some(has) = has_children.get_mut(parent) {
                        *has = true;
                    }
                }
                NodeParent::Job(..) => may_be_refused[index] = true,
                NodeParent::None => {}
            }
        }
        Self {
            now_ms,
            has_children,
            may_be_refused,
            places: Vec::with_capacity(nodes.len()),
            place_of: Vec::with_capacity(nodes.len()),
            extras: Packer::default(),
            extras_count: 0,
            bodies: Vec::with_capacity(nodes.len()),
            bases: queues.iter().map(|keys| keys.base.clone()).collect(),
            parent_keys: HashMap::new(),
            named_by: unique_uuid_front(),
            frames: Vec::new(),
            frame_plans: Packer::default(),
            open: None,
        }
    }

    /// Puts a job into a frame of children, if it needs no record: false when it does.
    fn push_framed(&mut self, index: usize, nodes: &[FlowNode<'a>], queues: &'a [Keys]) -> bool {
        let node = &nodes[index];
        let (NodeParent::Node(parent), options) = (node.parent, node.options) else {
            return false;
        };
        let is_plain = node.id.is_empty()
            && !self.has_children[index]
            && !self.may_be_refused[index]
            && options.delay_ms == 0
            && !options.lifo
            && options.priority == 0
            && options.deduplication.is_none();
        if !is_plain {
            return false;
        }
        let parent_queue = nodes[parent].queue;
        let fits = self.open.as_ref().is_some_and(|open| {
            let is_alike = open.queue == node.queue && open.parent_queue == parent_queue;
            is_alike && open.options.text == options.text && !open.builder.is_full_for(node.name, node.data)
        });
        if !fits {
            self.close_frame();
            self.open = Some(OpenFrame {
                builder: FrameBuilder::new(options.timestamp.unwrap_or(self.now_ms), &options.text),
                queue: node.queue,
                options,
                parent_queue,
                parents: Vec::new(),
                brood: Brood {
                    ids: "",
                    base: &queues[parent_queue].base,
                    policy: options.on_failure,
                    parents: Vec::new(),
                },
            });
            self.places.push(index);
        }
        self.place_of.push(self.places.len() - 1);
        if let Some(open) = &mut self.open {
            open.builder.push(node.name, node.data);
            match open.parents.last_mut() {
                Some((last, count)) if *last == self.place_of[parent] => {
                    *count += 1;
                    if let Some((_, count)) = open.brood.parents.last_mut() {
                        *count += 1;
                    }
                }
                _ => {
                    open.parents.push((self.place_of[parent], 1));
                    open.brood.parents.push((nodes[parent].id, 1));
                }
            }
        }
        true
    }

    fn close_frame(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let jobs = open.builder.jobs();
        let (frame, names) = open.builder.finish();
        let brood = Brood {
            ids: &self.named_by,
            ..open.brood
        };
        self.bodies.push(brood.pack(&frame));
        let plan = &mut self.frame_plans;
        plan.int(self.places.len() as i64).array(4).int(jobs as i64);
        plan.column(names.iter().map(String::as_str), names.len() == 1);
        plan.array(open.parents.len());
        for (place, _) in &open.parents {
            plan.int(*place as i64 + 1);
        }
        plan.array(open.parents.len());
        for (_, count) in &open.parents {
            plan.int(i64::from(*count));
        }
        self.frames.push(jobs as u32);
    }

    fn push(&mut self, index: usize, nodes: &[FlowNode<'_>], queues: &[Keys]) {
        let node = &nodes[index];
        self.places.push(index);
        self.place_of.push(self.places.len() - 1);
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
        let due_ms = if is_due_later {
            options::due_ms(timestamp, options.delay_ms)
        } else {
            0
        };
        self.extras
            .int(self.places.len() as i64)
            .array(8)
            .int(i64::from(node.is_given));
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
        let jobs = || self.places.iter().map(|index| &nodes[*index]);
        let extras = self.extras.0.len() + self.frame_plans.0.len();
        let mut plan = Packer::with_capacity(64 * self.places.len() + extras);
        plan.array(8);
        plan.column(queues.iter().map(|keys| keys.base.as_str()), false);
        plan.array(self.places.len());
        for job in jobs() {
            plan.int(job.queue as i64 + 1);
        }
        plan.column(jobs().map(|job| job.id), false);
        plan.column(jobs().map(|job| job.name), false);
        plan.array(self.places.len());
        for job in jobs() {
            plan.int(match job.parent {
                NodeParent::Node(parent) => self.place_of[parent] as i64 + 1,
                _ => 0,
            });
        }
        plan.map(self.extras_count).0.extend_from_slice(&self.extras.0);
        plan.str(&self.named_by);
        plan.map(self.frames.len()).0.extend_from_slice(&self.frame_plans.0);
        plan.0
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
        let args = [Arg::from(id), Arg::from(token), Arg::from(child)];
        let reply = self.run_once(&PARK_JOB, now_ms, &args).await?;
        let code = read_code(&PARK_JOB, &reply, id, "active", "moveToWaitingChildren")?;
        Ok(code == 0)
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
