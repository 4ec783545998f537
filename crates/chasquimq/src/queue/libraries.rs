//! The library of functions in each server, as an administrator looks after it.

use redis::{cmd, Value};

use super::Queue;
use crate::{
    error::{Error, Result},
    redis::{
        call::{
            functions::Found,
            library::{find, provide},
            reply::Reply,
        },
        connection::Connection,
    },
};

/// What one server has of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLibrary {
    /// The server's address.
    pub server: String,
    /// What it has.
    pub found: Found,
}

impl Queue {
    /// Looks for the library of this release: in a cluster on each master.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn libraries(&self) -> Result<Vec<ServerLibrary>> {
        let mut libraries = Vec::new();
        for server in self.connection().masters().await? {
            libraries.push(of(&server, find(&server).await?).await?);
        }
        Ok(libraries)
    }

    /// Loads the library of this release where it is missing: in a cluster on each master. Over another library of its name only if it `replaces` that.
    /// # Errors
    /// As [`Connection::send`]: this user may not load it, or another library has functions of the same names.
    pub async fn load_library(&self, replaces: bool) -> Result<Vec<ServerLibrary>> {
        let mut libraries = Vec::new();
        for server in self.connection().masters().await? {
            libraries.push(of(&server, provide(&server, replaces).await?).await?);
        }
        Ok(libraries)
    }

    /// Users of the server who may load functions, and so replace those that others call; nothing where this user may not ask.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn function_loaders(&self) -> Result<Vec<String>> {
        let users = match self.connection().send(cmd("ACL").arg("LIST")).await {
            Err(Error::Refused(_)) => return Ok(Vec::new()),
            users => Reply::new("a list of users", users?)?.texts()?,
        };
        let mut loaders = Vec::new();
        for name in users.iter().filter_map(|user| enabled(user)) {
            let mut tries = cmd("ACL");
            tries.arg("DRYRUN").arg(name).arg("FUNCTION").arg("LOAD").arg("text");
            if self.connection().send(&tries).await? == Value::Okay {
                loaders.push(name.to_owned());
            }
        }
        Ok(loaders)
    }
}

/// The name of a user, as `ACL LIST` describes one, who may log in.
fn enabled(user: &str) -> Option<&str> {
    let mut words = user.split(' ').skip(1);
    let name = words.next()?;
    words.any(|word| word == "on").then_some(name)
}

async fn of(server: &Connection, found: Found) -> Result<ServerLibrary> {
    let server = server.place().await?;
    Ok(ServerLibrary { server, found })
}
