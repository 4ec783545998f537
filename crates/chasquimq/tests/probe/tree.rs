//! MessagePack values as the scripts write them, and a short text for each.

use chasquimq::msgpack::{Item, Reader};

#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Nil,
    Bool(bool),
    Number(f64),
    Bytes(Vec<u8>),
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
}

impl Tree {
    pub fn read(reader: &mut Reader<'_>) -> chasquimq::Result<Tree> {
        Ok(match reader.item()? {
            Item::Nil => Tree::Nil,
            Item::Bool(flag) => Tree::Bool(flag),
            Item::Number(number) => Tree::Number(number),
            Item::Bytes(bytes) => Tree::Bytes(bytes.to_vec()),
            Item::Array(len) => Tree::Array((0..len).map(|_| Tree::read(reader)).collect::<Result<_, _>>()?),
            Item::Map(len) => Tree::Map(
                (0..len)
                    .map(|_| Ok((Tree::read(reader)?, Tree::read(reader)?)))
                    .collect::<chasquimq::Result<_>>()?,
            ),
        })
    }

    /// Every value of a text in which they lie one behind the other.
    pub fn all(bytes: &[u8]) -> chasquimq::Result<Vec<Tree>> {
        let mut reader = Reader::new(bytes);
        let mut trees = Vec::new();
        while !reader.is_empty() {
            trees.push(Tree::read(&mut reader)?);
        }
        Ok(trees)
    }

    pub fn one(bytes: &[u8]) -> Tree {
        let mut trees = Tree::all(bytes).expect("MessagePack");
        assert_eq!(trees.len(), 1, "one value in {bytes:?}");
        trees.remove(0)
    }

    pub fn items(&self) -> &[Tree] {
        match self {
            Tree::Array(items) => items,
            // Lua cannot tell an empty array from an empty map
            Tree::Map(pairs) if pairs.is_empty() => &[],
            other => panic!("an array, not {other:?}"),
        }
    }

    /// A map's value.
    pub fn field(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::Map(pairs) => pairs
                .iter()
                .find(|(key, _)| key.bytes() == name.as_bytes())
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn number(&self) -> u64 {
        match self {
            Tree::Number(number) if number.fract() == 0.0 && *number >= 0.0 => *number as u64,
            other => panic!("a whole number, not {other:?}"),
        }
    }

    pub fn string(&self) -> String {
        match self {
            Tree::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("UTF-8"),
            other => panic!("a text, not {other:?}"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Tree::Bytes(bytes) => bytes,
            other => panic!("a text, not {other:?}"),
        }
    }

    pub fn show(&self) -> String {
        match self {
            Tree::Nil => "-".to_owned(),
            Tree::Bool(flag) => flag.to_string(),
            Tree::Number(number) => number.to_string(),
            Tree::Bytes(bytes) => show_bytes(bytes),
            Tree::Array(items) => format!("[{}]", show_all(items)),
            // what Lua packs from an empty table
            Tree::Map(pairs) if pairs.is_empty() => "[]".to_owned(),
            Tree::Map(pairs) => {
                let mut texts: Vec<String> = pairs
                    .iter()
                    .map(|(key, value)| format!("{}:{}", key.show(), value.show()))
                    .collect();
                texts.sort();
                format!("{{{}}}", texts.join(" "))
            }
        }
    }
}

pub fn show_all(trees: &[Tree]) -> String {
    trees.iter().map(Tree::show).collect::<Vec<_>>().join(" ")
}

/// A text as it is, `''` when empty; MessagePack in angle brackets.
pub fn show_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "''".to_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => match Tree::all(bytes) {
            Ok(trees) => format!("<{}>", show_all(&trees)),
            Err(_) => format!("{bytes:?}"),
        },
    }
}
