//! Saves as tools see them.

mod ranks;
mod training;

use std::path::PathBuf;

use libzero::{list_saves, prunable_saves, remove_save, Code, Group, Save, TextForm};

use training::*;

/// A folder of saves, removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    /// One rank saves after each of its steps.
    fn of_run(name: &str, steps: usize) -> Self {
        let path = std::env::temp_dir().join(format!("libzero-rust-saves-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        ranks::run(1, |group: Group, _| {
            let (mut optimizer, w) = begun(&group, &descent(&[]));
            for _ in 0..steps {
                optimizer.grad_ready(w, 0, &[0.25; COUNT]).unwrap();
                optimizer.step().unwrap();
                optimizer.save(folder.path()).unwrap();
            }
        });
        folder
    }
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
    /// The names of the saves, newest first.
    fn names(&self) -> Vec<String> {
        let text = list_saves(self.path(), TextForm::Plain).unwrap();
        text.lines().map(|line| line.split_whitespace().next().unwrap().to_string()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_save_is_described_verified_compared_and_exported() {
    let folder = Folder::of_run("described", 2);
    let names = folder.names();
    let newest = Save::open(folder.path()).unwrap();
    let older = Save::open(folder.0.join(&names[1]).to_str().unwrap()).unwrap();
    assert!(newest.describe(TextForm::Json).unwrap().contains("\"step\": 2"));
    newest.verify().unwrap();
    let (done, total) = newest.progress().unwrap();
    assert!(total > 0 && done == total);
    let count = newest.compare(&older).unwrap();
    let differences = newest.differences(TextForm::Plain).unwrap();
    assert_eq!(differences.lines().count(), count);
    assert!(differences.contains("step: differs: 2 | 1"));
    assert_eq!(newest.compare(&newest).unwrap(), 0);
    let model = folder.0.join("model.safetensors");
    newest.export(model.to_str().unwrap()).unwrap();
    assert!(std::fs::metadata(model).unwrap().len() > 4 * COUNT as u64);
}

#[test]
fn old_saves_are_removed_and_the_newest_stays() {
    let folder = Folder::of_run("removed", 2);
    let names = folder.names();
    assert_eq!(prunable_saves(folder.path(), 1).unwrap(), names[1..]);
    remove_save(folder.path(), &names[1]).unwrap();
    assert_eq!(folder.names(), names[..1]);
    assert_eq!(remove_save(folder.path(), &names[0]).unwrap_err().code(), Code::State);
    assert_eq!(remove_save(folder.path(), &names[1]).unwrap_err().code(), Code::NotFound);
    assert_eq!(remove_save(folder.path(), "..").unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_damaged_save_is_an_error_that_names_the_file() {
    let folder = Folder::of_run("damaged", 1);
    let save = Save::open(folder.path()).unwrap();
    let state = folder.0.join(&folder.names()[0]).join("state-00001-of-00001.safetensors");
    let mut bytes = std::fs::read(&state).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&state, bytes).unwrap();
    let error = save.verify().unwrap_err();
    assert_eq!(error.code(), Code::Checkpoint);
    assert!(error.text().contains("state-00001-of-00001.safetensors is damaged"), "{error}");
    assert_eq!(Save::open("/nowhere").unwrap_err().code(), Code::NotFound);
}
