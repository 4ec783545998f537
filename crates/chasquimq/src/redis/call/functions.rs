//! Whether the functions in a server are ours. Who may load functions may put others under their names, which would do as they like with the rights of
//! whoever calls them. So a connection that opens looks at what there is, and functions that are not ours are never called.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering},
        Arc, LazyLock, Mutex, PoisonError,
    },
    time::{Duration, Instant},
};

use redis::{Arg, Cmd, RedisResult, Value};

use super::scripts::{LIBRARY, LIBRARY_NAME};
use crate::{
    error::{Error, Result},
    redis::{
        failure::{is_broken, is_passing},
        link::Link,
    },
};

/// How old a look may be that serves a connection which opens. A look brings the whole library's text, 320 KB.
pub(crate) const LATELY: Duration = Duration::from_secs(60);
/// The same for a user whose calls fail, and who waits for an administrator; and how long a library that is not ours is believed to be there.
pub(crate) const JUST_NOW: Duration = Duration::from_secs(1);

/// What a server has under the library's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Our library.
    Ours,
    /// Nothing.
    Missing,
    /// Another library.
    Foreign,
    /// This user may not ask, or the server does not know the question.
    Hidden,
}

/// What a connection knows of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Known {
    /// It was not open yet.
    Nothing,
    /// They are ours.
    Ours,
    /// This user cannot tell.
    Hidden,
    /// There are none under the library's name. Somebody else's may have the names of ours.
    Missing,
    /// The same, and this user may not load them.
    Unloadable,
    /// They are not ours.
    Foreign,
    /// The server knows none, or this user may call none.
    Uncallable,
}

const ALL: [Known; 7] = [
    Known::Nothing,
    Known::Ours,
    Known::Hidden,
    Known::Missing,
    Known::Unloadable,
    Known::Foreign,
    Known::Uncallable,
];

/// The functions as one connection knows them.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    known: AtomicU8,
    // of the server as it is now
    may_not_load: AtomicBool,
    // calls fail: an administrator may have done something about it
    is_doubtful: AtomicBool,
    has_told: AtomicBool,
    // how often the library was sent, and whether it was taken: one call sends it while the others wait
    loads: AtomicU64,
    has_loaded: tokio::sync::Mutex<bool>,
}

impl Functions {
    pub(crate) fn known(&self) -> Known {
        let known = usize::from(self.known.load(Ordering::Relaxed));
        ALL.get(known).copied().unwrap_or(Known::Nothing)
    }

    pub(crate) fn note(&self, known: Known) {
        self.known.store(known as u8, Ordering::Relaxed);
    }

    /// Notes what a look found. True when it is for the first time that they are not ours.
    pub(crate) fn found(&self, found: Found) -> bool {
        self.note(match found {
            Found::Ours => Known::Ours,
            Found::Missing => Known::Missing,
            Found::Foreign => Known::Foreign,
            Found::Hidden => Known::Hidden,
        });
        found == Found::Foreign && !self.has_told.swap(true, Ordering::Relaxed)
    }

    /// The same of a connection that opened.
    pub(crate) fn opened(&self, found: Found) -> bool {
        self.may_not_load.store(false, Ordering::Relaxed);
        self.found(found)
    }

    /// Whether calls go as functions: not where these are known to be others', or none.
    pub(crate) fn may_be_called(&self) -> bool {
        matches!(self.known(), Known::Nothing | Known::Ours | Known::Hidden)
    }

    /// Whether calls have failed: somebody has to look before the next one.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Relaxed)
    }

    /// The same, and it was taken note of.
    pub(crate) fn take_doubt(&self) -> bool {
        self.is_doubtful.swap(false, Ordering::Relaxed)
    }

    /// Whether this user was refused to load them.
    pub(crate) fn was_denied(&self) -> bool {
        self.may_not_load.load(Ordering::Relaxed)
    }

    /// This user may not load them, and they are not there.
    pub(crate) fn note_denial(&self) {
        self.may_not_load.store(true, Ordering::Relaxed);
        self.note(Known::Unloadable);
    }

    /// Calls fail: the next one looks again.
    pub(crate) fn doubt(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
    }

    /// Why none is called.
    pub(crate) fn fault(&self) -> Option<Error> {
        match self.known() {
            Known::Missing | Known::Unloadable => Some(Error::LibraryMissing(LIBRARY_NAME)),
            Known::Foreign => Some(Error::LibraryForeign(LIBRARY_NAME)),
            _ => None,
        }
    }

    /// Why a command must not go by a connection that has opened since it was made.
    pub(crate) fn fault_of(&self, command: &Cmd) -> Option<Error> {
        let calls = || matches!(command.args_iter().next(), Some(Arg::Simple(name)) if name == b"FCALL");
        if self.may_be_called() || !calls() {
            return None;
        }
        self.fault()
    }

    /// How often the library was sent here.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Acquire)
    }

    /// Loads the library by `load`, unless another call has done so since there were `loads`. Whether it is there.
    pub(crate) async fn load_once(&self, loads: u64, load: impl Future<Output = Result<bool>>) -> Result<bool> {
        let mut has_loaded = self.has_loaded.lock().await;
        if self.loads() == loads {
            *has_loaded = load.await?;
            self.loads.fetch_add(1, Ordering::AcqRel);
        }
        Ok(*has_loaded)
    }
}

type Seen = Arc<tokio::sync::Mutex<Option<(Instant, Found)>>>;

