//! Replies as they come.

use redis::{PushKind, Value};

use super::framing::{line_len, Foreign, Head, DEEPEST};
use crate::error::{Error, Result};

/// Bytes of the shortest value.
const SHORTEST: usize = 3;
/// Values for which there is room before they are there, at most.
const MOST_ROOM: usize = 1024;

/// A reply, or what refuses; `None` while it is not whole.
type Parsed<T> = std::result::Result<Option<T>, Foreign>;

/// The first reply and its length. Most are a few numbers and ids, for which the library's parser, made for any size and for streams, costs more
/// than the rest of an add on this side.
pub(crate) fn parse(bytes: &[u8]) -> Parsed<(Result<Value>, usize)> {
    let mut at = 0;
    let value = parse_at(bytes, &mut at, 0)?;
    Ok(value.map(|value| (value, at)))
}

fn parse_at(bytes: &[u8], at: &mut usize, depth: usize) -> Parsed<Result<Value>> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let Some(len) = line_len(rest)? else {
        return Ok(None);
    };
    *at += len + 2;
    Ok(Some(Ok(match Head::parse(&rest[..len])? {
        Head::Simple("OK") => Value::Okay,
        Head::Simple(text) => Value::SimpleString(text.to_owned()),
        Head::Error(text) => return Ok(Some(Err(Error::Refused(text.to_owned().into())))),
        Head::Int(number) => Value::Int(number),
        Head::Nil => Value::Nil,
        Head::Text(len) => return parse_text(bytes, at, len as usize),
        Head::Array(_) | Head::Push(_) if depth == DEEPEST => {
            return Err(Foreign::new(format_args!("more than {DEEPEST} arrays in each other")));
        }
        Head::Array(values) => return parse_array(bytes, at, values as usize, depth),
        Head::Push(values) => {
            let data = parse_array(bytes, at, values as usize, depth)?;
            return Ok(data.map(|data| data.map(to_push)));
        }
    })))
}

/// What nobody has asked for. Its kind comes first, by the library's names.
fn to_push(data: Value) -> Value {
    let mut data = match data {
        Value::Array(data) => data,
        other => vec![other],
    };
    let kind = match data.is_empty() {
        true => Value::Nil,
        false => data.remove(0),
    };
    let kind = match kind {
        Value::BulkString(kind) => String::from_utf8_lossy(&kind).into_owned(),
        _ => String::new(),
    };
    let kind = match kind.as_str() {
        "smessage" => PushKind::SMessage,
        "ssubscribe" => PushKind::SSubscribe,
        "sunsubscribe" => PushKind::SUnsubscribe,
        _ => PushKind::Other(kind),
    };
    Value::Push { kind, data }
}

fn parse_text(bytes: &[u8], at: &mut usize, len: usize) -> Parsed<Result<Value>> {
    let Some((text, end)) = bytes.get(*at..).and_then(|rest| rest.split_at_checked(len)) else {
        return Ok(None);
    };
    match end {
        [] | [b'\r'] => return Ok(None),
        [b'\r', b'\n', ..] => {}
        _ => return Err(Foreign::new("a text that goes on behind its end")),
    }
    *at += len + 2;
    Ok(Some(Ok(Value::BulkString(text.to_vec()))))
}

fn parse_array(bytes: &[u8], at: &mut usize, len: usize, depth: usize) -> Parsed<Result<Value>> {
    let room = bytes.len().saturating_sub(*at) / SHORTEST;
    let mut values = Vec::with_capacity(len.min(room).min(MOST_ROOM));
    let mut failed = None;
    for _ in 0..len {
        let Some(value) = parse_at(bytes, at, depth + 1)? else {
            return Ok(None);
        };
        match value {
            Ok(value) => values.push(value),
            Err(error) => failed = Some(error),
        }
    }
    Ok(Some(failed.map_or(Ok(Value::Array(values)), Err)))
}

#[cfg(test)]
mod tests {
    use redis::ErrorKind;

