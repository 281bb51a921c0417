//! How the build script finds the library, and what it says when it does not.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

#[allow(dead_code)] // main is called by name
#[path = "../build.rs"]
mod build;

/// The build script, run by a process of its own: this test program, of which it is an ignored test.
fn script() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "the_script_itself", "--nocapture"]);
    for variable in ["LIBZERO_LIB_DIR", "DOCS_RS", "ZERO_STATIC"] {
        command.env_remove(variable);
    }
    command
}

#[test]
#[ignore = "it is run by the other tests"]
fn the_script_itself() {
    build::main();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn failure(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(!text(&output.stdout).contains("rustc-link-lib"));
    text(&output.stderr)
}

#[test]
fn the_library_is_found_or_the_reason_is_told() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lib");
    std::fs::create_dir_all(&folder).unwrap();
    let empty = folder.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::write(folder.join("libzero.so"), "").unwrap();
    let description = "libdir=/somewhere/lib\nName: zero\nDescription: test\nVersion: 0.1.0\nLibs: -L${libdir} -lzero\n";
    std::fs::write(folder.join("zero.pc"), description).unwrap();

    let output = script().env("LIBZERO_LIB_DIR", &folder).output().unwrap();
    assert!(text(&output.stdout).contains(&format!("cargo:rustc-link-search=native={}", folder.display())));
    assert!(text(&output.stdout).contains("cargo:rustc-link-lib=dylib=zero"));

    let output = script().env("PKG_CONFIG_PATH", &folder).output().unwrap();
    assert!(text(&output.stdout).contains("cargo:rustc-link-search=native=/somewhere/lib"));

    let told = failure(script().env("LIBZERO_LIB_DIR", &empty).output().unwrap());
    assert!(told.contains("there is no libzero.so in it"), "{told}");

    let told = failure(script().env("PKG_CONFIG_LIBDIR", &empty).env_remove("PKG_CONFIG_PATH").output().unwrap());
    assert!(told.contains("PKG_CONFIG_PATH") && told.contains("LIBZERO_LIB_DIR"), "{told}");

    let told = failure(script().env("PKG_CONFIG", "/no/such/program").output().unwrap());
    assert!(told.contains("/no/such/program"), "{told}");

    let output = script().env("DOCS_RS", "1").env("PKG_CONFIG", "/no/such/program").output().unwrap();
    assert!(output.status.success() && !text(&output.stdout).contains("rustc-link"), "{}", text(&output.stderr));
}
