//! Makes the library, and the scripts, of `lua/`.

fn main() -> chasquimq_build::Result<()> {
    chasquimq_build::write_library("lua")
}
