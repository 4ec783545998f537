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
            other => Err(Error::malformed(what, shape(&other))),
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
        self.rest().iter().filter_map(|value| match value {
            Value::Int(number) => Some(*number),
            _ => None,
        })
    }

    /// The values not read yet.
    pub fn rest(&self) -> &[Value] {
        self.values.as_slice()
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
            other => Err(Error::malformed(self.what, shape(&other))),
        }
    }

    /// The next value, a text or nil.
    /// # Errors
    /// As [`Reply::array`].
    pub fn opt_text(&mut self) -> Result<Option<String>> {
        match self.take_nil() {
            true => Ok(None),
            false => self.text().map(Some),
        }
    }

    /// The next value, bytes or nil.
    /// # Errors
    /// As [`Reply::array`].
    pub(crate) fn opt_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        match self.take_nil() {
            true => Ok(None),
            false => self.bytes().map(Some),
        }
    }

    /// Passes over the next value if it is nil.
    fn take_nil(&mut self) -> bool {
        let is_nil = matches!(self.rest().first(), Some(Value::Nil));
        if is_nil {
            self.values.next();
        }
        is_nil
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
        other => Err(Error::malformed(what, shape(other))),
    }
}

/// What a value is, without what it says, which may be long and is nobody else's.
pub(crate) fn shape(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => format!("the number {number}"),
        Value::BulkString(bytes) => format!("a text of {} bytes", bytes.len()),
        Value::SimpleString(text) => format!("a text of {} bytes", text.len()),
        Value::Array(values) => format!("an array of {} values", values.len()),
        _ => "another value".to_owned(),
    }
}

/// Whether an answer to `ROLE` is that of a replica.
pub(crate) fn is_replica(role: &Value) -> bool {
    match role {
        Value::Array(role) => matches!(role.first(), Some(Value::BulkString(name)) if name != b"master"),
        _ => false,
    }
}
