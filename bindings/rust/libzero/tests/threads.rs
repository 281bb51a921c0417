//! What may go to other threads, drops in any order on any thread, and errors of many threads at once.

use std::sync::mpsc;
use std::thread;

use libzero::{Buffer, Config, Error, Group, Key, ModuleBuffer, Optimizer, Param, Source};

#[test]
fn objects_are_send_and_groups_are_sync() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Config>();
    send::<Group>();
    sync::<Group>();
    send::<Buffer<f32>>();
    send::<Optimizer>();
    send::<Error>();
    sync::<Error>();
    send::<Param<f32>>();
    sync::<Param<f32>>();
    send::<ModuleBuffer<f32>>();
    sync::<ModuleBuffer<f32>>();
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
