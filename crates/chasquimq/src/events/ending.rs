//! How a job ended that was removed as it did, as the event log tells.

use super::entries::{Entry, PageSize};
use crate::{
    error::Result,
    keys::Keys,
    redis::{call::reply::Reply, connection::Connection},
};

/// Entries that are looked through, from the newest on, before the job is taken for one that is long gone.
const MOST_ENTRIES: usize = 1024;

/// The state in which a job ended, and its return value (JSON text) or the reason it failed; `None` when its newest events tell of no end.
pub(crate) async fn find_ending(connection: &Connection, keys: &Keys, id: &str) -> Result<Option<(String, String)>> {
    let (mut before, mut looked, mut page) = ("+".to_owned(), 0, PageSize::first());
    while looked < MOST_ENTRIES {
        let mut read = redis::cmd("XREVRANGE");
        read.arg(keys.key("events")).arg(&before).arg("-");
        read.arg("COUNT").arg(page.0);
        let mut entries = Reply::new("the event log", connection.send(&read).await?)?;
        let (came, mut bytes) = (entries.len(), 0);
        while !entries.is_empty() {
            let entry = Entry::take(&mut entries)?;
            before = format!("({}-{}", entry.id.0, entry.id.1);
            bytes += entry.bytes();
            let mut events = Vec::new();
            entry.unpack((0, 0), &mut events);
            let of_job =
                |fields: &[(String, String)]| fields.iter().any(|(field, value)| field == "jobId" && value == id);
            for event in events.into_iter().rev().filter(|event| of_job(&event.fields)) {
                let told = match event.name.as_str() {
                    "completed" => "returnvalue",
                    "failed" => "failedReason",
                    // removed by someone, or added once more and gone again
                    "removed" | "added" => return Ok(None),
                    _ => continue,
                };
                let value = event.fields.into_iter().find(|(field, _)| field == told);
                return Ok(Some((event.name, value.map(|(_, value)| value).unwrap_or_default())));
            }
        }
        if came < page.0 {
            break;
        }
        looked += came;
        page.learn(came, bytes);
    }
    Ok(None)
}
