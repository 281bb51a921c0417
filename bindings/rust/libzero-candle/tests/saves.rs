//! Runs that are saved, and go on with other ranks in another stage.

mod ranks;

use std::fs;
use std::path::PathBuf;

use candle_core::{DType, Device};
use candle_nn::{Init, Optimizer, ParamsAdamW, VarBuilder, VarMap};
use libzero_candle::libzero::Group;
use libzero_candle::{Settings, ShardedOptimizer};
use ranks::{all_values, grads, staged};

/// A folder of this test's own, gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("libzero-candle.{name}.{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Run {
    vars: Vec<candle_core::Var>,
    optimizer: ShardedOptimizer,
}

impl Run {
    fn new(group: Group, stage: i32) -> Self {
        let varmap = VarMap::new();
        let builder = VarBuilder::from_varmap(&varmap, DType::F32, &Device::Cpu);
        for (name, size) in [("b", 700), ("a", 30), ("c", 1)] {
            builder.get_with_hints(size, name, Init::Const(1.0)).unwrap();
        }
        let settings = staged(Settings::adamw(ParamsAdamW::default()).unwrap(), stage).group(group).names(&varmap);
        let optimizer = ShardedOptimizer::new(varmap.all_vars(), settings).unwrap();
        let vars = ["a", "b", "c"].map(|name| varmap.data().lock().unwrap()[name].clone()).to_vec();
        Run { vars, optimizer }
    }

    /// All ranks have the same gradients, so their mean is the same for any number of them.
    fn steps(&mut self, steps: std::ops::Range<u64>) -> Vec<f64> {
        for step in steps {
            self.optimizer.step_owned(grads(step, &self.vars)).unwrap();
        }
        all_values(&self.vars)
    }
}

#[test]
fn a_run_goes_on_with_its_bits_on_other_ranks_in_another_stage() {
    let folder = Folder::new("on");
    let undisturbed = ranks::run(2, |group, _| {
        let mut run = Run::new(group, 3);
        run.steps(0..3);
        run.optimizer.set_learning_rate(0.01);
        run.steps(3..5);
        run.optimizer.save(folder.path()).unwrap();
        run.steps(5..8)
    });
    for (size, stage) in [(1, 0), (4, 1), (2, 2)] {
        let resumed = ranks::run(size, |group, _| {
            let mut run = Run::new(group, stage);
            let first = all_values(&run.vars);
            assert!(run.optimizer.load(folder.path()).unwrap());
            assert!(all_values(&run.vars) != first);
            assert_eq!(run.optimizer.learning_rate(), 0.01);
            run.steps(5..8)
        });
        assert!(resumed.iter().all(|values| *values == undisturbed[0]), "{size} ranks in stage {stage}");
    }
}

#[test]
fn a_folder_without_saves_changes_nothing() {
    let folder = Folder::new("empty");
    let mut run = Run::new(ranks::alone(), 3);
    let before = run.steps(0..2);
    assert!(!run.optimizer.load(folder.path()).unwrap());
    assert!(all_values(&run.vars) == before);
}

#[test]
fn a_save_has_the_names_of_the_varmap() {
    let folder = Folder::new("names");
    let mut run = Run::new(ranks::alone(), 1);
    run.optimizer.save(folder.path()).unwrap();
    let save = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(save).unwrap().map(|file| file.unwrap().path());
    let models: Vec<_> = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("model")).collect();
    let tensors = candle_core::safetensors::load(&models[0], &Device::Cpu).unwrap();
    let mut names: Vec<_> = tensors.keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(ranks::values(&tensors["b"]), [1.0; 700]);
}

#[test]
fn what_cannot_be_named_or_saved_is_an_error() {
    let mut run = Run::new(ranks::alone(), 1);
    let text = run.optimizer.save("/no/such/folder").unwrap_err().to_string();
    assert!(text.contains("/no/such/folder"), "{text}");
    let stranger = ranks::var(1, 9, DType::F32);
    let settings = ranks::descent(ranks::alone()).names(&VarMap::new());
    let text = ShardedOptimizer::new(vec![stranger], settings).unwrap_err().to_string();
    assert!(text.contains("a var of shape [9] is not in the VarMap"), "{text}");
}
