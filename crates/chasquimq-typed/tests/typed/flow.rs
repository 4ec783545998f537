//! Parents among the jobs of a typed worker.

use chasquimq::{FlowNode, Flows, NodeParent};
use chasquimq_typed::JobOptions;

use super::*;

/// Adds a child to a job that exists, which is not due for an hour.
async fn add_child(queue: &TypedQueue<Mail>, parent: &str) {
    let keys = queue.untyped().keys();
    let options = JobOptions::parse(r#"{"delay":3600000}"#).expect("options");
    let child = FlowNode {
        queue: 0,
        parent: NodeParent::Job(&keys.qualified_name, parent),
        id: "",
        is_given: false,
        name: "child",
        data: "{}",
        options: &options,
    };
    let flow = Flows::pack(system_now_ms(), std::slice::from_ref(keys), &[child]).expect("a flow");
    within(queue.untyped().add_flows(&flow)).await.expect("added");
}

#[tokio::test]
async fn a_parent_that_returns_before_its_children_have_ended_fails() {
    let stage = Stage::new().await;
    let adder = within(TypedQueue::connect(&server_url(), &stage.name))
        .await
        .expect("queue");
    let adder = Arc::new(adder);
    let queue = adder.clone();
    let handler = move |job: TypedJob<Mail>| {
        let queue = queue.clone();
        async move {
            if job.data.copies == 0 {
                add_child(&queue, &job.id).await;
            }
            Ok::<(), JobError>(())
        }
    };
    let (worker, mut events) = stage.worker(concurrency(1), handler).await;
    let parent = stage.add(0, AddOptions::default()).await;
    let (failed, reason, state, attempts_made) = events.failed().await;
    assert_eq!((&failed, state, attempts_made), (&parent, FailureState::Failed, 1));
    assert!(reason.contains("pending dependencies"), "{reason}");
    assert_eq!(stage.state(&parent).await, "failed");
    let next = stage.add(1, AddOptions::default()).await;
    assert_eq!(events.completed().await, next);
    within(worker.close()).await;
    within(adder.close()).await;
    stage.end().await;
}
