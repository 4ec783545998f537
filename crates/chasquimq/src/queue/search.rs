//! Which queues there are, found by their keys.

use std::collections::BTreeSet;

use redis::cmd;

use super::Queue;
use crate::{
    error::Result,
    keys::{qualified_name, Keys},
    redis::{call::reply::Reply, connection::Connection},
};

/// Keys the server looks at in one step.
const STEP: usize = 1000;
/// What each queue of ours has, as its base is followed by it.
const STATE: &str = "state";

impl Queue {
    /// Names of the queues with this one's prefix, in order: all that ever had a job or a setting and were not obliterated. Walks all keys
    /// of the server, in a cluster of each master, some a step.
    /// # Errors
    /// As [`Queue::counts`]; a user may not be allowed to `SCAN`.
    pub async fn names(&self) -> Result<Vec<String>> {
        let prefix = self.keys().prefix();
        // a name with a hash tag stands in its keys otherwise than one without
        let pattern = format!("*{}:*:{STATE}", escaped(prefix));
        self.names_in_keys(&pattern, |key| name_in(key, prefix)).await
    }

    /// What `name_in` finds in the keys that match a pattern, each once and in order. Walks all keys as [`Queue::names`] does.
    /// # Errors
    /// As [`Queue::names`].
    pub async fn names_in_keys(&self, pattern: &str, name_in: impl Fn(&str) -> Option<&str>) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        for server in self.connection().masters().await? {
            let mut cursor = "0".to_owned();
            loop {
                let (next, keys) = scan(&server, &cursor, pattern, STEP).await?;
                names.extend(keys.iter().filter_map(|key| name_in(key).map(str::to_owned)));
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(names.into_iter().collect())
    }
}

/// The queue of this prefix whose state a key holds.
fn name_in<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let base = key.strip_suffix(STATE)?;
    let (of, name) = qualified_name(base).rsplit_once(':')?;
    (of == prefix && !name.is_empty() && Keys::new(of, name).base == base).then_some(name)
}

/// Looks at some keys of a server, `count` or so. Gives where to go on, and those that the pattern matches.
/// # Errors
/// As [`Connection::send`], and [`Error::Malformed`](crate::Error::Malformed).
pub async fn scan(server: &Connection, cursor: &str, pattern: &str, count: usize) -> Result<(String, Vec<String>)> {
    let mut command = cmd("SCAN");
    command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(count);
    let mut reply = Reply::new("a step of SCAN", server.send(&command).await?)?;
    Ok((reply.text()?, reply.array()?.texts()?))
}

/// The text as a pattern that only it matches.
pub fn escaped(text: &str) -> String {
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
    fn a_name_is_found_in_the_keys_of_its_prefix_alone() {
        for prefix in ["bull", "{app}", "a:b", "{}"] {
            for name in ["mail", "{mail}", "{}", "a}b"] {
                let key = Keys::new(prefix, name).key(STATE);
                assert_eq!(name_in(&key, prefix), Some(name), "{key}");
                assert_eq!(name_in(&key, "b"), None, "{key}");
            }
        }
        for key in [
            "bull:mail:state",
            "{bull:}:state",
            "{bull:{mail}}:state",
            "bull:mail:chasqui:state",
        ] {
            assert_eq!(name_in(key, "bull"), None, "{key}");
        }
    }

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(escaped(r"{a*b?[c]\"), r"{a\*b\?\[c\]\\");
    }
}
