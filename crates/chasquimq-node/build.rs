//! Tells cargo how to link a Node addon.
fn main() {
    napi_build::setup();
}