    use super::*;
    use crate::{
        garbage::{changes, Chance},
        redis::wire::framing::{Framing, LONGEST_TEXT, MOST_VALUES},
    };

    fn whole(bytes: &[u8]) -> (Result<Value>, usize) {
        parse(bytes).expect("a reply").expect("all of it")
    }

    #[test]
    fn a_reply_counts_once_it_is_whole() {
        let reply = b"*2\r\n:7\r\n*2\r\n:0\r\n$3\r\nabc\r\n";
        for end in 0..reply.len() {
            assert!(parse(&reply[..end]).expect("a reply").is_none(), "{end}");
        }
        let (value, len) = whole(reply);
        let inner = Value::Array(vec![Value::Int(0), Value::BulkString(b"abc".to_vec())]);
        assert_eq!(
            (value.expect("value"), len),
            (Value::Array(vec![Value::Int(7), inner]), reply.len())
        );
    }

    #[test]
    fn what_follows_is_the_next_reply() {
        assert_eq!(whole(b"*2\r\n:7\r\n*0\r\n:8\r\n").1, 12);
        assert_eq!(whole(b"$-1\r\n").0.expect("value"), Value::Nil);
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let (refusal, len) = whole(b"-NOSCRIPT No matching script.\r\n+OK\r\n");
        assert_eq!(len, 31);
        assert_eq!(
            refusal.expect_err("refusal").to_string(),
            "NOSCRIPT No matching script."
        );
    }

    #[test]
    fn what_is_no_reply_is_told_from_its_first_line_on() {
        let nested = |arrays: usize| "*1\r\n".repeat(arrays);
        let too_long = format!("${}\r\n", LONGEST_TEXT + 1);
        let too_many = format!("*{}\r\n", MOST_VALUES + 1);
        for foreign in [
            "\r\n",
            "\n",
            "HTTP/1.1 400 Bad Request\r\n",
            ":abc\r\n",
            ":\r\n",
            "$\r\n",
            "$1x\r\n",
            "*9223372036854775808\r\n",
            "$18446744073709551615\r\n",
            "$1\r\nabc",
            "$1\r\na\n\n",
            "+OK\n",
            "%-1\r\n",
            ">x\r\n",
            "_1\r\n",
            &nested(DEEPEST + 1),
            &nested(1_000_000),
            &too_long,
            &too_many,
        ] {
            let shown = &foreign[..foreign.len().min(40)];
            assert!(parse(foreign.as_bytes()).is_err(), "{shown:?}");
            assert!(Framing::default().end(foreign.as_bytes()).is_err(), "{shown:?}");
        }
        let deepest = format!("{}:1\r\n", nested(DEEPEST));
        assert_eq!(whole(deepest.as_bytes()).1, deepest.len());
        assert!(parse(b"+\xff\r\n").is_err());
        let endless = vec![b'+'; 2 << 20];
        assert!(parse(&endless).is_err());
        assert!(Framing::default().end(&endless).is_err());
    }

    /// A value as a server gives it.
    fn value(chance: &mut Chance, depth: usize) -> Value {
        match chance.below(if depth < 6 { 6 } else { 4 }) {
            0 => Value::Nil,
            1 => Value::Int([0, 1, -1, i64::MAX, i64::MIN, 1_700_000_000_000][chance.below(6)]),
            2 => match chance.below(4) {
                0 => Value::Okay,
                other => Value::SimpleString(["", "a b", "ñ"][other - 1].to_owned()),
            },
            3 => {
                let len = [0, 1, 2, 40, 5000][chance.below(5)];
                Value::BulkString(chance.change(&vec![b'\n'; len]))
            }
            _ => Value::Array((0..chance.below(6)).map(|_| value(chance, depth + 1)).collect()),
        }
    }

