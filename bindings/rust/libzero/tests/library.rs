//! What the library tells of itself.

use libzero::{abi_version, describe, has_feature, sys, version, Code, DType, Feature};

#[test]
fn the_library_knows_its_version() {
    let expected = format!("{}.{}.{}", sys::ZERO_VERSION_MAJOR, sys::ZERO_VERSION_MINOR, sys::ZERO_VERSION_PATCH);
    assert_eq!(version(), expected);
    assert_eq!(abi_version(), sys::ZERO_ABI_MAJOR * 65536 + sys::ZERO_ABI_MINOR);
    assert!(describe().unwrap().contains(&expected));
}

#[test]
fn features_are_asked_for_by_number() {
    assert!(has_feature(Feature::Local));
    assert!(!has_feature(Feature::Other(99)));
}

#[test]
fn codes_have_the_names_of_the_c_api() {
    assert_eq!(Code::Timeout.name(), "ZERO_E_TIMEOUT");
    assert_eq!(Code::Other(1).name(), "ZERO_E_UNKNOWN");
}

#[test]
fn dtypes_have_a_size() {
    assert_eq!(DType::F64.nbytes().unwrap(), 8);
    assert!(DType::Other(99).nbytes().unwrap_err().text().starts_with("dtype is 99, but must be ZERO_DTYPE_F32 (1), "));
}
