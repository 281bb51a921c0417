//! Scenarios of saves: runs that go on from one, what else it holds, and saves as tools see them.

use std::path::PathBuf;
use std::{env, fs, process};

use libzero::{list_saves, prunable_saves, remove_save, Buffer, Checkpoint, Config, Group, Key, Part, Result, Save, TensorScope, TextForm};

use crate::lines::{hash, join, line, status};
use crate::ranks;
use crate::training::{config, Training, STEPS};
use crate::values::array;

const COUNT: usize = 10;
const BUFFER_COUNT: usize = 1000;
const SHAPE: [i64; 1] = [COUNT as i64];

pub fn print() -> Result<()> {
    line("save-resume", in_folder(3, train_and_save, Some((2, resume_and_train)))?);
    line("save-tensors", in_folder(2, save_tensors, Some((3, load_tensors)))?);
    line("save-buffer", in_folder(3, save_table, Some((2, load_table)))?);
    line("save-names", in_folder(1, save_a_b, Some((1, load_b_c)))?);
    line("save-renamed", in_folder(1, save_old, Some((1, load_new)))?);
    line("save-background", in_folder(2, save_in_background, Some((1, resume_alone)))?);
    line("save-compare", in_folder(1, save_twice, Some((1, compare)))?);
    line("save-remove", in_folder(1, save_twice, Some((1, remove)))?);
    line("save-nothing", in_folder(1, find_nothing, None)?);
    line("stop", join(ranks::run(3, stop)?));
    Ok(())
}

/// What a rank says; nothing is an empty text.
type Body = fn(&Group, &str) -> Result<String>;

/// What the ranks of one world after the other say in a new empty folder.
fn in_folder(size: usize, first: Body, second: Option<(usize, Body)>) -> Result<String> {
    let folder = Folder::new();
    let mut said = ranks::run(size, |group, _| first(&group, folder.path()))?;
    if let Some((size, second)) = second {
        said.extend(ranks::run(size, |group, _| second(&group, folder.path()))?);
    }
    Ok(join(said.into_iter().filter(|words| !words.is_empty())))
}

/// Removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("zero-conformance-rust-{}", process::id()));
        fs::create_dir(&path).expect("the folder is new");
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("temporary folders have names of UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn path_in(folder: &str, name: &str) -> String {
    format!("{folder}/{name}")
}

fn stage(stage: i64) -> Result<Config> {
    config(|config| config.set(Key::Stage, stage).map(|_| ()))
}

fn steps(training: &Training<f32>) -> Result<i64> {
    training.optimizer.get_i64(Key::StepCount)
}

fn train(training: &mut Training<f32>, t: usize) -> Result<i64> {
    training.give_gradients(t)?;
    Ok(training.optimizer.step()?.stop_reason)
}

/// What rank 0 says; the others say nothing.
fn on_root(group: &Group, text: String) -> Result<String> {
    Ok(if group.rank()? == 0 { text } else { String::new() })
}

fn train_and_save(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::sealed(group, Some(&stage(1)?))?;
    let found = i32::from(training.optimizer.resume(folder)?);
    training.begin()?;
    training.train()?;
    training.optimizer.save(folder)?;
    on_root(group, found.to_string())
}

fn resume_and_train(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::sealed(group, Some(&stage(3)?))?;
    let found = i32::from(training.optimizer.resume(folder)?);
    let (steps, before) = (steps(&training)?, training.result()?);
    train(&mut training, STEPS)?;
    let after = training.result()?;
    on_root(group, format!("{found} {steps} {before} {after}"))
}

fn save_tensors(group: &Group, folder: &str) -> Result<String> {
    let rank = group.rank()?;
    let (mut one, mut each) = (array::<f32>(COUNT, rank), array::<i64>(COUNT, rank));
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_tensor("one", &SHAPE, &mut one, TensorScope::One)?;
    checkpoint.add_tensor("each", &SHAPE, &mut each, TensorScope::Each)?;
    checkpoint.set_text("epoch", Some("3/10"))?;
    checkpoint.save(folder)?;
    Ok(String::new())
}

fn load_tensors(group: &Group, folder: &str) -> Result<String> {
    let (mut one, mut each) = ([0f32; COUNT], [0i64; COUNT]);
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_tensor("one", &SHAPE, &mut one, TensorScope::One)?;
    checkpoint.add_tensor("each", &SHAPE, &mut each, TensorScope::Each)?;
    checkpoint.load(folder, Part::All)?;
    let texts = format!("{} {} ", checkpoint.text("epoch")?, status(checkpoint.text("gone")));
    drop(checkpoint);
    Ok(on_root(group, texts)? + &join([hash(&one), hash(&each)]))
}

fn save_table(group: &Group, folder: &str) -> Result<String> {
    let mut buffer = Buffer::<f32>::new(group, BUFFER_COUNT, None)?;
    buffer.write(0, &array(if group.rank()? == 0 { BUFFER_COUNT } else { 0 }, 0))?;
    Checkpoint::new(group, None)?.add_buffer("table", &mut buffer)?.save(folder)?;
    Ok(String::new())
}

