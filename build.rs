//! Records the kernels at build time, so that one that cannot be recorded does not build.
fn main() {}
