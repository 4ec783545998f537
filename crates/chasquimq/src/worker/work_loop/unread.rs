//! Answers that cannot be read. What the server did is not known then, and neither is which answers those that follow on that connection are. So the
//! connection is dropped, and the step is sent again as one whose answer was lost: the server remembers what it answered. Where it does not, or that
//! cannot be read either, what the step may have taken goes back.

use redis::Value;

use super::{steps::REFUSED_PAUSE, Loop};
use crate::{
    error::{Error, Result},
    worker::{
        record::packed_outcomes::PackedOutcomes,
        step_request::{Elsewhere, StepRequest},
        take::answer::Answer,
    },
};

/// How often an answer is asked for again: each time renews the lease.
const ASKS: u32 = 3;

impl Loop {
    /// Reads the answer to a step.
    pub(super) async fn read(&mut self, reply: Value) -> Result<Answer> {
        let reply = self.whole(reply).await?;
        Answer::read(reply, &mut self.standing.in_flight)
    }

    /// The same; asks for it again where it cannot be read.
    pub(super) async fn read_or_ask(
        &mut self,
        mut reply: Value,
        request: &StepRequest,
        outcomes: &PackedOutcomes,
    ) -> Result<Answer> {
        for asks in 0..ASKS {
            match self.read(reply).await {
                Err(error @ Error::Malformed { .. }) => self.report_unread(&error),
                read => return read,
            }
            if asks > 0 {
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            reply = self.send_step(request, outcomes).await?;
        }
        let read = self.read(reply).await;
        if let Err(error @ Error::Malformed { .. }) = &read {
            self.report_unread(error);
        }
        read
    }

    /// The answer to a step that somebody else sent cannot be read.
    pub(super) async fn ask_elsewhere(&mut self, error: Error, elsewhere: Elsewhere) -> Result<()> {
        if !matches!(error, Error::Malformed { .. }) {
            return Err(error);
        }
        self.report_unread(&error);
        self.waiter.distrust();
        self.send_again(elsewhere).await
    }

    /// Tells of it. Whatever else is under way on the connection is sent again, too.
    pub(super) fn report_unread(&self, error: &Error) {
        self.report(error.clone());
        self.connection.drop_connection();
    }

    /// Nobody knows what a step came to: what it was to record may be recorded, and what it took is to be given back.
    pub(super) fn lose_track(&mut self, error: Error, outcomes: PackedOutcomes) -> Result<()> {
        if !matches!(error, Error::Malformed { .. }) {
            return Err(error);
        }
        self.has_lost_track = true;
        let rejected = outcomes.unknown(&error);
        self.tell(None, false, rejected, outcomes);
        Ok(())
    }

    /// Has the server bring back what it takes for this worker's and the worker does not hold: where nobody knows that, or another server is there.
    pub(super) async fn agree_with_server(&mut self) {
        // nothing else is done before, and nothing renews the lease: if it cannot be done, the jobs come back when that is over
        while self.has_lost_track {
            // what comes back never started: it does not fail for that
            match self.reconcile(self.connection.servers(), u32::MAX).await {
                Ok(()) => self.has_lost_track = false,
                Err(Error::Closed) => return,
                Err(error) => self.pause_refused(error).await,
            }
        }
        let servers = self.connection.servers();
        if servers != self.servers {
            // what tells this worker of work may lead to the one before, which need not be gone
            if let Some(place) = self.connection.wire_place() {
                self.waiter.follow(&place);
            }
            if let Err(error) = self.reconcile(servers, self.options.max_stalled_count).await {
                self.report(error);
            }
        }
    }
}
