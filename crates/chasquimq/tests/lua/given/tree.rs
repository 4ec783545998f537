//! What the add_flows script is given: trees of jobs, of one queue or several.

use chasquimq::{FlowNode, Flows, JobOptions, Keys, NodeParent};

/// Jobs named `a` with the data 1, each behind its parent.
#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    elsewhere: Vec<Keys>,
}

struct Node {
    queue: usize,
    parent: Parent,
    id: String,
    options: JobOptions,
}

enum Parent {
    None,
    Node(usize),
    Job(String, String),
}

impl Tree {
    pub fn new() -> Self {
        Self::default()
    }

    /// A job without a parent.
    pub fn root(self, id: &str) -> Self {
        self.push(Parent::None, id, "{}")
    }

    /// A job without a parent, with options (JSON).
    pub fn root_with(self, id: &str, options: &str) -> Self {
        self.push(Parent::None, id, options)
    }

    /// A child of the job of this id in this tree.
    pub fn child(self, parent: &str, id: &str) -> Self {
        self.child_with(parent, id, "{}")
    }

    pub fn child_with(self, parent: &str, id: &str, options: &str) -> Self {
        let at = self.nodes.iter().position(|node| node.id == parent).expect("a parent");
        self.push(Parent::Node(at), id, options)
    }

    /// A child of the last job.
    pub fn child_of_last(self, id: &str) -> Self {
        let at = self.nodes.len() - 1;
        self.push(Parent::Node(at), id, "{}")
    }

    /// A child of a job that exists, of the queue with these keys.
    pub fn child_of(self, keys: &Keys, parent: &str, id: &str) -> Self {
        self.child_of_with(keys, parent, id, "{}")
    }

    pub fn child_of_with(self, keys: &Keys, parent: &str, id: &str, options: &str) -> Self {
        let parent = Parent::Job(keys.qualified_name.clone(), parent.to_owned());
        self.push(parent, id, options)
    }

    /// The last job goes to another queue.
    pub fn to(mut self, keys: &Keys) -> Self {
        let known = self.elsewhere.iter().position(|known| known.base == keys.base);
        let at = known.unwrap_or_else(|| {
            self.elsewhere.push(keys.clone());
            self.elsewhere.len() - 1
        });
        if let Some(node) = self.nodes.last_mut() {
            node.queue = at + 1;
        }
        self
    }

    fn push(mut self, parent: Parent, id: &str, options: &str) -> Self {
        self.nodes.push(Node {
            queue: 0,
            parent,
            id: id.to_owned(),
            options: JobOptions::parse(options).expect("options"),
        });
        self
    }

    pub fn pack(&self, now_ms: u64, keys: &Keys) -> Flows {
        let queues: Vec<Keys> = std::iter::once(keys.clone())
            .chain(self.elsewhere.iter().cloned())
            .collect();
        let nodes: Vec<FlowNode<'_>> = self
            .nodes
            .iter()
            .map(|node| FlowNode {
                queue: node.queue,
                parent: match &node.parent {
                    Parent::None => NodeParent::None,
                    Parent::Node(at) => NodeParent::Node(*at),
                    Parent::Job(queue, id) => NodeParent::Job(queue, id),
                },
                id: &node.id,
                is_given: !node.id.is_empty(),
                name: "a",
                data: "1",
                options: &node.options,
            })
            .collect();
        Flows::pack(now_ms, &queues, &nodes).expect("flows")
    }
}
