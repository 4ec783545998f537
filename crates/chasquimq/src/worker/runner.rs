//! Whoever runs jobs: an event loop, which runs those of one worker or of several. While it is blocked none of these is of any use to the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Shared by the workers whose jobs it runs.
#[derive(Debug, Clone, Default)]
pub struct Runner {
    // workers, by the base of their queues
    workers: Arc<Mutex<HashMap<String, u32>>>,
}

/// A worker's place among those of its queue.
#[derive(Debug)]
pub(crate) struct Among {
    runner: Runner,
    base: String,
}

impl Runner {
    fn workers(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn join(&self, base: &str) -> Among {
        *self.workers().entry(base.to_owned()).or_default() += 1;
        Among {
            runner: self.clone(),
            base: base.to_owned(),
        }
    }
}

impl Among {
    /// Whether every other worker of the queue has a runner of its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.runner.workers().get(&self.base).is_none_or(|workers| *workers < 2)
    }
}

impl Drop for Among {
    fn drop(&mut self) {
        let mut workers = self.runner.workers();
        match workers.get_mut(&self.base) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(workers.remove(&self.base)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_alone_until_another_of_its_queue_joins() {
        let runner = Runner::default();
        let first = runner.join("a:");
        let other = runner.join("b:");
        assert!(first.is_alone() && other.is_alone());
        let second = runner.join("a:");
        assert!(!first.is_alone() && !second.is_alone() && other.is_alone());
        drop(first);
        assert!(second.is_alone());
        drop(second);
        assert!(runner.join("a:").is_alone());
        assert!(Runner::default().join("b:").is_alone());
    }
}
