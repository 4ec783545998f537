//! Names of a queue's keys. Every physical key is made here or, from the base, in a script.

/// The names of one queue: what users see, and where it lives.
#[derive(Debug, Clone)]
pub struct Keys {
    /// `<prefix>:<queue>`, as in BullMQ: what users see and what child keys start with.
    pub qualified_name: String,
    /// What every physical key starts with. One hash tag holds the whole queue on one cluster slot.
    pub base: String,
}

impl Keys {
    /// Keys of the queue `name` under `prefix`.
    ///
    /// Without a hash tag of the user's the base is `{prefix:name}:`, which no BullMQ key starts with. A prefix that brings its own
    /// `{tag}` keeps it, and a marker keeps the keys apart from BullMQ's.
    pub fn new(prefix: &str, name: &str) -> Self {
        let qualified_name = format!("{prefix}:{name}");
        let tagged = prefix
            .find('{')
            .is_some_and(|open| prefix[open..].find('}').is_some_and(|close| close > 1));
        let base = if tagged {
            format!("{qualified_name}:chasqui:")
        } else {
            format!("{{{qualified_name}}}:")
        };
        Self { qualified_name, base }
    }

    /// The physical key with this suffix.
    pub fn key(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_lives_in_one_hash_tag() {
        assert_eq!(Keys::new("bull", "mail").key("log"), "{bull:mail}:log");
    }

    #[test]
    fn a_tag_of_the_user_stays_and_gets_a_marker() {
        assert_eq!(Keys::new("{app}", "mail").key("log"), "{app}:mail:chasqui:log");
        assert_eq!(Keys::new("{}", "mail").key("log"), "{{}:mail}:log");
    }
}
