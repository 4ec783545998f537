//! MessagePack, as the scripts read and write it: values one behind the other, no maps but state fields.

use std::fmt;

use crate::error::{Error, Result};

/// Writes MessagePack values one behind the other.
#[derive(Debug, Default, Clone)]
pub struct Packer(pub Vec<u8>);

// writing to a Vec cannot fail
impl Packer {
    /// A packer with room for about this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// An array of texts.
    pub(crate) fn of_texts<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let mut packer = Self::default();
        packer.column(texts, false);
        packer
    }

    /// Starts an array of `len` values.
    #[inline]
    pub fn array(&mut self, len: usize) -> &mut Self {
        let _ = rmp::encode::write_array_len(&mut self.0, len as u32);
        self
    }

    /// Starts a map of `len` pairs.
    #[inline]
    pub fn map(&mut self, len: usize) -> &mut Self {
        let _ = rmp::encode::write_map_len(&mut self.0, len as u32);
        self
    }

    /// Writes a text.
    #[inline]
    pub fn str(&mut self, text: &str) -> &mut Self {
        let _ = rmp::encode::write_str(&mut self.0, text);
        self
    }

    /// Writes a column of texts: the first alone (or an empty text) when it stands for all of them, else an array.
    pub fn column<'a>(&mut self, mut texts: impl ExactSizeIterator<Item = &'a str>, is_same: bool) -> &mut Self {
        if is_same {
            return self.str(texts.next().unwrap_or(""));
        }
        self.array(texts.len());
        for text in texts {
            self.str(text);
        }
        self
    }

    /// Writes an array of whole numbers.
    pub(crate) fn ints(&mut self, numbers: impl ExactSizeIterator<Item = i64>) -> &mut Self {
        self.array(numbers.len());
        for number in numbers {
            self.int(number);
        }
        self
    }

    /// Writes bytes as a text, which is what Lua knows.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let _ = rmp::encode::write_str_len(&mut self.0, bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes a whole number.
    #[inline]
    pub fn int(&mut self, number: i64) -> &mut Self {
        let _ = rmp::encode::write_sint(&mut self.0, number);
        self
    }

    /// Writes a number with a fraction.
    #[inline]
    pub fn float(&mut self, number: f64) -> &mut Self {
        let _ = rmp::encode::write_f64(&mut self.0, number);
        self
    }

    /// Writes nil.
    #[inline]
    pub fn nil(&mut self) -> &mut Self {
        let _ = rmp::encode::write_nil(&mut self.0);
        self
    }
}

/// Reads MessagePack values one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// One value, borrowed.
#[derive(Clone, PartialEq)]
pub enum Item<'a> {
    /// nil
    Nil,
    /// a truth value
    Bool(bool),
    /// any number
    Number(f64),
    /// a text or bytes
    Bytes(&'a [u8]),
    /// an array of so many values follows
    Array(usize),
    /// a map of so many pairs follows
    Map(usize),
}

