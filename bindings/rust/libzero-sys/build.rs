//! Tells cargo where libzero.so lies: in the folder that LIBZERO_LIB_DIR names, otherwise where pkg-config says.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{exit, Command};

const FOLDER: &str = "LIBZERO_LIB_DIR";
const PACKAGE: &str = "zero >= 0.1.0";
const WATCHED: [&str; 5] = [FOLDER, "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for variable in WATCHED {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let folders = match env::var_os(FOLDER) {
        Some(folder) => check_folder(folder),
        None => ask_pkg_config(),
    };
    match folders {
        Ok(folders) => link(&folders),
        Err(problem) => {
            eprintln!("libzero-sys: {problem}");
            exit(1);
        }
    }
}

/// Dependents with a build script of their own find the folder as DEP_ZERO_LIB_DIR.
fn link(folders: &[String]) {
    for folder in folders {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:lib_dir={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=zero");
}

fn check_folder(folder: OsString) -> Result<Vec<String>, String> {
    let folder = folder.into_string().map_err(|folder| format!("{FOLDER} is {folder:?}, which is no UTF-8"))?;
    if Path::new(&folder).join("libzero.so").exists() {
        return Ok(vec![folder]);
    }
    Err(format!("{FOLDER} is \"{folder}\", but there is no libzero.so in it"))
}

/// The folders are none when the library lies where every linker looks.
fn ask_pkg_config() -> Result<Vec<String>, String> {
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = Command::new(&program)
        .args(["--print-errors", "--libs-only-L", PACKAGE])
        .output()
        .map_err(|problem| not_found(&format!("{program:?} cannot be run: {problem}")))?;
    if !output.status.success() {
        return Err(not_found(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let flags = split(&String::from_utf8_lossy(&output.stdout));
    Ok(flags.iter().filter_map(|flag| flag.strip_prefix("-L")).map(String::from).collect())
}

/// The words that pkg-config prints, in which a backslash stands before what is no end of a word.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.extend(if letter == '\\' { letters.next() } else { Some(letter) });
        }
    }
    words
}

fn not_found(answer: &str) -> String {
    format!(
        "libzero was not found. Install it, and set PKG_CONFIG_PATH to the folder of its zero.pc, or {FOLDER} to that of its libzero.so.\n\
         pkg-config was asked for \"{PACKAGE}\" and answered: {answer}"
    )
}
