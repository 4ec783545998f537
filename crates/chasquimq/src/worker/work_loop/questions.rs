//! Answers who asks whether anything is left.

use super::Loop;
use crate::{error::Result, queue::metrics::Counts, redis::call::library::COUNT_JOBS, worker::message::Question};

impl Loop {
    /// Somebody asks. A worker that takes nothing gives no answer.
    pub(super) fn ask_what_is_left(&mut self, question: Question) {
        if !self.mode.is_running() {
            return;
        }
        self.questions.push(question);
        // what a wait would bring is held by nobody that is known here
        self.room_changed = self.waiter.pending.takes_jobs();
        self.look_again = true;
    }

    /// No step is under way.
    pub(super) fn date_questions(&mut self) {
        for question in &mut self.questions {
            question.after.get_or_insert(self.standing.step_number);
        }
    }

    /// A step is over. If nothing is held behind it, and no wait may bring anything, what waits now is all that is left.
    pub(super) async fn answer_questions(&mut self, step: i64) -> Result<()> {
        if self.questions.is_empty() || self.holds_any() || self.is_any_waiting().await? {
            return Ok(());
        }
        let questions = std::mem::take(&mut self.questions);
        let is_answered = |question: &Question| question.after.is_some_and(|after| after < step);
        let (answered, others): (Vec<_>, Vec<_>) = questions.into_iter().partition(is_answered);
        for question in answered {
            // who asked may have gone
            let _ = question.done.send(true);
        }
        self.look_again |= !others.is_empty();
        self.questions = others;
        Ok(())
    }

    /// What was no step of this loop answers nothing: it looks by itself.
    pub(super) fn look_for_questions(&mut self) {
        let may_look = self.mode.is_running() && !self.mode.is_limited() && !self.holds_any();
        self.look_again |= may_look && !self.questions.is_empty();
    }

    fn holds_any(&self) -> bool {
        self.standing.in_flight.jobs() > 0 || !self.unrecorded.is_empty()
    }

    async fn is_any_waiting(&self) -> Result<bool> {
        let counts = Counts::read(COUNT_JOBS.ask(&self.connection, &self.keys.base, &[]).await?)?;
        Ok(counts.waiting > 0 || counts.prioritized > 0)
    }
}
