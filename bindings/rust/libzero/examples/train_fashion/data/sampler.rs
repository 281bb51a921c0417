//! Which samples all ranks train on in a step: a seeded Fisher-Yates shuffle per epoch, which every rank computes for itself.

use crate::data::Random;

pub struct Sampler {
    batch: usize,
    seed: u64,
    /// That `order` belongs to; none at first.
    epoch: Option<usize>,
    order: Vec<usize>,
}

impl Sampler {
    pub fn new(count: usize, batch: usize, seed: u64) -> Self {
        Sampler { batch, seed, epoch: None, order: vec![0; count] }
    }

    pub fn steps_per_epoch(&self) -> usize {
        (self.order.len() + self.batch - 1) / self.batch
    }

    /// The samples of a step, counted from 0 over all epochs; the last step of an epoch takes what is left.
    pub fn batch(&mut self, step: usize) -> &[usize] {
        let epoch = step / self.steps_per_epoch();
        if self.epoch != Some(epoch) {
            self.shuffle(epoch);
        }
        let first = step % self.steps_per_epoch() * self.batch;
        let end = self.order.len().min(first + self.batch);
        &self.order[first..end]
    }

    fn shuffle(&mut self, epoch: usize) {
        // Streams 0 .. 2^32 belong to first values.
        let mut random = Random::new(self.seed, (1 << 32) + epoch as u64);
        self.order.iter_mut().enumerate().for_each(|(i, sample)| *sample = i);
        for i in (1..self.order.len()).rev() {
            let j = random.next() % (i as u64 + 1);
            self.order.swap(i, j as usize);
        }
        self.epoch = Some(epoch);
    }
}
