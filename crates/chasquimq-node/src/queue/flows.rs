//! Trees of parents and children.

use chasquimq::{AddedFlows, FlowException, FlowNode, Flows, JobOptions, Keys, NodeParent};
use napi::{
    bindgen_prelude::{Int32Array, Object},
    Env, Result,
};
use napi_derive::napi;

use super::{commands::commands, messages::NativeAddedException, NativeQueue};
use crate::{
    error::NativeError,
    text::{LongText, Pieces},
};

/// Numbers a job of a flow takes in `NativeFlows.layout`.
const STRIDE: usize = 7;

/// Jobs of any queues, each behind its parent.
#[napi(object, object_to_js = false)]
pub struct NativeFlows {
    /// Prefix and name of each queue, in turn.
    pub queues: Vec<String>,
    /// Qualified name of the queue, and id, of each parent that exists, in turn.
    pub parents: Vec<String>,
    /// Ids, names and data (JSON texts) of all jobs, back to back.
    #[napi(ts_type = "string | Array<string>")]
    pub text: LongText,
    /// Seven numbers a job: index of its queue; its parent (0 none, n the n-th job of these, -n the n-th of `parents`); units of its id
    /// (0: the queue's next number; of a child of one of these jobs, a UUID that is made for it), of its name and of its data; index of its options; 1 if its id was given by the user.
    pub layout: Int32Array,
    /// Distinct option texts.
    pub opts: Vec<String>,
}

/// What became of the jobs of flows.
#[napi(object)]
pub struct NativeAddedFlows {
    /// Those whose id is not the one that was sent.
    pub exceptions: Vec<NativeAddedException>,
    /// What the ids that were made for children begin with, in each of the queues; the number of each follows, in twelve hexadecimal digits.
    pub named_by: Vec<String>,
    /// Of these children, in order: index of their queue, the number of the first, and how many follow one another, in turn.
    pub named: Vec<f64>,
}

impl From<AddedFlows> for NativeAddedFlows {
    fn from(added: AddedFlows) -> Self {
        let named = added.named.into_iter();
        Self {
            exceptions: added.exceptions.into_iter().map(NativeAddedException::from).collect(),
            named_by: added.named_by,
            named: named
                .flat_map(|found| [found.queue as f64, found.first as f64, f64::from(found.count)])
                .collect(),
        }
    }
}

#[napi]
impl NativeQueue {
    /// Adds trees of jobs, to any queues, in one atomic step.
    #[napi(ts_return_type = "Promise<NativeAddedFlows>")]
    pub fn add_flows<'env>(&self, env: &'env Env, now: f64, flows: NativeFlows) -> Result<Object<'env>> {
        let packed = pack(now as u64, flows);
        let hold = self.adds.hold();
        self.call(env, async move |queue| {
            let _hold = hold;
            Ok(NativeAddedFlows::from(queue.add_flows(&packed?).await?))
        })
    }
}

commands! {
    /// Parks an active job until its children have ended; false when it waits for none, or not for that one.
    async fn move_to_waiting_children(queue, id: String, token: String, child: String, now: f64) -> bool {
        queue.move_to_waiting_children(now as u64, &id, &token, &child).await
    }

    /// Removes what a job waits for.
    async fn remove_pending_children(queue, id: String, now: f64) -> () {
        queue.remove_pending_children(now as u64, &id).await
    }

    /// Lets a job's parent not wait for it any more; false when it did not.
    async fn remove_dependency(queue, id: String, parent_key: String, now: f64) -> bool {
        queue.remove_dependency(now as u64, &id, &parent_key).await
    }
}

fn pack(now_ms: u64, flows: NativeFlows) -> chasquimq::Result<Flows> {
    let options = flows
        .opts
        .iter()
        .map(|text| JobOptions::parse(text))
        .collect::<chasquimq::Result<Vec<_>>>()?;
    let queues: Vec<Keys> = flows
        .queues
        .chunks_exact(2)
        .map(|queue| Keys::new(&queue[0], &queue[1]))
        .collect();
    let mut pieces = Pieces::new(&flows.text);
    let layout: &[i32] = &flows.layout;
    let nodes: Vec<FlowNode<'_>> = layout
        .chunks_exact(STRIDE)
        .filter_map(|node| {
            let mut piece = |units: i32| pieces.next(units as usize);
            Some(FlowNode {
                queue: node[0] as usize,
                parent: to_parent(node[1], &flows.parents),
                id: piece(node[2]),
                is_given: node[6] == 1,
                name: piece(node[3]),
                data: piece(node[4]),
                options: options.get(node[5] as usize)?,
            })
        })
        .collect();
    Flows::pack(now_ms, &queues, &nodes)
}

fn to_parent(number: i32, parents: &[String]) -> NodeParent<'_> {
    let at = 2 * (number.unsigned_abs() as usize).saturating_sub(1);
    match (number, parents.get(at), parents.get(at + 1)) {
        (1.., ..) => NodeParent::Node(number as usize - 1),
        (..=-1, Some(queue), Some(id)) => NodeParent::Job(queue, id),
        _ => NodeParent::None,
    }
}

impl From<FlowException> for NativeAddedException {
    fn from(exception: FlowException) -> Self {
        let (id, error) = match exception.id {
            Ok(id) => (Some(id), None),
            Err(error) => (None, Some(NativeError::from(&error))),
        };
        Self {
            index: exception.index as u32,
            id,
            error,
        }
    }
}
