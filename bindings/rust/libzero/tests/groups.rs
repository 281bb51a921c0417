//! Groups: every method, over ranks that are threads.

mod ranks;

use std::thread;
use std::time::Duration;

use libzero::{Bf16, Code, Config, Element, Group, Key, Operation, ReduceOp, Scope, F16};

/// What rank `rank` gives: `count` numbers from `10 * rank` on.
fn given(count: usize, rank: usize) -> Vec<f32> {
    (0..count).map(|i| (10 * rank + i) as f32).collect()
}

#[test]
fn ranks_know_their_place() {
    let places = ranks::run(3, |group, _| {
        let size = group.size().unwrap();
        assert_eq!((size, group.local_size().unwrap(), group.host_count().unwrap()), (3, 3, 1));
        assert!(group.quiet().unwrap());
        (group.rank().unwrap(), group.local_rank().unwrap())
    });
    assert_eq!(places, [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn shares_cover_the_whole() {
    let group = Group::alone(None).unwrap();
    assert_eq!(group.share(10, 0).unwrap(), 0..10);
    assert_eq!(group.share(10, 1).unwrap_err().code(), Code::InvalidArgument);
    let shares = ranks::run(3, |group, rank| group.share(10, rank).unwrap());
    assert_eq!(shares, [0..3, 3..6, 6..10]);
}

#[test]
fn all_reduce_reduces_every_type() {
    fn sum<T: Element + PartialEq + std::fmt::Debug>(values: [T; 3], zero: T, expected: T) {
        ranks::run(3, |group, rank| {
            let mut recv = [zero; 5];
            group.all_reduce(&[values[rank]; 5], &mut recv, ReduceOp::Sum).unwrap();
            assert_eq!(recv, [expected; 5]);
            let mut data = [values[rank]; 5];
            group.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
            assert_eq!(data, [expected; 5]);
        });
    }
    sum([1.5f32, 2.0, 4.0], 0.0, 7.5);
    sum([1.5f64, 2.0, 4.0], 0.0, 7.5);
    sum([F16::from_f32(1.5), F16::from_f32(2.0), F16::from_f32(4.0)], F16(0), F16::from_f32(7.5));
    sum([Bf16::from_f32(1.5), Bf16::from_f32(2.0), Bf16::from_f32(4.0)], Bf16(0), Bf16::from_f32(7.5));
    sum([1i32, -2, 4], 0, 3);
    sum([1i64, -2, 4], 0, 3);
    sum([1u8, 2, 4], 0, 7);
}

#[test]
fn all_reduce_knows_every_operation() {
    let expected = [(ReduceOp::Sum, 7.0), (ReduceOp::Avg, 7.0 / 3.0), (ReduceOp::Min, 1.0), (ReduceOp::Max, 4.0), (ReduceOp::Prod, 8.0)];
    ranks::run(3, |group, rank| {
        for (op, expected) in expected {
            let mut data = [[1.0f32, 2.0, 4.0][rank]];
            group.all_reduce_in_place(&mut data, op).unwrap();
            assert_eq!(data, [expected]);
        }
    });
}

#[test]
fn reduce_scatter_gives_each_rank_its_share() {
    ranks::run(3, |group, rank| {
        let share = group.share(10, rank).unwrap();
        let expected: Vec<f32> = share.clone().map(|i| (30 + 3 * i) as f32).collect();
        let mut recv = vec![0.0; share.len()];
        group.reduce_scatter(&given(10, rank), &mut recv, ReduceOp::Sum).unwrap();
        assert_eq!(recv, expected);
        let mut data = given(10, rank);
        assert_eq!(group.reduce_scatter_in_place(&mut data, ReduceOp::Sum).unwrap(), expected);
        assert_eq!(data[share], expected);
    });
}

#[test]
fn all_gather_joins_the_shares() {
    let expected = [0.0f32, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0, 23.0];
    ranks::run(3, |group, rank| {
        let share = group.share(10, rank).unwrap();
        let mut recv = [0.0; 10];
        group.all_gather(&given(share.len(), rank), &mut recv).unwrap();
        assert_eq!(recv, expected);
        let mut data = [-1.0; 10];
        data[share.clone()].copy_from_slice(&given(share.len(), rank));
        group.all_gather_in_place(&mut data).unwrap();
        assert_eq!(data, expected);
    });
}

#[test]
fn broadcast_and_reduce_have_a_root() {
    ranks::run(3, |group, rank| {
        let mut data = given(4, rank);
        group.broadcast(&mut data, 1).unwrap();
        assert_eq!(data, given(4, 1));

        let mut recv = vec![0.0; if rank == 2 { 4 } else { 0 }];
        group.reduce(&given(4, rank), &mut recv, ReduceOp::Max, 2).unwrap();
        assert_eq!(recv, if rank == 2 { given(4, 2) } else { vec![] });

        let mut data = given(4, rank);
        group.reduce_in_place(&mut data, ReduceOp::Min, 2).unwrap();
        assert_eq!(data, given(4, if rank == 2 { 0 } else { rank }));
    });
}

#[test]
fn gather_and_scatter_are_each_others_inverse() {
    ranks::run(3, |group, rank| {
        let share = group.share(10, rank).unwrap();
        let mine: Vec<f32> = share.clone().map(|i| i as f32).collect();
        let whole = given(10, 0);
        let of_root = |values: &[f32]| if rank == 1 { values.to_vec() } else { vec![] };

        let mut recv = of_root(&[0.0; 10]);
        group.gather(&mine, &mut recv, 10, 1).unwrap();
        assert_eq!(recv, of_root(&whole));
        let mut recv = vec![0.0; share.len()];
        group.scatter(&of_root(&whole), &mut recv, 10, 1).unwrap();
        assert_eq!(recv, mine);

        let mut data = if rank == 1 { vec![-1.0; 10] } else { mine.clone() };
        if rank == 1 {
            data[share].copy_from_slice(&mine);
        }
        group.gather_in_place(&mut data, 10, 1).unwrap();
        assert_eq!(data, if rank == 1 { whole.clone() } else { mine.clone() });
        let mut data = if rank == 1 { whole.clone() } else { vec![0.0; mine.len()] };
        group.scatter_in_place(&mut data, 10, 1).unwrap();
        assert_eq!(data, if rank == 1 { whole } else { mine });
    });
}

#[test]
fn all_to_all_transposes_blocks() {
    ranks::run(3, |group, rank| {
        let mut recv = [0.0f32; 6];
        group.all_to_all(&given(6, rank), &mut recv).unwrap();
        let expected: Vec<f32> = (0..3).flat_map(|from| [10 * from + 2 * rank, 10 * from + 2 * rank + 1]).map(|v| v as f32).collect();
        assert_eq!(recv[..], expected);
    });
}

#[test]
fn messages_go_round() {
    ranks::run(3, |group, rank| {
        let (next, last) = ((rank + 1) % 3, (rank + 2) % 3);
        let mut recv = [0i64; 4];
        group.exchange(&[rank as i64; 4], next, &mut recv, last).unwrap();
        assert_eq!(recv, [last as i64; 4]);
        if rank == 0 {
            group.send(&[7u8, 8], 1).unwrap();
        } else if rank == 1 {
            let mut recv = [0u8; 2];
            group.recv(&mut recv, 0).unwrap();
            assert_eq!(recv, [7, 8]);
        }
        group.barrier().unwrap();
    });
}

#[test]
fn a_failed_exchange_gives_its_slices_back() {
    ranks::run(2, |group, rank| {
        if rank == 0 {
            group.set_deadline(Duration::from_millis(50)).unwrap();
            let error = group.exchange(&[1.0f32; 2], 1, &mut [0.0f32; 2], 1).unwrap_err();
            assert_eq!(error.code(), Code::Timeout);
        } else {
            while group.status().is_ok() {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn an_exchange_that_is_refused_sends_nothing() {
    ranks::run(2, |group, rank| {
        for from in [rank, 2, usize::MAX] {
            let error = group.exchange(&[1.0f32; 2], 1 - rank, &mut [0.0f32; 2], from).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.text().contains(&format!("from is {from}")));
        }
        let mut recv = [0.0f32; 3];
        group.exchange(&[1.0f32; 3], 1 - rank, &mut recv, 1 - rank).unwrap();
        assert_eq!(recv, [1.0; 3]);
    });
}

#[test]
fn ranks_in_threads_of_a_rank_overlap_with_it() {
    ranks::run(2, |group, rank| {
        let mut sum = [0.0f32];
        let work = thread::scope(|scope| {
            scope.spawn(|| group.all_reduce(&[rank as f32 + 1.0], &mut sum, ReduceOp::Sum).unwrap());
            (0..1000).sum::<usize>()
        });
        assert_eq!((sum, work), ([3.0], 499_500));
    });
}

#[test]
fn split_makes_groups_by_color_and_key() {
    let places = ranks::run(4, |group, rank| {
        let part = group.split([0, 1, 0, -1][rank], -(rank as i64)).unwrap()?;
        drop(group);
        let mut sum = [rank as i64];
        part.all_reduce_in_place(&mut sum, ReduceOp::Sum).unwrap();
        Some((part.rank().unwrap(), part.size().unwrap(), sum[0]))
    });
    assert_eq!(places, [Some((1, 2, 2)), Some((0, 1, 1)), Some((0, 2, 2)), None]);
}

#[test]
fn groups_over_hosts_need_a_device() {
    let mut config = Config::new().unwrap();
    config.set(Key::RendezvousHost, "127.0.0.1").unwrap();
    let id = Group::unique_id(Some(&config)).unwrap();
    assert!(id.starts_with("127.0.0.1:") && id.contains('/'), "{id}");
    for id in [id.as_str(), "no id"] {
        assert_eq!(Group::nccl(id, 0, 1, Some(&config)).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn without_a_launcher_env_is_a_world_of_one() {
    let mut config = Config::new().unwrap();
    config.set(Key::StagingBytes, 65536).unwrap();
    assert_eq!(Group::launcher().unwrap(), "");
    let group = Group::env(Some(&config)).unwrap();
    assert_eq!((group.rank().unwrap(), group.size().unwrap()), (0, 1));
}

#[test]
fn an_abort_reaches_every_rank_with_its_reason() {
    ranks::run(2, |group, rank| {
        if rank == 0 {
            group.abort("enough").unwrap();
        }
        let error = group.barrier().unwrap_err();
        assert_eq!((error.code(), error.code().scope()), (Code::Aborted, Scope::Group));
        assert!(error.text().contains("enough"), "{error}");
        assert_eq!(group.status().unwrap_err().code(), Code::Aborted);
        assert!(group.quiet().unwrap());
    });
}

#[test]
fn a_missing_rank_is_an_error_after_the_deadline() {
    ranks::run(2, |group, rank| {
        if rank == 0 {
            group.set_deadline(Duration::from_millis(50)).unwrap();
            assert_eq!(group.barrier().unwrap_err().code(), Code::Timeout);
        } else {
            while group.status().is_ok() {
                thread::yield_now();
            }
        }
    });
    let group = Group::alone(None).unwrap();
    group.set_deadline(Duration::from_nanos(1)).unwrap(); // rounded up
    assert!(group.describe().unwrap().contains(" 1 ms"), "{}", group.describe().unwrap());
    assert_eq!(group.set_deadline(Duration::ZERO).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(group.set_deadline(Duration::MAX).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn ranks_that_disagree_all_learn_of_it() {
    ranks::run(3, |group, rank| {
        let mut data = vec![0.0f32; if rank == 0 { 10 } else { 11 }];
        let error = group.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap_err();
        assert_eq!(error.code(), Code::Mismatch);
        assert!(error.text().contains("10") && error.text().contains("11"), "{error}");
    });
}

#[test]
fn lengths_and_roots_are_checked() {
    let group = Group::alone(None).unwrap();
    let codes = [
        group.all_reduce(&[0.0f32; 10], &mut [0.0; 9], ReduceOp::Sum),
        group.all_reduce_in_place(&mut [0.0f32; 3], ReduceOp::Other(99)),
        group.reduce_scatter(&[0.0f32; 10], &mut [0.0; 9], ReduceOp::Sum),
        group.all_gather(&[0.0f32; 10], &mut [0.0; 9]),
        group.gather(&[0.0f32; 10], &mut [0.0; 9], 10, 0),
        group.gather_in_place(&mut [0.0f32; 9], 10, 0),
        group.scatter(&[0.0f32; 9], &mut [0.0; 10], 10, 0),
        group.scatter_in_place(&mut [0.0f32; 9], 10, 0),
        group.all_to_all(&[0.0f32; 9], &mut [0.0; 10]),
        group.broadcast(&mut [0.0f32; 3], 1),
        group.reduce_in_place(&mut [0.0f32; 3], ReduceOp::Sum, 1),
        group.send(&[0.0f32; 3], 0),
        group.recv(&mut [0.0f32; 3], 7),
    ];
    for outcome in codes {
        assert_eq!(outcome.unwrap_err().code(), Code::InvalidArgument);
    }
    group.barrier().unwrap();
}

#[test]
fn names_are_texts_without_nul() {
    let error = Group::local("a\0b", 0, 1, None).unwrap_err();
    assert_eq!(error.to_string(), "ZERO_E_INVALID_ARGUMENT: name has a NUL at byte 1, but must have none");
    let error = Group::local(&"x".repeat(65), 0, 1, None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn traffic_and_text_tell_what_was_done() {
    ranks::run(2, |group, _| {
        group.all_reduce_in_place(&mut [1.0f32; 100], ReduceOp::Sum).unwrap();
        let traffic = group.traffic(Operation::AllReduce).unwrap();
        assert_eq!(traffic.call_count, 1);
        assert_eq!(traffic.sent_nbytes, 4 * traffic.sent_elements);
        assert!(traffic.sent_elements > 0);
        assert_eq!(group.traffic(Operation::Send).unwrap().call_count, 0);
        assert!(group.describe().unwrap().contains("rank"));
    });
}
