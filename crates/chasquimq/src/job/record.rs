//! Records: what is known of a job when it is added, for jobs that lie in no frame.

use std::borrow::Cow;

use super::{
    group::Group,
    msgpack::{Item, Packer, Reader},
    options::JobOptions,
};
use crate::error::{Error, Result};

/// Body of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Creation time, epoch ms.
    pub timestamp: u64,
    /// Options, JSON text.
    pub options: String,
    /// Name.
    pub name: String,
    /// Data, JSON text.
    pub data: String,
}

impl Body {
    /// What stands for a body that cannot be read.
    pub fn unreadable() -> Self {
        Self {
            timestamp: 0,
            options: "{}".into(),
            name: String::new(),
            data: "{}".into(),
        }
    }

    /// Reads a record's body.
    /// # Errors
    /// [`Error::Malformed`] when it is none.
    pub fn parse(blob: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(blob);
        if reader.array()? < 4 {
            return Err(Error::malformed("a job's record", "too few values"));
        }
        Ok(Self {
            timestamp: reader.int()? as u64,
            options: body_options(&mut reader)?.into_owned(),
            name: reader.str()?.to_owned(),
            data: reader.str()?.to_owned(),
        })
    }
}

/// A record's body: everything about a job that was known when it was added.
pub fn record_body(timestamp: u64, options: &str, name: &str, data: &str) -> Vec<u8> {
    body(4, timestamp, options, name, data).0
}

/// The body of a record with these options.
pub(crate) fn body_of(timestamp: u64, options: &JobOptions, name: &str, data: &str) -> Vec<u8> {
    match (&options.group, options.priority) {
        (Some(group), _) => grouped_body(timestamp, &options.text, name, data, group),
        (None, 0) => record_body(timestamp, &options.text, name, data),
        (None, priority) => prioritized_body(timestamp, &options.text, name, data, priority),
    }
}

/// The body of a record with a priority. The scripts read it there (`lua/states/prioritized.lua`).
pub fn prioritized_body(timestamp: u64, options: &str, name: &str, data: &str, priority: i64) -> Vec<u8> {
    let mut packer = body(5, timestamp, options, name, data);
    packer.int(priority);
    packer.0
}

/// The body of a record with a group. The scripts read it there (`lua/states/groups.lua`).
pub fn grouped_body(timestamp: u64, options: &str, name: &str, data: &str, group: &Group) -> Vec<u8> {
    let mut packer = body(6, timestamp, options, name, data);
    packer.int(group.priority).str(&group.id);
    packer.0
}

fn body(values: usize, timestamp: u64, options: &str, name: &str, data: &str) -> Packer {
    let mut packer = Packer::with_capacity(options.len() + name.len() + data.len() + 32);
    packer.array(values).int(timestamp as i64);
    match only_delay(options) {
        Some(delay_ms) => packer.int(delay_ms),
        None => packer.str(options),
    };
    packer.str(name).str(data);
    packer
}

const ONLY_DELAY: &str = "{\"delay\":";

/// The delay of options that name nothing else. They are stored as that number: most delayed jobs have no other option,
/// and one takes 170 bytes in the server; with a second short option, and therefore a text, 202.
fn only_delay(options: &str) -> Option<i64> {
    let digits = options.strip_prefix(ONLY_DELAY)?.strip_suffix('}')?;
    // as JSON.stringify writes it, so that the text comes back as it was
    let is_plain = digits.len() <= 15 && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

/// Options of a record, JSON text.
/// # Errors
/// [`crate::Error::Malformed`] when there are none.
pub(crate) fn body_options<'a>(body: &mut Reader<'a>) -> Result<Cow<'a, str>> {
    match body.item()? {
        Item::Number(delay_ms) => Ok(format!("{ONLY_DELAY}{}}}", delay_ms as i64).into()),
        Item::Bytes(text) => std::str::from_utf8(text)
            .map(Cow::from)
            .map_err(|error| Error::malformed("a job's options", error)),
        other => Err(Error::malformed("a job's options", format_args!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_back_as_they_were() {
        for options in [
            "{}",
            r#"{"delay":5}"#,
            r#"{"delay":3600000}"#,
            r#"{"delay":5.5}"#,
            r#"{"delay":-5}"#,
            r#"{"delay":007}"#,
            r#"{"delay":}"#,
            r#"{"delay":1,"attempts":2}"#,
            r#"{"delay":1234567890123456789}"#,
        ] {
            let body = record_body(7, options, "a", "1");
            let mut reader = Reader::new(&body);
            reader.array().expect("array");
            reader.int().expect("timestamp");
            assert_eq!(body_options(&mut reader).expect("options"), options);
        }
    }

    #[test]
    fn a_body_may_have_more_values_than_are_known() {
        let mut array = Packer::default();
        array.array(5).int(7).str("{}").str("mail").str("1").nil();
        let body = Body::parse(&array.0).expect("body");
        assert_eq!(
            (body.timestamp, body.name.as_str(), body.data.as_str()),
            (7, "mail", "1")
        );
        let mut short = Packer::default();
        short.array(3).int(7).str("{}").str("mail");
        assert!(Body::parse(&short.0).is_err());
    }
}
