//! Checkpoints over ranks that are threads.

mod ranks;
mod training;

use std::path::PathBuf;

use libzero::{Buffer, Checkpoint, Code, DType, Key, Optimizer, Part, TensorScope};

use training::*;

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("libzero-rust-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_goes_on_with_other_ranks_in_another_stage() {
    let folder = Folder::new("run");
    ranks::run(3, |group, _| {
        let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, 3)]));
        assert!(!optimizer.resume(folder.path()).unwrap());
        optimizer.grad_ready(w, 0, &[0.25; COUNT]).unwrap();
        optimizer.step().unwrap();
        optimizer.save(folder.path()).unwrap();
    });
    ranks::run(2, |group, _| {
        let mut optimizer = Optimizer::new(&group, Some(&descent(&[(Key::Stage, 1)]))).unwrap();
        let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
        optimizer.seal().unwrap();
        assert!(optimizer.resume(folder.path()).unwrap());
        assert_eq!(read(&optimizer, w, COUNT), [0.75; COUNT]);
        assert_eq!(optimizer.get_i64(Key::StepCount).unwrap(), 1);
    });
}

#[test]
fn several_things_are_in_one_save() {
    let folder = Folder::new("several");
    for loads in [false, true] {
        ranks::run(2, |group, rank| {
            let (mut optimizer, _) = begun(&group, &descent(&[]));
            let mut buffer = Buffer::<f64>::new(&group, 10, None).unwrap();
            let mut seen = [if loads { 0 } else { 5 + rank as i64 }];
            if !loads {
                buffer.shard_mut().unwrap().fill(2.5);
            }
            let mut checkpoint = Checkpoint::new(&group, None).unwrap();
            checkpoint.add_optimizer("model.", &mut optimizer).unwrap().add_buffer("table", &mut buffer).unwrap();
            checkpoint.add_tensor("seen", &[1], &mut seen, TensorScope::Each).unwrap();
            if loads {
                assert_eq!(checkpoint.text("epoch").unwrap_err().code(), Code::NotFound);
                assert_eq!(checkpoint.load(folder.path(), Part::All).unwrap().fallback, 0);
                assert_eq!(checkpoint.text("epoch").unwrap(), "3");
                assert_eq!(checkpoint.skipped().unwrap(), "");
                checkpoint.rename("old.*", "model.*").unwrap();
            } else {
                checkpoint.set_text("epoch", Some("3")).unwrap();
                assert_eq!(checkpoint.save(folder.path()).unwrap().step, 0);
            }
            drop(checkpoint);
            assert_eq!(seen, [5 + rank as i64]);
            assert!(buffer.shard().unwrap().iter().all(|&value| value == 2.5));
        });
    }
}

#[test]
fn parameters_travel_as_plain_files() {
    let folder = Folder::new("plain");
    let path = format!("{}/model.safetensors", folder.path());
    ranks::run(3, |group, _| {
        let (mut optimizer, _) = begun(&group, &descent(&[(Key::Stage, 3)]));
        let mut checkpoint = Checkpoint::new(&group, None).unwrap();
        checkpoint.add_optimizer("", &mut optimizer).unwrap();
        assert_eq!(checkpoint.export(&path, None).unwrap().file_count, 1);
        assert_eq!(checkpoint.export(&path, Some(DType::I64)).unwrap_err().code(), Code::InvalidArgument);
    });
    ranks::run(2, |group, _| {
        let (mut optimizer, _) = begun(&group, &descent(&[(Key::Stage, 1)]));
        let mut checkpoint = Checkpoint::new(&group, None).unwrap();
        checkpoint.add_optimizer("", &mut optimizer).unwrap();
        assert_eq!(checkpoint.load(&path, Part::All).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(checkpoint.load(&path, Part::Params).unwrap().missing, 0);
    });
}

#[test]
fn all_ranks_see_a_stop() {
    ranks::run(2, |group, rank| {
        let (mut optimizer, _) = begun(&group, &descent(&[]));
        if rank == 1 {
            optimizer.request_stop(7).unwrap();
        }
        let error = optimizer.request_stop(0).unwrap_err();
        assert_eq!((error.code(), error.text()), (Code::InvalidArgument, "ZERO_E_INVALID_ARGUMENT"));
        assert_eq!(optimizer.step().unwrap().stop_reason, 7);
        assert_eq!(optimizer.step().unwrap().stop_reason, 0);
    });
}
