//! Trees of parents and children, over any number of queues: new -> waiting-children | waiting | prioritized | delayed, and what is known
//! of a parent's children. The step that ends the last child starts its parent, in `lua/states/parents.lua`.

mod add;
pub mod children;
mod node;
mod plan;

pub use add::{AddedFlows, FlowException, Flows, NamedChildren};
pub use node::{FlowNode, NodeParent};
