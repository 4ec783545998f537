//! What `build.rs` makes of `lua/`: the library, and each transition as a function of it and as a script.

/// A transition (`lua/`): a function of the library, or a script where no function is to be called. Another crate's are scripts alone.
#[derive(Debug)]
pub struct Script {
    /// File name under `lua/`, without the suffix.
    pub name: &'static str,
    /// Name of its function; `None` for a script alone.
    pub function: Option<&'static str>,
    /// The text of its script.
    pub text: &'static str,
    /// The text's SHA-1.
    pub sha: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));
