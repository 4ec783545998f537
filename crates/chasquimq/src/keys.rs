//! Names of a queue's keys. Every physical key is made here or, from the base, in a script.

// keeps the keys of a name with a tag apart from BullMQ's
const TAGGED: &str = ":chasqui:";

/// What users see of the queue whose keys start with this.
pub(crate) fn qualified_name(base: &str) -> &str {
    let untagged = || base.strip_prefix('{').and_then(|name| name.strip_suffix("}:"));
    base.strip_suffix(TAGGED).or_else(untagged).unwrap_or(base)
}

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
    /// Without a hash tag of the user's the base is `{prefix:name}:`, which no BullMQ key starts with. A prefix or a name that brings its
    /// own `{tag}` keeps it, and a marker keeps the keys apart from BullMQ's: in a cluster both lie in one slot, so that jobs move between
    /// them in one step. Without a tag BullMQ's keys of a queue lie in many slots, and it cannot work there.
    pub fn new(prefix: &str, name: &str) -> Self {
        let qualified_name = format!("{prefix}:{name}");
        let base = match hash_tag(&qualified_name) {
            Some(_) => format!("{qualified_name}{TAGGED}"),
            None => format!("{{{qualified_name}}}:"),
        };
        Self { qualified_name, base }
    }

    /// Whether the user's names bring a hash tag.
    pub fn is_tagged(&self) -> bool {
        self.base.ends_with(TAGGED)
    }

    /// Keys of the queue that users see as `<prefix>:<queue>`.
    pub fn of_qualified(name: &str) -> Self {
        let (prefix, queue) = name.rsplit_once(':').unwrap_or(("", name));
        Self::new(prefix, queue)
    }

    /// What `CLIENT LIST` shows of the queue's workers: `<prefix>:<name in base64>`, and behind `:w:` the worker's own name if it has one.
    pub fn worker_client(&self, worker: &str) -> String {
        let (prefix, name) = self.qualified_name.rsplit_once(':').unwrap_or_default();
        let base = format!("{prefix}:{}", base64(name.as_bytes()));
        if worker.is_empty() {
            base
        } else {
            format!("{base}:w:{worker}")
        }
    }

    /// What `CLIENT LIST` shows of the queue's event readers.
    pub fn events_client(&self) -> String {
        format!("{}:qe", self.worker_client(""))
    }

    /// The key under which the server remembers a client's call in a slot.
    pub(crate) fn memo(&self, client: &str, slot: impl std::fmt::Display) -> String {
        format!("{}memo:{client}:{slot}", self.base)
    }

    /// What stands before the queue's name in what users see.
    pub fn prefix(&self) -> &str {
        self.qualified_name.rsplit_once(':').map_or("", |(prefix, _)| prefix)
    }

    /// The physical key with this suffix.
    pub fn key(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.base)
    }
}

/// A queue of this name under BullMQ's prefix, `bull`.
impl From<&str> for Keys {
    fn from(name: &str) -> Self {
        Keys::new("bull", name)
    }
}

/// As from a `&str`.
impl From<&String> for Keys {
    fn from(name: &String) -> Self {
        Keys::from(name.as_str())
    }
}

/// What stands between the first brace of a key and the next that closes.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    Some(tag).filter(|tag| !tag.is_empty())
}

/// The cluster slot of a key: CRC-16 (XMODEM) of its hash tag, if it has one.
pub(crate) fn slot_of(key: &str) -> u16 {
    let mut crc = 0_u16;
    for byte in hash_tag(key).unwrap_or(key).bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
        }
    }
    crc % 16_384
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_lives_in_one_hash_tag() {
        assert_eq!(Keys::new("bull", "mail").key("log"), "{bull:mail}:log");
    }

    #[test]
    fn a_slot_is_that_of_the_tag() {
        assert_eq!(slot_of("123456789"), 0x31c3);
        assert_eq!(slot_of("{user1000}.following"), slot_of("user1000"));
        assert_eq!(slot_of("foo{}{bar}"), 8363);
        assert_eq!(slot_of("foo{{bar}}zap"), slot_of("{bar"));
        assert_eq!(
            slot_of(&Keys::new("{app}", "a").base),
            slot_of(&Keys::new("{app}", "b").base)
        );
    }

    #[test]
    fn clients_are_named_as_in_bullmq() {
        for (name, encoded) in [("mail", "bWFpbA=="), ("mails", "bWFpbHM="), ("emails", "ZW1haWxz")] {
            assert_eq!(Keys::new("bull", name).worker_client(""), format!("bull:{encoded}"));
        }
        assert_eq!(Keys::new("bull", "q16").worker_client("wname"), "bull:cTE2:w:wname");
        assert_eq!(Keys::new("bull", "q16").events_client(), "bull:cTE2:qe");
    }

    #[test]
    fn a_tag_of_the_user_stays_and_gets_a_marker() {
        assert_eq!(Keys::new("{app}", "mail").key("log"), "{app}:mail:chasqui:log");
        assert_eq!(Keys::new("bull", "{mail}").key("log"), "bull:{mail}:chasqui:log");
        assert_eq!(Keys::new("{}", "mail").key("log"), "{{}:mail}:log");
        assert_eq!(Keys::new("bull", "{}{mail}").key("log"), "{bull:{}{mail}}:log");
    }

    /// All names that may or may not bring a tag.
    fn all_keys() -> impl Iterator<Item = Keys> {
        let prefixes = ["bull", "{app}", "a:b", "{}", "a{b}:c", "a{b", "b}c"];
        let names = ["mail", "{mail}", "{a}{b}", "{}", "}{", "c}d", "{{x}}", "a{}b"];
        prefixes
            .into_iter()
            .flat_map(move |prefix| names.map(|name| Keys::new(prefix, name)))
    }

    #[test]
    fn a_queue_lies_where_bullmq_has_it_wherever_bullmq_has_it_in_one_slot() {
        for keys in all_keys() {
            let slots = ["meta", "wait", "7:logs"].map(|key| slot_of(&format!("{}:{key}", keys.qualified_name)));
            let is_one = slots.iter().all(|slot| *slot == slots[0]);
            assert_eq!(is_one, keys.is_tagged(), "{keys:?}");
            let own = ["state", "log", "jobs"].map(|key| slot_of(&keys.key(key)));
            assert!(own.iter().all(|slot| *slot == slot_of(&keys.base)), "{keys:?}");
            assert!(!is_one || own[0] == slots[0], "{keys:?}");
        }
    }

    #[test]
    fn a_base_tells_the_name_users_see() {
        for keys in all_keys() {
            assert_eq!(qualified_name(&keys.base), keys.qualified_name);
            assert_eq!(Keys::of_qualified(&keys.qualified_name).base, keys.base);
        }
    }
}
