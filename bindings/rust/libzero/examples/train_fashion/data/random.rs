//! splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014), for first values and shuffles: integers
//! only, so that trainers in other languages draw the same numbers.

pub struct Random {
    state: u64,
}

impl Random {
    /// The stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let first = Random { state: seed }.next();
        let state = first.wrapping_add(stream);
        Random { state: Random { state }.next() }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
