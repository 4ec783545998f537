//! Makes the scripts of `lua/`, each with the modules of the engine that it needs.

fn main() -> chasquimq_build::Result<()> {
    chasquimq_build::write_scripts("lua", "../chasquimq/lua")
}
