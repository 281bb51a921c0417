//! A library of another ABI, played by one that is loaded before libzero and answers for it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use libzero::{Config, Error, Group, MPI_WORLD};

const EXPECTED: &str = "LIBZERO_TEST_ABI";

/// A library whose `zero_abi_version` returns `version`.
fn impostor(version: i64) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("abi{version}.rs"));
    let library = folder.join(format!("libabi{version}.so"));
    let text = format!("#[no_mangle] pub extern \"C\" fn zero_abi_version() -> i64 {{ {version} }}");
    std::fs::write(&source, text).unwrap();
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc).args(["--crate-type", "cdylib", "-o"]).arg(&library).arg(&source).status();
    assert!(built.unwrap().success());
    library
}

#[test]
fn every_constructor_refuses_another_abi() {
    for (version, text) in [(0, "0.0"), (1 << 16, "1.0")] {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "constructors_under_the_impostor", "--ignored"])
            .env("LD_PRELOAD", impostor(version))
            .env(EXPECTED, text)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && output.contains("1 passed"), "{output}");
    }
}

#[test]
#[ignore = "run by every_constructor_refuses_another_abi"]
fn constructors_under_the_impostor() {
    let found = env::var(EXPECTED).unwrap();
    let refuses = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.name(), "ZERO_E_UNSUPPORTED");
        assert!(error.text().contains(&format!("has ABI {found},")), "{error}");
    };
    refuses(Config::new().map(drop));
    refuses(Group::alone(None).map(drop));
    refuses(Group::local("abi", 0, 1, None).map(drop));
    refuses(Group::env(None).map(drop));
    refuses(Group::launcher().map(drop));
    refuses(Group::mpi(MPI_WORLD, None).map(drop));
    refuses(Group::nccl("127.0.0.1:1/abi", 0, 1, None).map(drop));
    refuses(Group::unique_id(None).map(drop));
}
