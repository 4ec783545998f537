//! The group of a job: groups are served in turns (`lua/states/groups.lua`).

use serde_json::Value;

use super::{json::number, msgpack::Packer};

/// What the job option `group` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// Its name.
    pub id: String,
    /// Order in the group, the lower numbers first; 0 = none, before all others.
    pub priority: i64,
    /// The add is refused where more jobs would wait in the group; 0 = any number may.
    pub max_size: u64,
    /// How many turns the group has to one of another; 0 = as before.
    pub weight: f64,
    /// Whether a job that waits for its next try holds the group back; `None` = as before.
    pub strict: Option<bool>,
}

impl Group {
    /// The group of this name, of which nothing else is said.
    pub fn of(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Reads the option; `None` for what names no group.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let of = |name: &str| value.get(name).and_then(number).unwrap_or(0.0);
        let id = match value.get("id")? {
            Value::String(id) if !id.is_empty() => id.clone(),
            _ => return None,
        };
        Some(Self {
            id,
            priority: of("priority") as i64,
            max_size: of("maxSize") as u64,
            weight: of("weight"),
            strict: value
                .get("order")
                .and_then(Value::as_str)
                .map(|order| order == "strict"),
        })
    }

    /// As an add names it (`lua/transitions/add.lua`).
    pub(crate) fn pack(&self, packer: &mut Packer) {
        if self.max_size == 0 && self.weight == 0.0 && self.strict.is_none() {
            packer.str(&self.id);
        } else {
            packer
                .array(4)
                .str(&self.id)
                .int(self.max_size as i64)
                .float(self.weight)
                .int(match self.strict {
                    None => 0,
                    Some(true) => 1,
                    Some(false) => 2,
                });
        }
    }
}
