//! Passes the opt-level of the engine to it, because records name a build that is not optimised.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=PLUMB_OPT_LEVEL={level}");
}
