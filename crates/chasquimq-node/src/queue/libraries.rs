//! The library of functions in each server, for administrators.

use chasquimq::{
    redis::call::library::{LIBRARY, LIBRARY_NAME},
    FoundLibrary, ServerLibrary,
};
use napi_derive::napi;

use super::{commands::commands, NativeQueue};

/// The library of this release.
#[napi(object)]
pub struct NativeLibrary {
    /// Its name.
    pub name: String,
    /// Its text, as `FUNCTION LOAD` takes it.
    pub text: String,
}

/// What one server has of it.
#[napi(object)]
pub struct NativeServerLibrary {
    /// Its address.
    pub server: String,
    /// `loaded`, `missing`, `different`, or `unknown` where the user may not look.
    pub state: String,
}

impl From<ServerLibrary> for NativeServerLibrary {
    fn from(ServerLibrary { server, found }: ServerLibrary) -> Self {
        let state = match found {
            FoundLibrary::Ours => "loaded",
            FoundLibrary::Missing => "missing",
            FoundLibrary::Foreign => "different",
            FoundLibrary::Hidden => "unknown",
        };
        Self {
            server,
            state: state.to_owned(),
        }
    }
}

/// The library of this release.
#[napi]
pub fn library() -> NativeLibrary {
    NativeLibrary {
        name: LIBRARY_NAME.to_owned(),
        text: LIBRARY.to_owned(),
    }
}

commands! {
    /// Looks for the library, in a cluster on each master.
    async fn libraries(queue) -> Vec<NativeServerLibrary> { Ok(told(queue.libraries().await?)) }

    /// Loads the library where it is missing; over another one of its name only if it `replaces` that.
    async fn load_library(queue, replaces: bool) -> Vec<NativeServerLibrary> {
        Ok(told(queue.load_library(replaces).await?))
    }

    /// Users who may load functions; none where this one may not ask.
    async fn function_loaders(queue) -> Vec<String> { queue.function_loaders().await }
}

fn told(libraries: Vec<ServerLibrary>) -> Vec<NativeServerLibrary> {
    libraries.into_iter().map(NativeServerLibrary::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_the_name() {
        let NativeLibrary { name, text } = library();
        assert!(text.starts_with(&format!("#!lua name={name}\n")), "{name}");
    }
}
