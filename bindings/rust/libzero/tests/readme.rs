//! The README's program, in a project outside this workspace that depends on the crate as the README says.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The block of code that follows the mark.
fn program(readme: &str) -> &str {
    let (_, marked) = readme.split_once("<!-- tested -->\n```rust\n").expect("the README has a marked program");
    marked.split_once("```").expect("the block ends").0
}

#[test]
fn the_program_of_the_readme_runs() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(crate_folder.join("../README.md")).unwrap();
    let program = program(&readme);
    assert!(program.lines().count() <= 22, "{}", program.lines().count());
    let checkout = crate_folder.ancestors().nth(3).unwrap().display().to_string();
    let (_, manifest) = readme.split_once("```toml\n").unwrap();
    let dependencies = manifest.split_once("```").unwrap().0.replace("LIBZERO_CHECKOUT", &checkout);

    let project = env::temp_dir().join(format!("libzero-readme.{}", std::process::id()));
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/main.rs"), program).unwrap();
    let package = "[package]\nname = \"readme\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n";
    fs::write(project.join("Cargo.toml"), package.to_owned() + &dependencies).unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ran =
        Command::new(cargo).args(["run", "--quiet", "--offline"]).current_dir(&project).env("CARGO_TARGET_DIR", target).output().unwrap();
    fs::remove_dir_all(&project).unwrap();

    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.starts_with("step   0  w = 0.00000\n"), "{printed}");
    assert!(printed.ends_with("step 100  w = 2.00000\n"), "{printed}");
}