fn load_table(group: &Group, folder: &str) -> Result<String> {
    let mut buffer = Buffer::<f32>::new(group, BUFFER_COUNT, None)?;
    let step = Checkpoint::new(group, None)?.add_buffer("table", &mut buffer)?.load(folder, Part::All)?.step;
    Ok(on_root(group, format!("{step} "))? + &hash(buffer.shard()?))
}

fn save_a_b(group: &Group, folder: &str) -> Result<String> {
    let (mut a, mut b) = (array::<f32>(COUNT, 0), array::<f32>(COUNT, 1));
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_tensor("a", &SHAPE, &mut a, TensorScope::One)?.add_tensor("b", &SHAPE, &mut b, TensorScope::One)?;
    checkpoint.save(folder)?;
    Ok(String::new())
}

fn load_b_c(group: &Group, folder: &str) -> Result<String> {
    let (mut b, mut c) = ([0f32; COUNT], array::<f32>(COUNT, 2));
    let mut refuses = Checkpoint::new(group, None)?;
    refuses.add_tensor("b", &SHAPE, &mut b, TensorScope::One)?.add_tensor("c", &SHAPE, &mut c, TensorScope::One)?;
    let refused = status(refuses.load(folder, Part::All));
    drop(refuses);
    let mut config = Config::new()?;
    config.set(Key::CheckpointMissing, 1)?.set(Key::CheckpointExtra, 1)?;
    let mut allows = Checkpoint::new(group, Some(&config))?;
    allows.add_tensor("b", &SHAPE, &mut b, TensorScope::One)?.add_tensor("c", &SHAPE, &mut c, TensorScope::One)?;
    let result = allows.load(folder, Part::All)?;
    let skipped = join(allows.skipped()?.split_whitespace());
    drop(allows);
    Ok(format!("{refused} {} {} {skipped} {} {}", result.missing, result.extra, hash(&b), hash(&c)))
}

fn save_old(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::begun(group, Some(&stage(1)?))?;
    training.train()?;
    Checkpoint::new(group, None)?.add_optimizer("old.", &mut training.optimizer)?.save(folder)?;
    Ok(String::new())
}

fn load_new(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::sealed(group, Some(&stage(1)?))?;
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_optimizer("new.", &mut training.optimizer)?.rename("old.*", "new.*")?;
    let result = checkpoint.load(folder, Part::Params)?;
    drop(checkpoint);
    Ok(format!("{} {} {} {}", result.missing, result.extra, steps(&training)?, training.result()?))
}

fn save_in_background(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::begun(group, Some(&stage(2)?))?;
    train(&mut training, 0)?;
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_optimizer("", &mut training.optimizer)?;
    let saving = checkpoint.save_async(folder)?;
    train(&mut training, 1)?;
    train(&mut training, 2)?;
    on_root(group, saving.wait()?.step.to_string())
}

fn resume_alone(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::sealed(group, Some(&stage(1)?))?;
    let found = i32::from(training.optimizer.resume(folder)?);
    Ok(format!("{found} {} {}", steps(&training)?, training.result()?))
}

/// Saves after each of two steps.
fn save_twice(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::begun(group, Some(&stage(1)?))?;
    for t in 0..2 {
        train(&mut training, t)?;
        training.optimizer.save(folder)?;
    }
    Ok(String::new())
}

/// The names of the saves, newest first, which stand at the beginnings of the lines of the list.
fn names(folder: &str) -> Result<Vec<String>> {
    let list = list_saves(folder, TextForm::Plain)?;
    Ok(list.lines().filter_map(|line| line.split_whitespace().next()).map(String::from).collect())
}

fn compare(_: &Group, folder: &str) -> Result<String> {
    let names = names(folder)?;
    let (newest, older) = (Save::open(&path_in(folder, &names[0]))?, Save::open(&path_in(folder, &names[1]))?);
    let verified = status(newest.verify());
    Ok(format!("{} {verified} {} {}", names.len(), newest.compare(&older)?, newest.compare(&newest)?))
}

fn remove(_: &Group, folder: &str) -> Result<String> {
    let names = names(folder)?;
    let prunable = prunable_saves(folder, 1)?.len();
    let removed = [1, 0, 1].map(|index: usize| status(remove_save(folder, &names[index])));
    Ok(format!("{prunable} {}", join(removed)))
}

fn find_nothing(group: &Group, folder: &str) -> Result<String> {
    let mut training = Training::<f32>::sealed(group, Some(&stage(1)?))?;
    let nothing = status(Save::open(folder));
    let mut checkpoint = Checkpoint::new(group, None)?;
    checkpoint.add_optimizer("", &mut training.optimizer)?;
    let (loaded, before_begin) = (status(checkpoint.load(folder, Part::All)), status(checkpoint.save(folder)));
    drop(checkpoint);
    training.begin()?;
    let nowhere = status(training.optimizer.save(&path_in(folder, "no")));
    Ok(join([nothing, loaded, nowhere, before_begin]))
}

fn stop(group: Group, rank: usize) -> Result<String> {
    let mut training = Training::<f32>::begun(&group, Some(&stage(1)?))?;
    let mut reasons = Vec::new();
    for t in 0..4 {
        if t == 2 && rank == 1 {
            training.optimizer.request_stop(7)?;
        }
        reasons.push(train(&mut training, t)?);
    }
    Ok(join(&reasons[2..]))
}
