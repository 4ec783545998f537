//! Which queues BullMQ has, found by their keys.

use chasquimq::{queue::search::escaped, Result};

use super::Migration;

impl Migration<'_> {
    /// Names of BullMQ's queues with this one's prefix, in order: all that have settings.
    /// # Errors
    /// As [`chasquimq::Queue::names`].
    pub async fn source_names(&self) -> Result<Vec<String>> {
        let prefix = self.queue.keys().prefix();
        let pattern = format!("{}:*:meta", escaped(prefix));
        self.queue.names_in_keys(&pattern, |key| name_in(key, prefix)).await
    }
}

/// The queue of this prefix whose settings a key holds.
fn name_in<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    let name = key.strip_prefix(prefix)?.strip_prefix(':')?.strip_suffix(":meta")?;
    // with a colon it is of a prefix that begins like ours, or a key of ours
    (!name.is_empty() && !name.contains(':')).then_some(name)
}

#[cfg(test)]
mod tests {
    use chasquimq::Keys;

    use super::*;

    #[test]
    fn a_name_is_found_in_the_keys_of_its_prefix_alone() {
        for prefix in ["bull", "{app}", "a:b", "{}"] {
            for name in ["mail", "{mail}", "{}", "a}b"] {
                assert_eq!(name_in(&format!("{prefix}:{name}:meta"), prefix), Some(name));
                let ours = Keys::new(prefix, name).key("meta");
                assert_eq!(name_in(&ours, prefix), None, "{ours}");
            }
        }
    }
}
