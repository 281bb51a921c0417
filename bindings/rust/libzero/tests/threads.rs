//! What may go to other threads, drops in any order on any thread, and errors of many threads at once.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use libzero::{
    Buffer, Checkpoint, Config, DeviceGradView, DeviceParamView, DeviceParamViewMut, DeviceSliceMut, Error, GradView, Group, Key,
    ModuleBuffer, ModuleBufferView, Optimizer, Param, ParamView, ParamViewMut, Reduction, Save, Saving, Server, Source, StepResult, View,
    Whole,
};

/// Whether a type has a marker: a constant of the type itself is found before that of the trait.
macro_rules! has {
    ($marker:ident, $type:ty) => {{
        #[allow(dead_code)]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: $marker> Probe<T> {
            const HAS: bool = true;
        }
        <Probe<$type>>::HAS
    }};
}

macro_rules! threads_of {
    ($($name:ident: $type:ty),* $(,)?) => { [$((stringify!($name), has!(Send, $type), has!(Sync, $type))),*] };
}

/// Each public struct with the words of its documentation, but for those that are plain data, which may be copied.
fn documented_structs(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documented_structs(&path, found);
            continue;
        }
        let mut above = String::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if let Some(rest) = line.strip_prefix("pub struct ") {
                let name = rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
                if !above.contains("derive(Clone, Copy") {
                    found.push((name.to_owned(), above.replace("///", "").split_whitespace().collect::<Vec<_>>().join(" ")));
                }
            }
            let goes_on = line.starts_with("///") || line.starts_with("#[");
            above = if goes_on { above + line + "\n" } else { String::new() };
        }
    }
}

#[test]
fn each_type_is_what_its_documentation_says() {
    let types = threads_of![
        Config: Config, Group: Group, Buffer: Buffer<f32>, Whole: Whole<f32>, Optimizer: Optimizer, Param: Param<f32>,
        ParamView: ParamView<f32>, ParamViewMut: ParamViewMut<f32>, GradView: GradView<f32>, ModuleBuffer: ModuleBuffer<f32>,
        ModuleBufferView: ModuleBufferView<f32>, Reduction: Reduction, View: View, Checkpoint: Checkpoint, Save: Save, Saving: Saving,
        Error: Error, Server: Server, DeviceSliceMut: DeviceSliceMut<f32>, DeviceGradView: DeviceGradView<f32>,
        DeviceParamView: DeviceParamView<f32>, DeviceParamViewMut: DeviceParamViewMut<f32>,
    ];
    let mut documented = Vec::new();
    documented_structs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut documented);
    for (name, words) in &documented {
        let (_, send, sync) = types.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("{name} is missing above"));
        let rule = match (send, sync) {
            (true, true) => "[`Send`] and [`Sync`]",
            (true, false) => "[`Send`], but not [`Sync`]",
            (false, _) => "neither [`Send`] nor [`Sync`]",
        };
        assert!(words.contains(rule), "{name} is {rule}, but its documentation says: {words}");
    }
    assert_eq!(documented.len(), types.len());
    assert!(has!(Send, StepResult) && has!(Sync, StepResult) && has!(Send, Key) && has!(Sync, Key));
}

/// splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

enum Object {
    Config(Config),
    Group(Group),
    Buffer(Buffer<u8>),
    Optimizer(Optimizer),
}

impl Object {
    /// A group, and what can be made from it.
    fn family() -> [Object; 4] {
        let config = Config::new().unwrap();
        let group = Group::alone(Some(&config)).unwrap();
        let buffer = Buffer::new(&group, 10, Some(&config)).unwrap();
        let mut optimizer = Optimizer::new(&group, Some(&config)).unwrap();
        let w = optimizer.add_param::<f32>("w", &[3], None).unwrap();
        optimizer.seal().unwrap();
        optimizer.begin(Source::Local).unwrap();
        optimizer.grad_ready(w, 0, &[1.0; 3]).unwrap();
        [Object::Config(config), Object::Group(group), Object::Buffer(buffer), Object::Optimizer(optimizer)]
    }

    /// Uses what is left of the family, then drops it.
    fn end(self) {
        match self {
            Object::Config(mut config) => drop(config.set(Key::Stage, 0).unwrap()),
            Object::Group(group) => assert_eq!(group.size().unwrap(), 1),
            Object::Buffer(mut buffer) => buffer.shard_mut().unwrap().fill(1),
            Object::Optimizer(mut optimizer) => assert_eq!(optimizer.step().unwrap().step, 1),
        }
    }
}

#[test]
fn ten_thousand_objects_are_dropped_in_random_order_on_several_threads() {
    const FAMILIES: usize = 2500;
    const THREADS: usize = 4;
    const KEPT: usize = 64;
    const WAITING: usize = 64; // per thread: a process may open few files
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel::<Object>(WAITING)).unzip();
    let ended: usize = thread::scope(|scope| {
        let threads: Vec<_> =
            receivers.into_iter().map(|objects| scope.spawn(move || objects.into_iter().map(Object::end).count())).collect();
        let mut state = 1;
        let mut kept = Vec::new();
        for _ in 0..FAMILIES {
            kept.extend(Object::family());
            while kept.len() > KEPT {
                let object = kept.swap_remove(next(&mut state) as usize % kept.len());
                senders[next(&mut state) as usize % THREADS].send(object).unwrap();
            }
        }
        for object in kept {
            senders[next(&mut state) as usize % THREADS].send(object).unwrap();
        }
        drop(senders);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(ended, 4 * FAMILIES);
}

#[test]
fn a_hundred_thousand_errors_of_many_threads_have_their_own_text() {
    const THREADS: usize = 64;
    const CALLS: usize = 1600;
    let group = Group::alone(None).unwrap();
    let wrong: usize = thread::scope(|scope| {
        let group = &group;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let is_wrong = |&call: &usize| {
                        let root = 1 + thread * CALLS + call;
                        let error = group.broadcast(&mut [0u8], root).unwrap_err();
                        thread::yield_now();
                        error.text() != format!("root is {root}, but must be in 0 .. 0")
                    };
                    (0..CALLS).filter(is_wrong).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(wrong, 0);
}
