//! Connections that event loops watch.

use super::Connection;
use crate::{
    error::{Error, Result},
    redis::{link::Link, wire::Watch},
};

impl Connection {
    /// The connection as an event loop sees it, which reads what it is answered itself; `None` once closed. It breaks where nothing is answered while
    /// another server has taken the place of that one. `wake`: there are answers that the engine has read; called on its thread.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn watch(&self, wake: impl Fn() + Send + 'static) -> Result<Option<Watch>> {
        let Some(link) = self.link_to_watch().await? else {
            return Ok(None);
        };
        self.session().cut_once_replaced(&link);
        let wire = link.wire();
        Ok(Some(match wire.watched(wake) {
            Some(watched) => Watch::Begins(watched),
            None => Watch::Goes(wire.id()),
        }))
    }

    async fn link_to_watch(&self) -> Result<Option<Link>> {
        match self.session().connected().await {
            Err(Error::Closed) => Ok(None),
            connected => Ok(Some(connected?.0)),
        }
    }
}
