//! Where replies end, found without reading what is in them. What no server of Redis answers is told from what it answers at once, and nothing is kept
//! for what was only announced.

use std::{fmt, io};

/// Arrays in arrays. The deepest reply that is read here has five.
pub(crate) const DEEPEST: usize = 32;
/// Values of one array.
pub(crate) const MOST_VALUES: u64 = 1 << 24;
/// Bytes of a text. A server takes a quarter of that, unless its `proto-max-bulk-len` says otherwise.
pub(crate) const LONGEST_TEXT: u64 = i32::MAX as u64;
/// Bytes of a line: of a number, or of an error, which repeats what it was about.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes of it that are shown.
const SHOWN: usize = 40;

/// What came is no reply. Reads as the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign(String);

impl Foreign {
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }

    /// Of a line.
    fn line(what: &str, line: &[u8]) -> Self {
        let shown = line[..line.len().min(SHOWN)].escape_ascii();
        Self(format!("{what}: {shown}"))
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Foreign {}

impl From<Foreign> for io::Error {
    fn from(foreign: Foreign) -> Self {
        Self::new(io::ErrorKind::InvalidData, foreign)
    }
}

/// Why it is no reply, if it is for that that reading failed.
pub(crate) fn foreign_in(error: &io::Error) -> Option<&Foreign> {
    error.get_ref()?.downcast_ref()
}

/// What a line announces.
#[derive(Debug, PartialEq)]
pub(crate) enum Head<'a> {
    Simple(&'a str),
    Error(&'a str),
    Int(i64),
    Nil,
    /// A text of so many bytes.
    Text(u64),
    /// So many values.
    Array(u64),
    /// So many values that nobody has asked for.
    Push(u64),
}

impl<'a> Head<'a> {
    /// Reads a line, without its end.
    pub fn parse(line: &'a [u8]) -> Result<Self, Foreign> {
        let Some((kind, rest)) = line.split_first() else {
            return Err(Foreign::new("an empty line"));
        };
        let text = || std::str::from_utf8(rest).map_err(|_| Foreign::line("a line that is no text", line));
        let number = || {
            let number = text()?.parse::<i64>();
            number.map_err(|_| Foreign::line("not a number", line))
        };
        let length = |most: u64| {
            let length = u64::try_from(number()?).ok();
            match length {
                Some(length) if length > most => Err(Foreign::line("too long", line)),
                length => Ok(length),
            }
        };
        Ok(match kind {
            b'+' => Head::Simple(text()?),
            b'-' => Head::Error(text()?),
            b':' => Head::Int(number()?),
            b'$' => length(LONGEST_TEXT)?.map_or(Head::Nil, Head::Text),
            b'*' => length(MOST_VALUES)?.map_or(Head::Nil, Head::Array),
            // of RESP3, what a connection that bears news has besides (`wire::news`)
            b'_' if rest.is_empty() => Head::Nil,
            b'~' => Head::Array(length(MOST_VALUES)?.ok_or_else(|| Foreign::line("not a number", line))?),
            b'%' => {
                let pairs = length(MOST_VALUES / 2)?;
                Head::Array(2 * pairs.ok_or_else(|| Foreign::line("not a number", line))?)
            }
            b'>' => Head::Push(length(MOST_VALUES)?.ok_or_else(|| Foreign::line("not a number", line))?),
            _ => return Err(Foreign::line("not of RESP2", line)),
        })
    }
}

/// The length of the line at the start of these bytes, without its end; `None` while that is not there.
pub(crate) fn line_len(bytes: &[u8]) -> Result<Option<usize>, Foreign> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return match bytes.len() > LONGEST_LINE {
            true => Err(Foreign::line("a line without an end", bytes)),
            false => Ok(None),
        };
    };
    match bytes[..end].split_last() {
        Some((b'\r', line)) => Ok(Some(line.len())),
        _ => Err(Foreign::line("a line with another end", bytes)),
    }
}

/// A way through one reply after the other, in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    // values to come of arrays that are not over, the outermost first
    open: Vec<u64>,
    // the start of a line
    line: Vec<u8>,
    // bytes of a text that are to come, with its end
    text: u64,
}

impl Framing {
    /// Goes on. Gives how many of these bytes belong to the reply, if it ends here; what is behind them is the next one's.
    pub fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Foreign> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.text {
                0 => self.pass_line(rest)?,
                _ => self.pass_text(rest)?,
            };
            if self.text == 0 && self.line.is_empty() && self.ends() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn pass_line(&mut self, bytes: &[u8]) -> Result<usize, Foreign> {
        if self.line.is_empty() {
            if let Some(len) = line_len(bytes)? {
                self.enter(Head::parse(&bytes[..len])?)?;
                return Ok(len + 2);
            }
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        self.line.extend_from_slice(piece);
        if end.is_some() || self.line.len() > LONGEST_LINE {
            let line = std::mem::take(&mut self.line);
            let len = line_len(&line)?.unwrap_or_default();
            self.enter(Head::parse(&line[..len])?)?;
        }
        Ok(piece.len())
    }

    fn enter(&mut self, head: Head<'_>) -> Result<(), Foreign> {
        match head {
            Head::Text(bytes) => self.text = bytes + 2,
            Head::Array(values) | Head::Push(values) => {
                if self.open.len() == DEEPEST {
                    return Err(Foreign::new(format_args!("more than {DEEPEST} arrays in each other")));
                }
                // with itself
                self.open.push(values + 1);
            }
            Head::Simple(_) | Head::Error(_) | Head::Int(_) | Head::Nil => {}
        }
        Ok(())
    }

    fn pass_text(&mut self, bytes: &[u8]) -> Result<usize, Foreign> {
        let passed = self.text.saturating_sub(2).min(bytes.len() as u64);
        self.text -= passed;
        let mut at = passed as usize;
        while let (1..=2, Some(byte)) = (self.text, bytes.get(at)) {
            if *byte != if self.text == 2 { b'\r' } else { b'\n' } {
                return Err(Foreign::line("a text that goes on behind its end", &bytes[at..]));
            }
            self.text -= 1;
            at += 1;
        }
        Ok(at)
    }

    /// A value, or the head of an array, is over. Whether the reply is.
    fn ends(&mut self) -> bool {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }
}
