//! Reads script replies.

use redis::Value;

use crate::error::{Error, Result};

/// Reads the values of an array reply one by one.
#[derive(Debug)]
pub struct Reply {
    what: &'static str,
    values: std::vec::IntoIter<Value>,
}

impl Reply {
    /// Reads an array; `what` names it in errors.
    /// # Errors
    /// [`Error::Malformed`] if it is none.
    pub fn new(what: &'static str, value: Value) -> Result<Self> {
        match value {
            Value::Array(values) => Ok(Self {
                what,
                values: values.into_iter(),
            }),
            other => Err(Error::malformed(what, format_args!("{other:?}"))),
        }
    }

    /// True when every value was read.
    pub fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    /// Values not read yet.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The numbers among the values not read yet.
    pub fn numbers(&self) -> impl Iterator<Item = i64> + '_ {
        self.values.as_slice().iter().filter_map(|value| match value {
            Value::Int(number) => Some(*number),
            _ => None,
        })
    }

    fn next(&mut self) -> Result<Value> {
        self.values
            .next()
            .ok_or_else(|| Error::malformed(self.what, "too few values"))
    }

    /// The next value, an array.
    /// # Errors
    /// [`Error::Malformed`] if it is something else.
    pub fn array(&mut self) -> Result<Reply> {
        Reply::new(self.what, self.next()?)
    }

    /// The next value, a number.
    /// # Errors
    /// As [`Reply::array`].
    pub fn int(&mut self) -> Result<i64> {
        int(self.what, &self.next()?)
    }

    /// The next value, bytes.
    /// # Errors
    /// As [`Reply::array`].
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        match self.next()? {
            Value::BulkString(bytes) => Ok(bytes),
            Value::SimpleString(text) => Ok(text.into_bytes()),
            Value::Int(number) => Ok(number.to_string().into_bytes()),
            other => Err(Error::malformed(self.what, format_args!("{other:?}"))),
        }
    }

    /// The next value, a text or nil.
    /// # Errors
    /// As [`Reply::array`].
    pub fn opt_text(&mut self) -> Result<Option<String>> {
        match self.values.as_slice().first() {
            Some(Value::Nil) => {
                self.values.next();
                Ok(None)
            }
            _ => self.text().map(Some),
        }
    }

    /// All values that were not read yet, texts.
    /// # Errors
    /// As [`Reply::array`].
    pub fn texts(mut self) -> Result<Vec<String>> {
        let mut texts = Vec::with_capacity(self.len());
        while !self.is_empty() {
            texts.push(self.text()?);
        }
        Ok(texts)
    }

    /// The next value, a text. What is not UTF-8 in it is replaced: one bad value must not hide those around it.
    /// # Errors
    /// As [`Reply::array`].
    pub fn text(&mut self) -> Result<String> {
        let text = String::from_utf8(self.bytes()?);
        Ok(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// A reply that is one number.
/// # Errors
/// [`Error::Malformed`] if it is none.
pub fn int(what: &'static str, value: &Value) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .map(|number| number as i64)
            .ok_or_else(|| Error::malformed(what, "not a number")),
        other => Err(Error::malformed(what, format_args!("{other:?}"))),
    }
}

/// Whether an answer to `ROLE` is that of a replica.
pub(crate) fn is_replica(role: &Value) -> bool {
    match role {
        Value::Array(role) => matches!(role.first(), Some(Value::BulkString(name)) if name != b"master"),
        _ => false,
    }
}
