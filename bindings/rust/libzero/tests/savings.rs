//! Saves in the background, over ranks that are threads.

mod ranks;
mod training;

use std::mem;
use std::path::PathBuf;
use std::sync::Barrier;

use libzero::{list_saves, Buffer, Checkpoint, Code, Config, Group, Key, Optimizer, Save, Saving, Slot, Snapshot, TensorScope, TextForm};

use training::*;

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("libzero-rust-savings-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
    /// Steps and first value of the newest save.
    fn newest(&self) -> (i64, f32) {
        let group = Group::alone(None).unwrap();
        let mut optimizer = Optimizer::new(&group, Some(&descent(&[]))).unwrap();
        let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
        optimizer.seal().unwrap();
        assert!(optimizer.resume(self.path()).unwrap());
        (optimizer.get_i64(Key::StepCount).unwrap(), read(&optimizer, w, COUNT)[0])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn snapshots(snapshot: Snapshot) -> Config {
    let mut config = Config::new().unwrap();
    config.set(Key::CheckpointSnapshot, snapshot).unwrap();
    config
}

/// Begins a save of the optimizer alone.
fn begin(group: &Group, optimizer: &mut Optimizer, snapshot: Snapshot, folder: &Folder) -> Saving {
    let mut checkpoint = Checkpoint::new(group, Some(&snapshots(snapshot))).unwrap();
    checkpoint.add_optimizer("", optimizer).unwrap();
    checkpoint.save_async(folder.path()).unwrap()
}

#[test]
fn steps_go_on_and_the_save_holds_the_step_of_the_call() {
    for snapshot in [Snapshot::Copy, Snapshot::Lazy] {
        let folder = Folder::new(&format!("{snapshot:?}"));
        let copied = ranks::run(2, |group, _| {
            let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, 2)]));
            optimizer.grad_ready(w, 0, &[0.25; COUNT]).unwrap();
            optimizer.step().unwrap();
            let saving = begin(&group, &mut optimizer, snapshot, &folder);
            for _ in 0..3 {
                optimizer.grad_ready(w, 0, &[0.25; COUNT]).unwrap();
                optimizer.step().unwrap();
            }
            let result = saving.wait().unwrap();
            assert_eq!(result.step, 1);
            assert_eq!(read(&optimizer, w, COUNT), [0.0; COUNT]);
            result.snapshot_nbytes
        });
        assert!(copied.iter().sum::<i64>() > 0 || snapshot == Snapshot::Lazy);
        assert_eq!(folder.newest(), (1, 0.75));
    }
}

/// Rank 1 takes no part before rank 0 has looked.
#[test]
fn a_save_is_not_done_before_all_ranks_take_part() {
    let folder = Folder::new("late");
    let looked = Barrier::new(2);
    ranks::run(2, |group, rank| {
        let (mut optimizer, _) = begun(&group, &descent(&[]));
        if rank == 1 {
            looked.wait();
        }
        let mut saving: Saving<()> = optimizer.save_async(folder.path()).unwrap();
        if rank == 0 {
            assert!(!saving.done());
            looked.wait();
        }
        while !saving.done() {
            std::thread::yield_now();
        }
        saving.wait().unwrap();
    });
    assert_eq!(folder.newest(), (0, 1.0));
}

#[test]
fn what_is_dropped_meanwhile_is_saved() {
    let folder = Folder::new("dropped");
    let savings = ranks::run(2, |group, rank| {
        let (mut optimizer, _) = begun(&group, &config(&[], "adam"));
        let mut buffer = Buffer::<f64>::new(&group, 1000, None).unwrap();
        let mut seen = vec![rank as i64; 1 << 20];
        drop(optimizer.save_async(folder.path()).unwrap()); // waits
        let mut checkpoint = Checkpoint::new(&group, None).unwrap();
        checkpoint.add_optimizer("", &mut optimizer).unwrap().add_buffer("table", &mut buffer).unwrap();
        checkpoint.add_tensor("seen", &[1 << 20], &mut seen, TensorScope::Each).unwrap();
        [checkpoint.save_async(folder.path()).unwrap(), begin(&group, &mut optimizer, Snapshot::Lazy, &folder)]
    });
    for saving in savings.into_iter().flatten() {
        assert_eq!(saving.wait().unwrap().step, 0);
    }
    assert_eq!(list_saves(folder.path(), TextForm::Plain).unwrap().lines().count(), 3);
    let newest = Save::open(folder.path()).unwrap();
    newest.verify().unwrap();
}

