//! Buffers: every method, over ranks that are threads.

mod ranks;

use std::mem;

use libzero::{Bf16, Buffer, Code, Config, Element, Group, Key, Memory, ReduceOp, F16};

#[test]
fn what_is_written_is_read_by_every_rank() {
    fn survives<T: Element + PartialEq + std::fmt::Debug>(of: impl Fn(usize) -> T + Sync) {
        ranks::run(3, |group, rank| {
            let mut buffer = Buffer::<T>::new(&group, 1000, None).unwrap();
            let mine: Vec<T> = (0..400).map(|i| of(300 * rank + i)).collect();
            buffer.write(300 * rank, &mine).unwrap();
            let mut read = vec![of(0); 500];
            buffer.read(250 * rank, &mut read).unwrap();
            let expected: Vec<T> = (0..500).map(|i| of(250 * rank + i)).collect();
            assert_eq!(read, expected);
            assert_eq!(buffer.whole().unwrap()[999], of(999));
        });
    }
    survives(|i| i as f32);
    survives(|i| i as f64);
    survives(|i| F16(i as u16));
    survives(|i| Bf16(i as u16));
    survives(|i| i as i32);
    survives(|i| i as i64);
    survives(|i| i as u8);
}

#[test]
fn shards_lie_end_to_end_and_follow_the_weights() {
    let ranges = ranks::run(3, |group, _| {
        let mut config = Config::new().unwrap();
        config.set(Key::ShardWeights, "2,1,1").unwrap();
        let buffer = Buffer::<u8>::new(&group, 4096, Some(&config)).unwrap();
        buffer.shard_range().unwrap()
    });
    assert_eq!(ranges, [0..2048, 2048..3072, 3072..4096]);
}

#[test]
fn a_shard_is_edited_in_place() {
    ranks::run(2, |group, rank| {
        let mut buffer = Buffer::<i32>::new(&group, 600, None).unwrap();
        assert!(buffer.shard().unwrap().iter().all(|&value| value == 0));
        buffer.shard_mut().unwrap().fill(rank as i32 + 1);
        let range = buffer.shard_range().unwrap();
        assert_eq!(buffer.shard().unwrap().len(), range.len());
        let whole = buffer.whole().unwrap();
        assert_eq!((whole[0], whole[599]), (1, 2));
        assert!(whole[range].iter().all(|&value| value == rank as i32 + 1));
    });
}

#[test]
fn what_is_written_into_the_whole_is_not_kept() {
    let group = Group::alone(None).unwrap();
    let buffer = Buffer::<f32>::new(&group, 10, None).unwrap();
    buffer.whole().unwrap()[3] = 5.0;
    assert_eq!(buffer.whole().unwrap()[3], 0.0);
}

#[test]
fn the_whole_is_acquired_once() {
    let group = Group::alone(None).unwrap();
    let buffer = Buffer::<f32>::new(&group, 10, None).unwrap();
    let first = buffer.whole().unwrap();
    assert_eq!(buffer.whole().unwrap_err().code(), Code::State);
    drop(first);
    mem::forget(buffer.whole().unwrap());
    assert_eq!(buffer.whole().unwrap_err().code(), Code::State);
}

#[test]
fn reduce_scatter_fills_the_shards() {
    ranks::run(2, |group, rank| {
        let mut buffer = Buffer::<f64>::new(&group, 600, None).unwrap();
        let data: Vec<f64> = (0..600).map(|i| (i * (rank + 1)) as f64).collect();
        buffer.reduce_scatter(&data, ReduceOp::Avg).unwrap();
        let range = buffer.shard_range().unwrap();
        for (index, &value) in range.zip(buffer.shard().unwrap()) {
            assert_eq!(value, 1.5 * index as f64);
        }
    });
}

#[test]
fn a_buffer_without_elements_has_empty_slices() {
    let group = Group::alone(None).unwrap();
    let mut buffer = Buffer::<f32>::new(&group, 0, None).unwrap();
    assert!(buffer.is_empty());
    assert_eq!(buffer.shard().unwrap(), []);
    assert_eq!(buffer.shard_mut().unwrap(), []);
    assert_eq!(buffer.whole().unwrap()[..], []);
    buffer.read(0, &mut []).unwrap();
    buffer.write(0, &[]).unwrap();
}

#[test]
fn ranges_outside_are_errors() {
    let group = Group::alone(None).unwrap();
    let mut buffer = Buffer::<f32>::new(&group, 10, None).unwrap();
    assert_eq!(buffer.len(), 10);
    for outcome in [
        buffer.read(5, &mut [0.0; 6]),
        buffer.write(11, &[]),
        buffer.write(usize::MAX, &[1.0]),
        buffer.reduce_scatter(&[0.0; 9], ReduceOp::Sum),
        buffer.reduce_scatter(&[0.0; 10], ReduceOp::Other(0)),
    ] {
        assert_eq!(outcome.unwrap_err().code(), Code::InvalidArgument);
    }
    assert_eq!(Buffer::<f32>::new(&group, usize::MAX, None).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn memory_is_counted() {
    let group = Group::alone(None).unwrap();
    let buffer = Buffer::<f32>::new(&group, 100_000, None).unwrap();
    let before = buffer.memory(Memory::Buffer).unwrap();
    assert!(before.now_nbytes >= 400_000);
    drop(buffer.whole().unwrap());
    let after = buffer.memory(Memory::Buffer).unwrap();
    assert_eq!(after.now_nbytes, before.now_nbytes);
    assert!(after.peak_nbytes >= 800_000);
    assert_eq!(buffer.memory(Memory::Other(99)).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_buffer_moves_to_another_thread() {
    let group = Group::alone(None).unwrap();
    let mut buffer = Buffer::<u8>::new(&group, 10, None).unwrap();
    let buffer = std::thread::spawn(move || {
        buffer.shard_mut().unwrap()[9] = 9;
        buffer
    });
    drop(group);
    assert_eq!(buffer.join().unwrap().shard().unwrap()[9], 9);
}
