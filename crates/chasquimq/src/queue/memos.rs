//! What the server remembers of calls on a queue that is no more.

use std::time::Duration;

use redis::Value;

use super::{
    search::{escaped, scan},
    Queue,
};
use crate::{
    clock::Moment,
    error::Result,
    redis::call::numbered_calls::{FORGET_AFTER_MS, REMEMBERED_MS},
};

/// Keys the server looks at in one step.
const STEP: usize = 1000;
/// How long the server is asked for them; of more keys than that the rest is forgotten in an hour.
const WITHIN: Duration = Duration::from_secs(1);

impl Queue {
    /// Lets the server forget the calls of all clients in a minute instead of an hour, as far as they were carried out before the call was `sent` that
    /// ended the queue. Not at once: one whose answer was lost is sent again, and would bring back a job that is gone.
    /// For a user who may `SCAN`.
    pub(super) async fn forget_calls_before(&self, sent: Moment) {
        let _ = tokio::time::timeout(WITHIN, self.shorten_memos(sent)).await;
    }

    async fn shorten_memos(&self, sent: Moment) -> Result<()> {
        let pattern = format!("{}memo:*:*", escaped(&self.keys().base));
        let mut cursor = "0".to_owned();
        loop {
            let (next, memos) = scan(self.connection(), &cursor, &pattern, STEP).await?;
            self.shorten(&memos, sent).await?;
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    async fn shorten(&self, memos: &[String], sent: Moment) -> Result<()> {
        if memos.is_empty() {
            return Ok(());
        }
        let mut left = redis::pipe();
        for memo in memos {
            left.cmd("PTTL").arg(memo);
        }
        let left = self.connection().send_pipeline_once(&left, memos.len()).await?;
        // what was remembered since belongs to a queue that is in use again
        let most = REMEMBERED_MS - sent.elapsed().as_millis() as i64 - 1;
        let is_before =
            |left: &Value| matches!(left, Value::Int(left) if (FORGET_AFTER_MS as i64..=most).contains(left));
        let (mut shorter, mut count) = (redis::pipe(), 0);
        for (memo, _) in memos.iter().zip(&left).filter(|(_, left)| is_before(left)) {
            shorter.cmd("PEXPIRE").arg(memo).arg(FORGET_AFTER_MS);
            count += 1;
        }
        if count > 0 {
            self.connection().send_pipeline_once(&shorter, count).await?;
        }
        Ok(())
    }
}
