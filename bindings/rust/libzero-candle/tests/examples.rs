//! The two programs in examples/: their losses, and the lines by which they differ.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Losses are of size 1 and printed with 7 digits; two ranks add in another order than one.
const TOLERANCE: f64 = 1e-5;

/// The programs that cargo built beside this test.
fn program(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new(test.parent().unwrap().parent().unwrap().join("examples").join(name));
    for variable in ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"] {
        command.env_remove(variable);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(rank: usize, size: usize) -> Child {
    let mut command = program("sharded");
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", "29500");
    command.env("TORCHELASTIC_RUN_ID", format!("candle-examples.{}.{size}", std::process::id()));
    for (variable, value) in [("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", size), ("LOCAL_WORLD_SIZE", size)] {
        command.env(variable, value.to_string());
    }
    command.spawn().unwrap()
}

fn losses(output: Output) -> Vec<f64> {
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let losses: Vec<f64> = text.lines().map(|line| line.split_whitespace().last().unwrap().parse().unwrap()).collect();
    assert_eq!(losses.len(), 200);
    losses
}

#[test]
fn ranks_learn_as_one_program_with_candles_adamw() {
    let own = losses(program("own").output().unwrap());
    assert!(own[199] < 0.6 * own[0], "{} .. {}", own[0], own[199]);
    for size in [1, 2, 4] {
        let ranks: Vec<_> = (0..size).map(|rank| start(rank, size)).collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| losses(rank.wait_with_output().unwrap())).collect();
        for (step, own) in own.iter().enumerate() {
            let mean = ranks.iter().map(|losses| losses[step]).sum::<f64>() / size as f64;
            assert!((mean - own).abs() < TOLERANCE, "{size} ranks, step {step}: {mean} beside {own}");
        }
    }
}

fn lines_of(path: PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.is_empty() && !line.trim_start().starts_with("//")).map(String::from).collect()
}

#[test]
fn the_readme_counts_the_lines_that_change() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [own, sharded] = ["own", "sharded"].map(|name| lines_of(root.join("examples").join(format!("{name}.rs"))));
    let only = |a: &[String], b: &[String]| a.iter().filter(|line| !b.contains(line)).count();
    let counted = format!("changed lines: {} out, {} in, of {}", only(&own, &sharded), only(&sharded, &own), own.len());
    println!("{counted}");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains(&counted), "README.md says otherwise than: {counted}");
}
