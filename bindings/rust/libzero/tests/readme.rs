//! The README's programs, in a project outside this workspace that depends on the crate as the README says.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The blocks of code that follow marks.
fn programs(readme: &str) -> Vec<&str> {
    let marked = readme.split("<!-- tested -->\n```rust\n").skip(1);
    marked.map(|block| block.split_once("```").expect("the block ends").0).collect()
}

/// What a program of the README prints, with more lines behind it.
fn run(which: usize, more: &str) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(crate_folder.join("../README.md")).unwrap();
    let program = programs(&readme)[which];
    assert!(program.lines().count() <= 30, "{}", program.lines().count());
    let checkout = crate_folder.ancestors().nth(3).unwrap().display().to_string();
    let (_, manifest) = readme.split_once("```toml\n").unwrap();
    let dependencies = manifest.split_once("```").unwrap().0.replace("LIBZERO_CHECKOUT", &checkout);

    let project = env::temp_dir().join(format!("libzero-readme{which}.{}", std::process::id()));
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("readme{which}"));
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/main.rs"), program.to_owned() + more).unwrap();
    let package = "[package]\nname = \"readme\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n";
    fs::write(project.join("Cargo.toml"), package.to_owned() + &dependencies).unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ran =
        Command::new(cargo).args(["run", "--quiet", "--offline"]).current_dir(&project).env("CARGO_TARGET_DIR", target).output().unwrap();
    fs::remove_dir_all(&project).unwrap();

    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn the_program_of_the_readme_runs() {
    let printed = run(0, "");
    assert!(printed.starts_with("step   0  w = 0.00000\n"), "{printed}");
    assert!(printed.ends_with("step 100  w = 2.00000\n"), "{printed}");
}

#[test]
fn a_run_is_saved_and_goes_on() {
    let more = r#"
fn sealed(stage: i64) -> Result<(Optimizer, libzero::Param<f32>)> {
    let mut config = libzero::Config::new()?;
    config.set(Key::Stage, stage)?.set(Key::Lr, 0.1)?;
    let mut optimizer = Optimizer::new(&libzero::Group::alone(None)?, Some(&config))?;
    let w = optimizer.add_param::<f32>("w", &[2], None)?;
    optimizer.seal()?;
    Ok((optimizer, w))
}

fn train(optimizer: &mut Optimizer, w: libzero::Param<f32>) -> Result<Vec<f32>> {
    for step in 1..=2 {
        optimizer.grad_ready(w, 0, &[step as f32, -1.0])?;
        optimizer.step()?;
    }
    Ok(optimizer.param(w)?.to_vec())
}

fn main() -> Result<()> {
    let (mut first, w) = sealed(3)?;
    first.begin(Source::Local)?;
    train(&mut first, w)?;
    let (slots, step_count) = save(&first, &[w.id()])?;
    let (mut second, same) = sealed(1)?;
    restore(&mut second, &slots, step_count)?;
    println!("{step_count} {}", train(&mut first, w)? == train(&mut second, same)?);
    Ok(())
}
"#;
    assert_eq!(run(1, more), "2 true\n");
}
