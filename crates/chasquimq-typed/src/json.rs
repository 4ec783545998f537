//! Values as JSON texts, and back.

use chasquimq::{Error, Result};
use serde::{de::DeserializeOwned, Serialize};

/// A value as JSON text.
pub(crate) fn to_json(what: &str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Invalid(format!("the {what} has no JSON form: {error}")))
}

/// What the text of a job's data or result says.
pub(crate) fn from_json<V: DeserializeOwned>(id: &str, what: &str, text: &str) -> Result<V> {
    serde_json::from_str(text).map_err(|error| Error::malformed(&format!("the {what} of job {id}"), error))
}
