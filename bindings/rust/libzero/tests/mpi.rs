//! A group of MPI ranks: here the only one, which initialises and finalises MPI itself. A process of its own, because that happens once.

use libzero::{has_feature, Code, Feature, Group, ReduceOp, MPI_WORLD};

#[test]
fn mpi_makes_a_group_where_it_is_installed() {
    if !has_feature(Feature::Mpi) {
        assert_eq!(Group::mpi(MPI_WORLD, None).unwrap_err().code(), Code::Module);
        return;
    }
    let group = Group::mpi(MPI_WORLD, None).unwrap();
    assert_eq!((group.rank().unwrap(), group.size().unwrap()), (0, 1));
    let mut data = [2.0f32];
    group.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
    assert_eq!(data, [2.0]);
}