/// Without what a text says, which may be long and is nobody else's.
impl fmt::Debug for Item<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Nil => formatter.write_str("nil"),
            Item::Bool(truth) => write!(formatter, "{truth}"),
            Item::Number(number) => write!(formatter, "the number {number}"),
            Item::Bytes(bytes) => write!(formatter, "a text of {} bytes", bytes.len()),
            Item::Array(len) => write!(formatter, "an array of {len} values"),
            Item::Map(len) => write!(formatter, "a map of {len} pairs"),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next value's head, and its bytes if it is a text.
    /// # Errors
    /// [`Error::Malformed`] on a truncated or foreign value.
    pub fn item(&mut self) -> Result<Item<'a>> {
        let marker = *self.rest.first().ok_or_else(truncated)?;
        self.rest = &self.rest[1..];
        Ok(match marker {
            0x00..=0x7f => Item::Number(f64::from(marker)),
            0xe0..=0xff => Item::Number(f64::from(marker as i8)),
            0x80..=0x8f => Item::Map(usize::from(marker & 0x0f)),
            0x90..=0x9f => Item::Array(usize::from(marker & 0x0f)),
            0xa0..=0xbf => self.bytes_of(usize::from(marker & 0x1f))?,
            0xc0 => Item::Nil,
            0xc2 => Item::Bool(false),
            0xc3 => Item::Bool(true),
            0xc4 | 0xd9 => self.long_bytes(1)?,
            0xc5 | 0xda => self.long_bytes(2)?,
            0xc6 | 0xdb => self.long_bytes(4)?,
            0xca => Item::Number(f64::from(f32::from_bits(self.number(4)? as u32))),
            0xcb => Item::Number(f64::from_bits(self.number(8)?)),
            0xcc => Item::Number(self.number(1)? as f64),
            0xcd => Item::Number(self.number(2)? as f64),
            0xce => Item::Number(self.number(4)? as f64),
            0xcf => Item::Number(self.number(8)? as f64),
            0xd0 => Item::Number(f64::from(self.number(1)? as u8 as i8)),
            0xd1 => Item::Number(f64::from(self.number(2)? as u16 as i16)),
            0xd2 => Item::Number(f64::from(self.number(4)? as u32 as i32)),
            0xd3 => Item::Number(self.number(8)? as i64 as f64),
            0xdc => Item::Array(self.number(2)? as usize),
            0xdd => Item::Array(self.number(4)? as usize),
            0xde => Item::Map(self.number(2)? as usize),
            0xdf => Item::Map(self.number(4)? as usize),
            _ => {
                return Err(Error::malformed(
                    "a MessagePack value",
                    format_args!("marker {marker:#x}"),
                ))
            }
        })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn bytes_of(&mut self, len: usize) -> Result<Item<'a>> {
        self.take(len).map(Item::Bytes)
    }

    /// Bytes behind their number, which takes so many.
    fn long_bytes(&mut self, width: usize) -> Result<Item<'a>> {
        let len = self.number(width)?;
        self.bytes_of(len as usize)
    }

    fn number(&mut self, len: usize) -> Result<u64> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a text.
    /// # Errors
    /// [`Error::Malformed`] if the next value is something else, or not UTF-8.
    pub fn str(&mut self) -> Result<&'a str> {
        self.opt_str()?.ok_or_else(|| Error::malformed("a text", "nil"))
    }

    /// Reads a text or nil.
    /// # Errors
    /// As [`Reader::str`].
    pub fn opt_str(&mut self) -> Result<Option<&'a str>> {
        match self.item()? {
            Item::Nil => Ok(None),
            Item::Bytes(bytes) => Ok(Some(
                std::str::from_utf8(bytes).map_err(|error| Error::malformed("a text", error))?,
            )),
            other => Err(Error::malformed("a text", format_args!("{other:?}"))),
        }
    }

    /// Reads bytes.
    /// # Errors
    /// [`Error::Malformed`] if the next value is something else.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        match self.item()? {
            Item::Bytes(bytes) => Ok(bytes),
            other => Err(Error::malformed("bytes", format_args!("{other:?}"))),
        }
    }

    /// Reads a number.
    /// # Errors
    /// [`Error::Malformed`] if the next value is something else.
    pub fn float(&mut self) -> Result<f64> {
        match self.item()? {
            Item::Number(number) => Ok(number),
            other => Err(Error::malformed("a number", format_args!("{other:?}"))),
        }
    }

    /// Reads a whole number; a fraction is cut off.
    /// # Errors
    /// As [`Reader::float`].
    pub fn int(&mut self) -> Result<i64> {
        Ok(self.float()? as i64)
    }

    /// Reads the head of an array.
    /// # Errors
    /// [`Error::Malformed`] if the next value is something else. An empty map counts: Lua cannot tell the two apart.
    pub fn array(&mut self) -> Result<usize> {
        match self.item()? {
            Item::Array(len) => Ok(len),
            Item::Map(0) => Ok(0),
            other => Err(Error::malformed("an array", format_args!("{other:?}"))),
        }
    }

    /// Passes over one value, whatever it holds.
    /// # Errors
    /// [`Error::Malformed`] if it is truncated.
    pub fn skip(&mut self) -> Result<()> {
        let mut left = 1usize;
        while left > 0 {
            left -= 1;
            match self.item()? {
                Item::Array(len) => left = left.saturating_add(len),
                Item::Map(len) => left = left.saturating_add(len.saturating_mul(2)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn truncated() -> Error {
    Error::malformed("a MessagePack value", "truncated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_read_back() {
        let mut packer = Packer::default();
        packer.array(4).int(-300).str("ñandú").nil().float(1.5);
        let mut reader = Reader::new(&packer.0);
        assert_eq!(reader.array().expect("array"), 4);
        assert_eq!(reader.int().expect("int"), -300);
        assert_eq!(reader.str().expect("str"), "ñandú");
        assert_eq!(reader.opt_str().expect("nil"), None);
        assert_eq!(reader.float().expect("float"), 1.5);
        assert!(reader.is_empty());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let mut packer = Packer::default();
        packer.array(2).int(1_700_000_000_000).str(&"x".repeat(300));
        for end in 0..packer.0.len() {
            assert!(Reader::new(&packer.0[..end]).skip().is_err(), "{end}");
        }
        assert!(Reader::new(&packer.0).skip().is_ok());
    }
}
