//! Names and numbers of enums are those of the headers.

use super::*;
use crate::Key;

fn assert_complete(prefix: &str, names: &[&str]) {
    let all: Vec<_> = sys::CONSTANTS.iter().map(|&(name, _)| name).filter(|name| name.starts_with(prefix)).collect();
    assert_eq!(all, names, "{prefix}");
}

#[test]
fn every_constant_of_the_headers_has_its_variant() {
    assert_complete("ZERO_E_", Code::NAMES);
    assert_complete("ZERO_DTYPE_", DType::NAMES);
    assert_complete("ZERO_KEY_", Key::NAMES);
    assert_complete("ZERO_REDUCE_", ReduceOp::NAMES);
    assert_complete("ZERO_OPERATION_", Operation::NAMES);
    assert_complete("ZERO_ROUNDING_", Rounding::NAMES);
    assert_complete("ZERO_UNFILLED_", Unfilled::NAMES);
    assert_complete("ZERO_MASTER_", Master::NAMES);
    assert_complete("ZERO_DIVISOR_", Divisor::NAMES);
    assert_complete("ZERO_NONFINITE_", Nonfinite::NAMES);
    assert_complete("ZERO_TIER_", Tier::NAMES);
    assert_complete("ZERO_SLOT_", Slot::NAMES);
    assert_complete("ZERO_SOURCE_", Source::NAMES);
    assert_complete("ZERO_SYNC_", SyncRule::NAMES);
    assert_complete("ZERO_FINDING_", Finding::NAMES);
    assert_complete("ZERO_MICRO_STEP_", MicroStep::NAMES);
    assert_complete("ZERO_MEMORY_", Memory::NAMES);
    assert_complete("ZERO_FEATURE_", Feature::NAMES);
    assert_complete("ZERO_SCOPE_", TensorScope::NAMES);
    assert_complete("ZERO_PART_", Part::NAMES);
    assert_complete("ZERO_TEXT_", TextForm::NAMES);
    assert_complete("ZERO_SNAPSHOT_", Snapshot::NAMES);
    assert_complete("ZERO_CODE_", LineCode::NAMES);
    assert_complete("ZERO_RESIDUAL_", Residual::NAMES);
    assert_complete("ZERO_NEIGHBOURS_", Neighbours::NAMES);
    assert_complete("ZERO_SERVER_ORDER_", ServerOrder::NAMES);
    assert_complete("ZERO_SERVER_RULE_", ServerRule::NAMES);
}

#[test]
fn no_enum_of_the_headers_is_missing_here() {
    let known = [
        "E",
        "DTYPE",
        "KEY",
        "REDUCE",
        "OPERATION",
        "ROUNDING",
        "UNFILLED",
        "MASTER",
        "DIVISOR",
        "NONFINITE",
        "TIER",
        "SCOPE",
        "SNAPSHOT",
        "CODE",
        "RESIDUAL",
        "NEIGHBOURS",
        "SERVER",
        "PART",
        "TEXT",
        "EXPORT",
        "SLOT",
        "SOURCE",
        "SYNC",
        "FINDING",
        "MICRO",
        "MEMORY",
        "FEATURE",
        "INITIALISER",
        "VERSION",
        "ABI",
        "MPI",
        "OK",
    ];
    for (name, _) in sys::CONSTANTS {
        let noun = name.split('_').nth(1).unwrap();
        assert!(known.contains(&noun), "{name}");
    }
}

#[test]
fn numbers_without_a_name_are_kept() {
    assert_eq!(DType::from_raw(99), DType::Other(99));
    assert_eq!(DType::Other(99).raw(), 99);
    assert_eq!(Slot::custom(0), Slot::Custom);
    assert_eq!(Slot::custom(3).raw(), 23);
}