#[test]
fn a_save_that_is_forgotten_writes_into_memory_that_stays() {
    let folder = Folder::new("forgotten");
    ranks::run(2, |group, _| {
        let (mut optimizer, _) = begun(&group, &descent(&[]));
        mem::forget(begin(&group, &mut optimizer, Snapshot::Copy, &folder));
        optimizer.save(folder.path()).unwrap(); // behind it
    });
    assert_eq!(list_saves(folder.path(), TextForm::Plain).unwrap().lines().count(), 2);
}

#[test]
fn a_save_that_fails_costs_nothing() {
    let folder = Folder::new("failing");
    let nowhere = format!("{}/nowhere", folder.path());
    ranks::run(2, |group, _| {
        let (mut optimizer, _) = begun(&group, &descent(&[]));
        let mut saving = optimizer.save_async(&nowhere).unwrap();
        while !saving.done() {
            std::thread::yield_now();
        }
        let error = saving.wait().unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.text().contains(&nowhere), "{error}");
        assert_eq!(optimizer.step().unwrap().step, 1);
        assert_eq!(optimizer.save_async("").unwrap_err().code(), Code::InvalidArgument);
    });
}

/// Rank 1 takes no part in the save before rank 0 has asked for views, so that the save still reads.
#[test]
fn states_that_a_save_reads_are_not_handed_out() {
    let folder = Folder::new("read");
    let asked = Barrier::new(2);
    ranks::run(2, |group, rank| {
        let (mut optimizer, _) = begun(&group, &config(&[(Key::Stage, 0)], "adam"));
        if rank == 1 {
            asked.wait();
        }
        let mut saving = begin(&group, &mut optimizer, Snapshot::Lazy, &folder);
        if rank == 0 {
            let error = optimizer.views().unwrap()[0].slot::<f32>(Slot::FirstMoment).unwrap_err();
            assert_eq!(error.code(), Code::State);
            assert!(error.text().contains("wait for the Saving"), "{error}");
            asked.wait();
        }
        while !saving.done() {
            std::thread::yield_now();
        }
        assert!(optimizer.views().unwrap()[0].slot::<f32>(Slot::FirstMoment).is_ok());
        saving.wait().unwrap();
    });
}

/// Algorithm custom updates what the save reads; its reduce waits.
#[test]
fn a_reduction_of_a_custom_algorithm_waits_for_the_save() {
    let folder = Folder::new("custom");
    ranks::run(2, |group, _| {
        let (mut optimizer, w) = begun(&group, &config(&[(Key::CustomSlots, 1)], "custom"));
        let saving = begin(&group, &mut optimizer, Snapshot::Lazy, &folder);
        optimizer.grad_ready(w, 0, &[0.25; COUNT]).unwrap();
        let mut reduction = optimizer.reduce().unwrap();
        for mut view in reduction.views().unwrap() {
            view.slot::<f32>(Slot::Param).unwrap().fill(7.0);
        }
        reduction.gather().unwrap();
        saving.wait().unwrap();
        assert_eq!(read(&optimizer, w, COUNT), [7.0; COUNT]);
    });
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&config(&[(Key::CustomSlots, 1)], "custom"))).unwrap();
    let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
    optimizer.seal().unwrap();
    assert!(optimizer.resume(folder.path()).unwrap());
    assert_eq!(read(&optimizer, w, COUNT), [1.0; COUNT]);
}
