//! The names that a connection bears, as `CLIENT LIST` shows them. One that several workers share bears the names of all: by these the workers of a queue are
//! found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::redis::wire::{Answer, Wire};

/// Stands between names.
const BETWEEN: char = '|';
/// What stands for it, and for the sign itself, inside a name.
const ESCAPED: [(char, &str); 2] = [('%', "%25"), (BETWEEN, "%7C")];

/// What a connection is called.
#[derive(Default)]
pub(crate) struct Names {
    borne: Mutex<Borne>,
    // the number of the latest change that the server knows of
    told: tokio::sync::Mutex<u64>,
}

#[derive(Default)]
struct Borne {
    // one for each user that has one
    names: Vec<String>,
    changes: u64,
}

impl Names {
    fn borne(&self) -> MutexGuard<'_, Borne> {
        self.borne.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one. Nothing tells the server yet; it takes no name with other letters than these.
    pub fn add(&self, name: &str) {
        if name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let mut borne = self.borne();
            borne.names.push(name.to_owned());
            borne.changes += 1;
        }
    }

    /// Takes one out. False when none is left.
    pub fn remove(&self, name: &str) -> bool {
        let mut borne = self.borne();
        if let Some(at) = borne.names.iter().position(|other| other == name) {
            borne.names.swap_remove(at);
            borne.changes += 1;
        }
        !borne.names.is_empty()
    }

    /// Has the server know them all. Of many that ask at the same time few have to send. An ACL may forbid it: names are optional.
    pub async fn tell(&self, wire: &Wire) {
        let wanted = self.borne().changes;
        let mut told = self.told.lock().await;
        if *told < wanted {
            let (changes, answer) = self.send(wire);
            let _ = answer.await;
            *told = changes;
        }
    }

    /// The same without waiting.
    pub fn send(&self, wire: &Wire) -> (u64, oneshot::Receiver<Vec<Answer>>) {
        // under the lock: what is sent last is the latest
        let borne = self.borne();
        let mut command = redis::cmd("CLIENT");
        command.arg("SETNAME").arg(joined(&borne.names));
        (borne.changes, wire.give(command.get_packed_command(), 1))
    }
}

fn joined(names: &[String]) -> String {
    let escaped = names.iter().map(|name| {
        let replace = |name: String, (sign, by): (char, &str)| name.replace(sign, by);
        ESCAPED.into_iter().fold(name.clone(), replace)
    });
    escaped.collect::<Vec<_>>().join(&BETWEEN.to_string())
}

/// The names in what `CLIENT LIST` shows.
pub(crate) fn split(shown: &str) -> impl Iterator<Item = String> + '_ {
    shown.split(BETWEEN).map(|name| {
        let restore = |name: String, (sign, by): &(char, &str)| name.replace(by, &sign.to_string());
        ESCAPED.iter().rev().fold(name.to_owned(), restore)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_whatever_signs_they_have() {
        let names = [
            "bull:cQ==",
            "bull:cQ==:w:a|b",
            "bull:cQ==:w:50%",
            "bull:cQ==:w:%7C%25|",
            "",
        ]
        .map(str::to_owned);
        assert_eq!(split(&joined(&names)).collect::<Vec<_>>(), names);
        assert_eq!(joined(&names[..1]), "bull:cQ==");
    }
}
