//! A look at a job that the event loop sends, as it does the adds.

use chasquimq::{queue::look::Look, redis::wire::Answer};

use crate::queue::look::LookCall;

/// It was sent ahead of later calls.
pub struct SentLook {
    look: Look,
    call: LookCall,
}

impl SentLook {
    /// It is to be sent.
    pub fn new(call: LookCall) -> Self {
        // later calls wait until it is settled
        call.order.begin_ahead();
        let look = call.queue.look(&call.id);
        Self { look, call }
    }

    /// What is to be sent.
    pub fn commands(&self) -> Vec<u8> {
        self.call.queue.commands_to_look(&self.look)
    }

    /// How many answers it gets.
    pub fn answers(&self) -> usize {
        self.look.answers()
    }

    /// Takes the answers.
    pub fn settle(self, answers: Vec<Answer>) {
        match self.call.queue.seen(&self.look, answers) {
            Some(job) => self.call.settle(job),
            None => self.call.again(),
        }
    }

    /// It was not answered.
    pub fn lost(self) {
        self.call.again();
    }
}
