//! The plan of trees of jobs: where each of them goes, and what it is stored as.

use std::collections::HashMap;

use super::node::{FlowNode, NodeParent};
use crate::{
    clock::due_ms,
    id::unique_uuid_front,
    job::{frame::FrameBuilder, msgpack::Packer, options::JobOptions, parent_header::ParentHeader, record::body_of},
    keys::Keys,
};

/// Puts jobs in their places: a place each, or one for a frame of children, which stand behind each other.
pub(super) struct PlanBuilder<'a> {
    now_ms: u64,
    has_children: Vec<bool>,
    // whether a job or what is above it has a parent that may be missing, or may yield to another
    may_be_refused: Vec<bool>,
    // the job in each place, or the first of its frame; and the place of each job
    pub(super) places: Vec<usize>,
    place_of: Vec<usize>,
    extras: Packer,
    extras_count: usize,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) bases: Vec<String>,
    pub(super) parent_keys: HashMap<usize, String>,
    // of each queue: numbers are its own, and no two children may have one id
    pub(super) named_by: Vec<String>,
    // their queues, and numbers of children
    pub(super) frames: Vec<(usize, u32)>,
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
    header: ParentHeader<'a>,
}

impl<'a> PlanBuilder<'a> {
    pub(super) fn new(now_ms: u64, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Self {
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
                // it may yield to a job that exists
                NodeParent::None => may_be_refused[index] = node.options.deduplication.is_some(),
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
            named_by: queues.iter().map(|_| unique_uuid_front()).collect(),
            frames: Vec::new(),
            frame_plans: Packer::default(),
            open: None,
        }
    }

    /// Puts a job into a frame of children, if it needs no record: false when it does.
    pub(super) fn push_framed(&mut self, index: usize, nodes: &[FlowNode<'a>], queues: &'a [Keys]) -> bool {
        let node = &nodes[index];
        let (NodeParent::Node(parent), options) = (node.parent, node.options) else {
            return false;
        };
        let is_plain =
            node.id.is_empty() && !self.has_children[index] && !self.may_be_refused[index] && options.just_waits();
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
                header: ParentHeader {
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
                    if let Some((_, count)) = open.header.parents.last_mut() {
                        *count += 1;
                    }
                }
                _ => {
                    open.parents.push((self.place_of[parent], 1));
                    open.header.parents.push((nodes[parent].id, 1));
                }
            }
        }
        true
    }

    pub(super) fn close_frame(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let jobs = open.builder.jobs();
        let (frame, names) = open.builder.finish();
        let header = ParentHeader {
            ids: &self.named_by[open.queue],
            ..open.header
        };
        self.bodies.push(header.pack(&frame));
        let plan = &mut self.frame_plans;
        plan.int(self.places.len() as i64).array(4).int(jobs as i64);
        plan.column(names.iter().map(String::as_str), names.len() == 1);
        plan.ints(open.parents.iter().map(|(place, _)| *place as i64 + 1));
        plan.ints(open.parents.iter().map(|(_, count)| i64::from(*count)));
        self.frames.push((open.queue, jobs as u32));
    }

    pub(super) fn push(&mut self, index: usize, nodes: &[FlowNode<'_>], queues: &[Keys]) {
        let node = &nodes[index];
        self.places.push(index);
        self.place_of.push(self.places.len() - 1);
        let options = node.options;
        let timestamp = options.timestamp.unwrap_or(self.now_ms);
        self.bodies.push(body_of(timestamp, options, node.name, node.data));
        // what is said of the failure of a job without a parent says nothing
        let policy = match node.parent {
            NodeParent::None => "",
            _ => options.on_failure.letter(),
        };
        let is_like_others =
            !node.is_given && policy.is_empty() && options.just_waits() && !matches!(node.parent, NodeParent::Job(..));
        if is_like_others {
            return;
        }
        self.extras_count += 1;
        let is_due_later = options.delay_ms > 0 && !self.has_children[index];
        let due_ms = if is_due_later {
            due_ms(timestamp, options.delay_ms)
        } else {
            0
        };
        self.extras
            .int(self.places.len() as i64)
            .array(8 + options.more())
            .int(i64::from(node.is_given));
        self.extras
            .int(due_ms as i64)
            .int(i64::from(options.lifo))
            .int(options.rank());
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
        options.pack_more(&mut self.extras);
    }

    pub(super) fn plan(&self, queues: &[Keys], nodes: &[FlowNode<'_>]) -> Vec<u8> {
        let jobs = || self.places.iter().map(|index| &nodes[*index]);
        let extras = self.extras.0.len() + self.frame_plans.0.len();
        let mut plan = Packer::with_capacity(64 * self.places.len() + extras);
        plan.array(8);
        plan.column(queues.iter().map(|keys| keys.base.as_str()), false);
        plan.ints(jobs().map(|job| job.queue as i64 + 1));
        plan.column(jobs().map(|job| job.id), false);
        plan.column(jobs().map(|job| job.name), false);
        plan.ints(jobs().map(|job| match job.parent {
            NodeParent::Node(parent) => self.place_of[parent] as i64 + 1,
            _ => 0,
        }));
        plan.map(self.extras_count).0.extend_from_slice(&self.extras.0);
        plan.column(self.named_by.iter().map(String::as_str), false);
        plan.map(self.frames.len()).0.extend_from_slice(&self.frame_plans.0);
        plan.0
    }
}
