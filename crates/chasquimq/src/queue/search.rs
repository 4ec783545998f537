//! Which queues there are, found by their keys.

use std::collections::BTreeSet;

use redis::cmd;

use super::Queue;
use crate::{
    error::Result,
    redis::{connection::Connection, reply::Reply},
};

/// Keys the server looks at in one step.
const STEP: usize = 1000;

impl Queue {
    /// Names of the queues with this one's prefix, in order: all that ever had a job or a setting and were not obliterated. Walks all keys
    /// of the server, in a cluster of each master, some a step.
    /// # Errors
    /// As [`Queue::counts`]; a user may not be allowed to `SCAN`.
    pub async fn names(&self) -> Result<Vec<String>> {
        let (before, after) = self.keys().around_name();
        self.names_between(before, &format!("{after}state")).await
    }

    /// The same of BullMQ's queues: all that have settings.
    /// # Errors
    /// As [`Queue::names`].
    pub async fn source_names(&self) -> Result<Vec<String>> {
        let prefix = self
            .keys()
            .qualified_name
            .rsplit_once(':')
            .map_or("", |(prefix, _)| prefix);
        self.names_between(&format!("{prefix}:"), ":meta").await
    }

    async fn names_between(&self, before: &str, after: &str) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        let pattern = format!("{}*{}", escaped(before), escaped(after));
        for server in self.connection().masters().await? {
            let mut cursor = "0".to_owned();
            loop {
                let (next, keys) = scan(&server, &cursor, &pattern).await?;
                let found = keys.iter().filter_map(|key| {
                    let name = key.strip_prefix(before)?.strip_suffix(after)?;
                    // with a colon it is of a prefix that begins like ours
                    (!name.is_empty() && !name.contains(':')).then(|| name.to_owned())
                });
                names.extend(found);
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(names.into_iter().collect())
    }
}

async fn scan(server: &Connection, cursor: &str, pattern: &str) -> Result<(String, Vec<String>)> {
    let mut command = cmd("SCAN");
    command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
    let mut reply = Reply::new("a step of SCAN", server.send(&command).await?)?;
    Ok((reply.text()?, reply.array()?.texts()?))
}

/// The text as a pattern that only it matches.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(escaped(r"{a*b?[c]\"), r"{a\*b\?\[c\]\\");
    }
}
