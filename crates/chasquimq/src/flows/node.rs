//! Jobs of trees, as they are to be added.

use crate::job::options::JobOptions;

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