/// What was seen in each server process, by its run id: connections that open together look once.
static SEEN: LazyLock<Mutex<HashMap<String, Seen>>> = LazyLock::new(Mutex::default);

/// Looks at the functions in a server, unless that was done so lately.
pub(crate) async fn look(link: &Link, run_id: &str, lately: Duration) -> RedisResult<Found> {
    if run_id.is_empty() {
        return ask(link).await;
    }
    let seen = seen_of(run_id);
    let mut seen = seen.lock().await;
    if let Some((at, found)) = *seen {
        let lately = if found == Found::Foreign {
            JUST_NOW.min(lately)
        } else {
            lately
        };
        if at.elapsed() <= lately {
            return Ok(found);
        }
    }
    let found = ask(link).await?;
    // another user may see more, and what is missing costs little to look for
    *seen = matches!(found, Found::Ours | Found::Foreign).then(|| (Instant::now(), found));
    Ok(found)
}

fn seen_of(run_id: &str) -> Seen {
    let mut all = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(seen) = all.get(run_id) {
        return seen.clone();
    }
    // those of servers that are long gone
    let is_recent = |seen: &Option<(Instant, Found)>| seen.is_some_and(|(at, _)| at.elapsed() <= LATELY);
    all.retain(|_, seen| Arc::strong_count(seen) > 1 || seen.try_lock().is_ok_and(|seen| is_recent(&seen)));
    all.entry(run_id.to_owned()).or_default().clone()
}

/// Asks a server for its functions.
async fn ask(link: &Link) -> RedisResult<Found> {
    match link.ask(&list()).await {
        Ok(libraries) => Ok(judge(&libraries)),
        Err(error) if is_broken(&error) || is_passing(&error) => Err(error),
        Err(_) => Ok(Found::Hidden),
    }
}

/// The command that lists the library with its text.
pub(crate) fn list() -> Cmd {
    let mut list = redis::cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg(LIBRARY_NAME).arg("WITHCODE");
    list
}

/// What the answer to that says.
pub(crate) fn judge(libraries: &Value) -> Found {
    let Value::Array(libraries) = libraries else {
        return Found::Hidden;
    };
    // the server takes small letters for capitals
    let mut named = libraries
        .iter()
        .filter(|library| field(library, "library_name") == Some(LIBRARY_NAME.as_bytes()));
    let Some(library) = named.next() else {
        return Found::Missing;
    };
    match field(library, "library_code") {
        // a shell takes the last line's end away
        Some(text) if text.trim_ascii_end() == LIBRARY.trim_end().as_bytes() => Found::Ours,
        Some(_) => Found::Foreign,
        None => Found::Hidden,
    }
}

fn field<'a>(library: &'a Value, name: &str) -> Option<&'a [u8]> {
    let Value::Array(fields) = library else {
        return None;
    };
    let mut pairs = fields.chunks_exact(2);
    pairs.find_map(|pair| match pair {
        [Value::BulkString(key), Value::BulkString(value)] if key == name.as_bytes() => Some(value.as_slice()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn library(name: &str, code: Option<&str>) -> Value {
        let mut fields = vec![text("library_name"), text(name), text("engine"), text("LUA")];
        fields.extend([text("functions"), Value::Array(Vec::new())]);
        if let Some(code) = code {
            fields.extend([text("library_code"), text(code)]);
        }
        Value::Array(fields)
    }

    #[test]
    fn a_library_is_ours_by_its_whole_text() {
        let ours = || library(LIBRARY_NAME, Some(LIBRARY));
        let judged = |libraries| judge(&Value::Array(libraries));
        assert_eq!(judged(vec![ours()]), Found::Ours);
        assert_eq!(
            judged(vec![library(LIBRARY_NAME, Some(LIBRARY.trim_end()))]),
            Found::Ours
        );
        let longer = format!("{LIBRARY}redis.log(0,'')\n");
        assert_eq!(judged(vec![library(LIBRARY_NAME, Some(&longer))]), Found::Foreign);
        assert_eq!(judged(vec![library(LIBRARY_NAME, Some(""))]), Found::Foreign);
        assert_eq!(judged(vec![library(LIBRARY_NAME, None)]), Found::Hidden);
        assert_eq!(judged(Vec::new()), Found::Missing);
        let shouted = library(&LIBRARY_NAME.to_uppercase(), Some("theirs"));
        assert_eq!(judged(vec![shouted.clone()]), Found::Missing);
        assert_eq!(judged(vec![shouted, ours()]), Found::Ours);
        assert_eq!(judge(&Value::Okay), Found::Hidden);
    }

    #[test]
    fn a_call_goes_by_no_connection_whose_functions_are_not_ours() {
        let (functions, call, read) = (Functions::default(), redis::cmd("FCALL"), redis::cmd("GET"));
        for found in [Found::Ours, Found::Hidden, Found::Missing, Found::Foreign] {
            functions.opened(found);
            let may_go = matches!(found, Found::Ours | Found::Hidden);
            assert_eq!(functions.fault_of(&call).is_none(), may_go, "{found:?}");
            assert!(functions.fault_of(&read).is_none(), "{found:?}");
        }
    }

    #[test]
    fn functions_that_are_not_ours_are_told_of_once() {
        let functions = Functions::default();
        let told: Vec<_> = [Found::Ours, Found::Foreign, Found::Ours, Found::Foreign]
            .map(|found| functions.opened(found))
            .into();
        assert_eq!(told, [false, true, false, false]);
    }
}
