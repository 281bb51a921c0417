//! The one hot loop of the classifier: a matrix product over strided matrices. Each element's sum runs in one order, whatever the tiling.

/// The left-hand factor: element (row m, segment s, term k) is data[m * row + s * segment + k * term]. Rows may overlap: a convolution
/// reads its input as such a matrix without copying it, one segment per kernel row.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    pub data: &'a [f32],
    pub row: usize,
    pub segment: usize,
    pub term: usize,
}

/// The right-hand factor: element (segment s, term k, column n) is data[s * segment + k * row + n].
#[derive(Clone, Copy)]
pub struct Right<'a> {
    pub data: &'a [f32],
    pub segment: usize,
    pub row: usize,
}

/// How many rows, columns, segments and terms there are.
#[derive(Clone, Copy)]
pub struct Extents {
    pub rows: usize,
    pub columns: usize,
    pub segments: usize,
    pub terms: usize,
}

/// c[m * stride + n] += sum over segments and terms, in this order, of left(m, s, k) * right(s, k, n).
pub fn product_add(extents: Extents, left: Left, right: Right, c: &mut [f32], stride: usize) {
    let mut n = 0;
    while n < extents.columns {
        let from_n = Right { data: &right.data[n..], ..right };
        let to_n = &mut c[n..];
        n += match extents.columns - n {
            8.. => panel::<8>(extents, left, from_n, to_n, stride),
            4.. => panel::<4>(extents, left, from_n, to_n, stride),
            _ => panel::<1>(extents, left, from_n, to_n, stride),
        };
    }
}

/// All rows of as many columns as fit registers; tells how many.
fn panel<const COLUMNS: usize>(extents: Extents, left: Left, right: Right, c: &mut [f32], stride: usize) -> usize {
    let mut m = 0;
    while m < extents.rows {
        let from_m = Left { data: &left.data[m * left.row..], ..left };
        let to_m = &mut c[m * stride..];
        m += match extents.rows - m {
            4.. => tile::<4, COLUMNS>(extents, from_m, right, to_m, stride),
            2.. => tile::<2, COLUMNS>(extents, from_m, right, to_m, stride),
            _ => tile::<1, COLUMNS>(extents, from_m, right, to_m, stride),
        };
    }
    COLUMNS
}

/// One tile, whose sums live in registers; tells how many rows it has.
#[inline(always)]
fn tile<const ROWS: usize, const COLUMNS: usize>(extents: Extents, left: Left, right: Right, c: &mut [f32], stride: usize) -> usize {
    let mut sums = [[0f32; COLUMNS]; ROWS];
    for (m, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&c[m * stride..][..COLUMNS]);
    }
    for s in 0..extents.segments {
        for k in 0..extents.terms {
            let factors = &right.data[s * right.segment + k * right.row..][..COLUMNS];
            for (m, sums) in sums.iter_mut().enumerate() {
                let value = left.data[m * left.row + s * left.segment + k * left.term];
                for (sum, factor) in sums.iter_mut().zip(factors) {
                    *sum += value * factor;
                }
            }
        }
    }
    for (m, sums) in sums.iter().enumerate() {
        c[m * stride..][..COLUMNS].copy_from_slice(sums);
    }
    ROWS
}
