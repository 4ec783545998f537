//! What touches libuv and sockets on JavaScript's thread.

pub mod add_socket;
pub mod idle_wait;
pub mod js_cell;
pub mod poll;
pub mod spin;
pub mod uv;