    fn write(value: &Value, bytes: &mut Vec<u8>) {
        match value {
            Value::Int(number) => bytes.extend(format!(":{number}\r\n").bytes()),
            Value::Okay => bytes.extend_from_slice(b"+OK\r\n"),
            Value::SimpleString(text) => bytes.extend(format!("+{text}\r\n").bytes()),
            Value::BulkString(text) => {
                bytes.extend(format!("${}\r\n", text.len()).bytes());
                bytes.extend_from_slice(text);
                bytes.extend_from_slice(b"\r\n");
            }
            Value::Array(values) => {
                bytes.extend(format!("*{}\r\n", values.len()).bytes());
                values.iter().for_each(|value| write(value, bytes));
            }
            _ => bytes.extend_from_slice(b"$-1\r\n"),
        }
    }

    /// Memory that a value holds.
    fn weight(value: &Value) -> usize {
        size_of::<Value>()
            + match value {
                Value::BulkString(text) => text.capacity(),
                Value::SimpleString(text) => text.capacity(),
                Value::Array(values) => {
                    (values.capacity() - values.len()) * size_of::<Value>() + values.iter().map(weight).sum::<usize>()
                }
                _ => 0,
            }
    }

    #[test]
    fn replies_come_back_as_they_were_sent_in_pieces_of_any_size() {
        let mut chance = Chance::of_run(11);
        for _ in 0..changes() {
            let values: Vec<Value> = (0..=chance.below(3)).map(|_| value(&mut chance, 0)).collect();
            let mut bytes = Vec::new();
            values.iter().for_each(|value| write(value, &mut bytes));
            let (mut framing, mut at, mut ends) = (Framing::default(), 0, Vec::new());
            while at < bytes.len() {
                let piece = &bytes[at..bytes.len().min(at + 1 + chance.below(300))];
                let end = framing.end(piece).expect("replies");
                at += end.unwrap_or(piece.len());
                ends.extend(end.map(|_| at));
            }
            let mut from = 0;
            for value in &values {
                let (read, len) = whole(&bytes[from..]);
                from += len;
                assert_eq!(read.as_ref().ok(), Some(value));
                assert!(weight(&read.expect("a value")) <= 40 * len + 1000);
                assert!(ends.contains(&from));
            }
            assert_eq!((from, ends.len()), (bytes.len(), values.len()));
        }
    }

    #[test]
    fn of_any_bytes_the_way_through_ends_where_the_reply_does_and_the_library_says_the_same() {
        let mut chance = Chance::of_run(12);
        for _ in 0..changes() {
            let mut bytes = Vec::new();
            write(&value(&mut chance, 0), &mut bytes);
            const HEADS: [&[u8]; 9] = [
                b"*3\r\n",
                b"$5\r\n",
                b"*16777216\r\n",
                b"$2147483647\r\n",
                b"-ERR x\r\n",
                b"*-7\r\n",
                b":",
                b"\r\n",
                b"$-9223372036854775808\r\n",
            ];
            if chance.below(3) == 0 {
                let at = chance.below(bytes.len() + 1);
                bytes.splice(at..at, HEADS[chance.below(HEADS.len())].iter().copied());
            }
            let bytes = if chance.below(3) == 0 {
                bytes
            } else {
                chance.change(&bytes)
            };
            let (parsed, end) = (parse(&bytes), Framing::default().end(&bytes));
            match (&parsed, &end) {
                (Ok(parsed), Ok(end)) => assert_eq!(parsed.as_ref().map(|(_, len)| *len), *end, "{bytes:?}"),
                (Err(_), Err(_)) => {}
                _ => panic!("{bytes:?}: {parsed:?}, {end:?}"),
            }
            if let Ok(Some((value, len))) = parsed {
                let theirs = redis::parse_redis_value(&bytes[..len]).and_then(Value::extract_error);
                match (value, theirs) {
                    (Ok(value), Ok(theirs)) => assert_eq!(value, theirs, "{bytes:?}"),
                    (Err(_), Err(error)) => assert_ne!(error.kind(), ErrorKind::Parse, "{bytes:?}"),
                    (value, theirs) => panic!("{bytes:?}: {value:?}, {theirs:?}"),
                }
            }
        }
    }
}
