//! Finds libzero, or builds it: in the folder that LIBZERO_LIB_DIR names; otherwise, with the feature "bundled", from source; otherwise where
//! pkg-config says.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const FOLDER: &str = "LIBZERO_LIB_DIR";
const OLDEST: &str = "0.1.0";
/// Headers that the library is compiled with, and CMake's variables for the folders they lie in.
const HEADERS: [&str; 4] = ["ZERO_HIGHWAY_INCLUDE_DIR", "ZERO_RANDOM123_INCLUDE_DIR", "ZERO_JSON_INCLUDE_DIR", "ZERO_XXHASH_INCLUDE_DIR"];

pub fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for variable in [FOLDER, "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    // docs.rs renders documentation on machines without libzero, and links nothing.
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    let linked = match env::var_os(FOLDER) {
        Some(folder) => link_folder(folder),
        None if cfg!(feature = "bundled") => build(),
        None => ask_pkg_config(),
    };
    if let Err(problem) = linked {
        eprintln!("libzero-sys: {problem}");
        exit(1);
    }
}

/// Dependents with a build script of their own find the folder as DEP_ZERO_LIB_DIR.
fn tell_folder(folder: &str) {
    println!("cargo:lib_dir={folder}");
}

fn link_folder(folder: OsString) -> Result<(), String> {
    let folder = folder.into_string().map_err(|folder| format!("{FOLDER} is {folder:?}, which is no UTF-8"))?;
    if !Path::new(&folder).join("libzero.so").exists() {
        return Err(format!("{FOLDER} is \"{folder}\", but there is no libzero.so in it"));
    }
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib=zero");
    tell_folder(&folder);
    Ok(())
}

/// The crate pkg-config prints what cargo needs. With the variable ZERO_STATIC it takes libzero.a.
fn ask_pkg_config() -> Result<(), String> {
    let library = pkg_config::Config::new().atleast_version(OLDEST).probe("zero").map_err(|problem| {
        format!(
            "libzero was not found. Install it, and set PKG_CONFIG_PATH to the folder of its zero.pc, or {FOLDER} to that of its \
             libzero.so; or build it from source with the feature \"bundled\".\n{problem}"
        )
    })?;
    library.link_paths.iter().for_each(|folder| tell_folder(&folder.display().to_string()));
    Ok(())
}

/// The source: the published crate carries it, in a checkout it is above the crate.
fn source() -> Result<PathBuf, String> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo did not set CARGO_MANIFEST_DIR")?);
    let carried = here.join("source");
    let checkout = here.ancestors().nth(3).map(Path::to_path_buf);
    Some(carried).into_iter().chain(checkout).find(|folder| folder.join("cmake/ZeroStatic.cmake").exists()).ok_or_else(|| {
        format!("the feature \"bundled\" needs the source of libzero, which is neither in {0} nor in a checkout above it", here.display())
    })
}

/// libzero.a by libzero's own CMake project, without modules: those of an installed libzero of this version can still be loaded.
fn build() -> Result<(), String> {
    let source = source()?;
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo did not set OUT_DIR")?).join("build");
    for part in ["CMakeLists.txt", "cmake", "include", "kernels", "lib"] {
        println!("cargo:rerun-if-changed={}", source.join(part).display());
    }
    if env::var_os("HOST") != env::var_os("TARGET") && env::var_os("CMAKE_TOOLCHAIN_FILE").is_none() {
        return Err("building for another machine needs a toolchain file of CMake: name it in CMAKE_TOOLCHAIN_FILE".into());
    }
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&folder);
    configure.args(["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG"]);
    configure.args(["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG", "-DZERO_UNITY=ON", "-DZERO_TESTS=OFF", "-DZERO_EXAMPLES=OFF"]);
    configure.args(["-DZERO_MPI=OFF", "-DZERO_CUDA=OFF", "-DZERO_NCCL=OFF"]);
    let headers = source.join("headers");
    if headers.exists() {
        configure.args(HEADERS.iter().map(|variable| format!("-D{variable}={}", headers.display())));
    }
    run(&mut configure)?;
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".into());
    run(Command::new("cmake").arg("--build").arg(&folder).args(["--target", "zero_static", "--parallel", &jobs]))?;
    let archive = folder.join("lib").display().to_string();
    println!("cargo:rustc-link-search=native={archive}");
    println!("cargo:rustc-link-lib=static=zero");
    for library in ["stdc++", "m", "pthread", "dl"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
    tell_folder(&archive);
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let needs = "the feature \"bundled\" needs CMake 3.25 and a C++20 compiler";
    let output = command.output().map_err(|problem| format!("{command:?} cannot be run: {problem}; {needs}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} failed; {needs}:\n{}", String::from_utf8_lossy(&told)))
}
