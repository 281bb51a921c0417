//! Images and labels in the IDX format: two zero bytes, a type (8 = unsigned byte), the number of dimensions, big-endian extents, then the
//! bytes. Files that end in .gz go through the program gzip: no crate, and no foreign code in this process.

mod losses;
mod random;
mod sampler;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use crate::model::{CLASSES, PIXELS, SIDE};
use crate::problem::Result;

pub use losses::Losses;
pub use random::Random;
pub use sampler::Sampler;

#[derive(Default)]
pub struct Data {
    pub train: Dataset,
    pub test: Dataset,
}

impl Data {
    /// Reads Fashion-MNIST; a limit above 0 keeps only that many first samples for training.
    pub fn read(folder: &str, limit: usize) -> Result<Self> {
        Ok(Data { train: Dataset::read(folder, "train", limit)?, test: Dataset::read(folder, "t10k", 0)? })
    }
}

#[derive(Default)]
pub struct Dataset {
    images: Vec<u8>,
    pub labels: Vec<u8>,
}

impl Dataset {
    /// Reads FOLDER/NAME-images-idx3-ubyte and -labels-idx1-ubyte, with or without .gz; a limit above 0 keeps only that many first samples.
    fn read(folder: &str, name: &str, limit: usize) -> Result<Self> {
        let images = read_file(folder, &format!("{name}-images-idx3-ubyte"), &[SIDE, SIDE], limit)?;
        let labels = read_file(folder, &format!("{name}-labels-idx1-ubyte"), &[], limit)?;
        let count = images.len() / PIXELS;
        if labels.len() != count {
            return Err(format!("{folder}: {} labels for {count} images of {name}", labels.len()).into());
        }
        if let Some(place) = labels.iter().position(|&label| usize::from(label) >= CLASSES) {
            let text = format!("label {place} of {name} is {}, expected 0 to {}", labels[place], CLASSES - 1);
            return Err(format!("{folder}: {text}").into());
        }
        Ok(Dataset { images, labels })
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn image(&self, sample: usize) -> &[u8] {
        &self.images[sample * PIXELS..][..PIXELS]
    }
}

/// The bytes of up to `limit` items of the given extents.
fn read_file(folder: &str, name: &str, extents: &[usize], limit: usize) -> Result<Vec<u8>> {
    let zipped = Path::new(folder).join(format!("{name}.gz"));
    let path = if zipped.exists() { zipped } else { Path::new(folder).join(name) };
    unzip(&path).and_then(|bytes| parse(&bytes, extents, limit)).map_err(|problem| format!("{}: {}", path.display(), problem.text).into())
}

fn unzip(path: &Path) -> Result<Vec<u8>> {
    if path.extension().map_or(true, |extension| extension != "gz") {
        return fs::read(path).map_err(|problem| match problem.kind() {
            ErrorKind::NotFound => format!("{problem} (the images: Debian's package dataset-fashion-mnist)").into(),
            _ => problem.into(),
        });
    }
    let output = Command::new("gzip").arg("-dc").arg(path).output().map_err(|problem| format!("gzip cannot be run: {problem}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(output.stdout)
}

fn parse(bytes: &[u8], extents: &[usize], limit: usize) -> Result<Vec<u8>> {
    let number = |place: usize| -> Result<usize> {
        let word: [u8; 4] = bytes.get(4 * place..4 * place + 4).ok_or("the header is truncated")?.try_into().expect("four bytes");
        Ok(u32::from_be_bytes(word) as usize)
    };
    let (magic, expected) = (number(0)?, 0x0800 + 1 + extents.len());
    if magic != expected {
        return Err(format!("magic number is {magic:08x}, expected {expected:08x}").into());
    }
    for (place, &extent) in extents.iter().enumerate() {
        if number(2 + place)? != extent {
            return Err(format!("images are {} pixels wide or high, expected {extent}", number(2 + place)?).into());
        }
    }
    let count = if limit > 0 { limit.min(number(1)?) } else { number(1)? };
    let nbytes = count * extents.iter().product::<usize>();
    let items = &bytes[4 * (2 + extents.len())..];
    if count == 0 || items.len() < nbytes {
        return Err(format!("holds {} bytes of items, but {count} items have {nbytes}", items.len()).into());
    }
    Ok(items[..nbytes].to_vec())
}
