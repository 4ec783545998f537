//! A look at one job by an event loop that reads the answer itself, behind its adds.

use redis::Value;

use super::{
    waiting::{reads, READS},
    Queue,
};
use crate::{
    error::Result,
    job::{
        whole::{ask_for_one, read_one},
        Job,
    },
    redis::call::reply::is_replica,
};

/// A look that is to be sent, or was.
#[derive(Debug)]
pub struct Look {
    id: String,
    // of a job that plain reads may find; else the function is asked
    number: Option<u64>,
    verifies_master: bool,
}

impl Look {
    /// How many answers it gets.
    pub fn answers(&self) -> usize {
        let reads = if self.number.is_some() { READS } else { 1 };
        reads + usize::from(self.verifies_master)
    }
}

impl Queue {
    /// A look at the job of this id.
    pub fn look(&self, id: &str) -> Look {
        Look {
            id: id.to_owned(),
            number: self.waiting.number_to_read(id),
            verifies_master: self.connection().verifies_master(),
        }
    }

    /// The look as commands.
    pub fn commands_to_look(&self, look: &Look) -> Vec<u8> {
        let mut packed = match look.number {
            Some(number) => reads(self.keys(), number).get_packed_pipeline(),
            None => ask_for_one(self.connection(), self.keys(), &look.id),
        };
        if look.verifies_master {
            packed.extend(redis::cmd("ROLE").get_packed_command());
        }
        packed
    }

    /// The job, or that there is none, as the commands were answered. `None`: it is for [`Queue::read_job`] to find out.
    pub fn seen(&self, look: &Look, mut answers: Vec<Result<Value>>) -> Option<Option<Job>> {
        let role = if look.verifies_master { answers.pop() } else { None };
        let mut read = answers.into_iter().collect::<Result<Vec<_>>>().ok()?;
        // behind the reads: it was still a master after them
        match role {
            Some(Ok(role)) if is_replica(&role) => return None,
            Some(Err(_)) => self.connection().role_is_refused(),
            _ => {}
        }
        match look.number {
            Some(number) => self.waiting.found(&look.id, number, read).map(Some),
            None => read_one(read.pop()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Error, job::frame::single_frame, keys::Keys, redis::reach::options::ConnectOptions};

    fn text(text: &[u8]) -> Value {
        Value::BulkString(text.to_vec())
    }

    fn role(role: &str) -> Value {
        Value::Array(vec![text(role.as_bytes()), Value::Int(0)])
    }

    fn refusal() -> Error {
        Error::Closed
    }

    /// What the server says of a job with the number 1 that waits.
    fn waiting() -> [Value; READS] {
        let fields = Value::Array(vec![text(b"f"), text(&single_frame(7, "{}", "a", "1"))]);
        let entries = Value::Array(vec![Value::Array(vec![text(b"1-1"), fields])]);
        [text(&1_f64.to_le_bytes()), entries]
    }

    #[test]
    fn what_a_master_answers_is_believed() {
        let queue = Queue::new(ConnectOptions::default(), Keys::new("bull", "q"), |_| {});
        let seen = |id: &str, answers: Vec<Result<Value>>| {
            let look = queue.look(id);
            assert_eq!(look.answers(), answers.len(), "{look:?}");
            queue.seen(&look, answers)
        };
        let with_role = |role: Result<Value>| waiting().into_iter().map(Ok).chain([role]).collect::<Vec<_>>();

        let job = seen("1", with_role(Ok(role("master")))).flatten().expect("a job");
        assert_eq!((job.state.as_str(), job.body.data.as_str()), ("waiting", "1"));
        assert!(seen("1", with_role(Ok(role("slave")))).is_none());
        // of a user who may not ask for it the rest is as good as ever
        assert!(seen("1", with_role(Err(refusal()))).flatten().is_some());
        // a server that answers nothing, for it is loading, says nothing of the user
        assert!(seen("1", vec![Err(refusal()), Err(refusal()), Err(refusal())]).is_none());

        let none = || Ok(Value::Array(Vec::new()));
        let master = || Ok(role("master"));
        assert_eq!(seen("own id", vec![none(), master()]), Some(None));
        assert!(seen("own id", vec![none(), Ok(role("slave"))]).is_none());
        assert!(seen("own id", vec![Err(refusal()), master()]).is_none());
        // a number that waits in no frame is for the function, and so are those that are looked for next
        assert!(seen("2", with_role(master())).is_none());
        assert_eq!(seen("3", vec![none(), master()]), Some(None));
    }
}
