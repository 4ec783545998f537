//! What a child knows of its parent.

use serde::Deserialize;

use crate::keys::qualified_name;

/// Reference of a child to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parent {
    /// What the keys of the parent's queue start with.
    pub base: String,
    /// Its id.
    pub id: String,
    /// What becomes of it when the child fails.
    pub policy: Policy,
    /// Of a child that is or was in a frame: number of the first of its sibling range, and how many these are (`lua/jobs/sibling_ranges.lua`).
    #[serde(default)]
    pub range: Option<u64>,
    /// See `range`.
    #[serde(default)]
    pub range_len: Option<u64>,
}

impl Parent {
    /// `<prefix>:<queue>` of its queue, as in BullMQ.
    pub fn qualified_name(&self) -> &str {
        qualified_name(&self.base)
    }

    /// Its key as users see it.
    pub fn key(&self) -> String {
        format!("{}:{}", self.qualified_name(), self.id)
    }

    /// The reference as BullMQ stores it, JSON text.
    pub fn to_json(&self) -> String {
        let mut reference = serde_json::json!({ "id": self.id, "queueKey": self.qualified_name() });
        if let Some(mark) = self.policy.mark() {
            reference[mark] = true.into();
        }
        reference.to_string()
    }
}

/// What a child's failure does to its parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Policy {
    /// Nothing: it goes on waiting.
    #[default]
    #[serde(rename = "")]
    Wait,
    /// It fails too.
    #[serde(rename = "f")]
    Fail,
    /// It starts at once.
    #[serde(rename = "c")]
    Continue,
    /// It counts the child as done.
    #[serde(rename = "i")]
    Ignore,
    /// It forgets the child.
    #[serde(rename = "r")]
    Remove,
}

impl Policy {
    /// As the scripts know it.
    pub fn letter(self) -> &'static str {
        match self {
            Policy::Wait => "",
            Policy::Fail => "f",
            Policy::Continue => "c",
            Policy::Ignore => "i",
            Policy::Remove => "r",
        }
    }

    /// That of a letter; what a newer version may write does nothing.
    pub fn of(letter: &str) -> Self {
        match letter {
            "f" => Policy::Fail,
            "c" => Policy::Continue,
            "i" => Policy::Ignore,
            "r" => Policy::Remove,
            _ => Policy::Wait,
        }
    }

    /// The mark of a child's `parent` in BullMQ.
    pub fn mark(self) -> Option<&'static str> {
        match self {
            Policy::Wait => None,
            Policy::Fail => Some("fpof"),
            Policy::Continue => Some("cpof"),
            Policy::Ignore => Some("idof"),
            Policy::Remove => Some("rdof"),
        }
    }
}
