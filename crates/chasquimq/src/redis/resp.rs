//! Replies as they come over a socket of the caller's own.

use redis::Value;

use crate::error::{Error, Result};

/// The first RESP2 reply and its length, or `None` while it is not whole. Replies here are a few numbers and ids, for which the
/// library's parser, made for any size and for streams, costs more than the rest of an add on this side.
pub(super) fn parse(bytes: &[u8]) -> Option<(Result<Value>, usize)> {
    let line_end = line_end(bytes)?;
    let next = line_end + 2;
    if line_end == 0 {
        return Some((Err(Error::malformed("a reply", "an empty line")), next));
    }
    let line = std::str::from_utf8(&bytes[1..line_end]).unwrap_or("");
    let number = || line.parse::<i64>().ok();
    let value = match (bytes[0], number()) {
        (b'+', _) => Value::SimpleString(line.to_owned()),
        (b'-', _) => return Some((Err(Error::Refused(line.to_owned().into())), next)),
        (b':', Some(number)) => Value::Int(number),
        (b'$' | b'*', Some(len)) if len < 0 => Value::Nil,
        (b'$', Some(len)) => {
            let end = next + len as usize;
            if bytes.len() < end + 2 {
                return None;
            }
            return Some((Ok(Value::BulkString(bytes[next..end].to_vec())), end + 2));
        }
        (b'*', Some(len)) => return parse_array(bytes, next, len as usize),
        _ => return Some((Err(Error::malformed("a reply", line)), next)),
    };
    Some((Ok(value), next))
}

/// Where the reply at `at` ends, or `None` while it is not whole.
pub(super) fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let line_end = at + line_end(&bytes[at..])?;
    let next = line_end + 2;
    let len = std::str::from_utf8(&bytes[at + 1..line_end.max(at + 1)])
        .ok()
        .and_then(|line| line.parse::<usize>().ok());
    match (bytes[at], len) {
        (b'$', Some(len)) => (bytes.len() >= next + len + 2).then_some(next + len + 2),
        (b'*', Some(len)) => (0..len).try_fold(next, |at, _| skip(bytes, at)),
        _ => Some(next),
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    (bytes.len() > end + 1).then_some(end)
}

fn parse_array(bytes: &[u8], mut at: usize, len: usize) -> Option<(Result<Value>, usize)> {
    let mut values = Vec::with_capacity(len.min(1024));
    let mut failed = None;
    for _ in 0..len {
        let (value, n) = parse(&bytes[at..])?;
        at += n;
        match value {
            Ok(value) => values.push(value),
            Err(error) => failed = Some(error),
        }
    }
    Some((failed.map_or(Ok(Value::Array(values)), Err), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_counts_once_it_is_whole() {
        let reply = b"*2\r\n:7\r\n*2\r\n:0\r\n$3\r\nabc\r\n";
        for end in 0..reply.len() {
            assert!(parse(&reply[..end]).is_none(), "{end}");
        }
        let (value, len) = parse(reply).expect("whole");
        let inner = Value::Array(vec![Value::Int(0), Value::BulkString(b"abc".to_vec())]);
        assert_eq!(
            (value.expect("value"), len),
            (Value::Array(vec![Value::Int(7), inner]), reply.len())
        );
    }

    #[test]
    fn a_large_reply_is_skipped_over_as_it_is_parsed() {
        let reply = b"*4\r\n:7\r\n$-1\r\n*0\r\n$3\r\na\r\n\r\n:8\r\n";
        for end in 0..reply.len() {
            let parsed = parse(&reply[..end]).map(|(_, len)| len);
            assert_eq!(skip(&reply[..end], 0), parsed, "{end}");
        }
    }

    #[test]
    fn what_follows_is_the_next_reply() {
        assert_eq!(parse(b"*2\r\n:7\r\n*0\r\n:8\r\n").expect("whole").1, 12);
        assert_eq!(parse(b"$-1\r\n").expect("whole").0.expect("value"), Value::Nil);
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let (refusal, len) = parse(b"-NOSCRIPT No matching script.\r\n+OK\r\n").expect("whole");
        assert_eq!(len, 31);
        assert_eq!(
            refusal.expect_err("refusal").to_string(),
            "NOSCRIPT No matching script."
        );
    }
}
