//! How often each key is requested: Zipf's law, drawn in constant time.

use crate::random::Random;

/// Ranks with probabilities proportional to `1 / rank^exponent`, as an alias table.
#[derive(Debug)]
pub(super) struct Popularity {
    columns: Box<[Column]>,
    probabilities: Box<[f32]>,
}

/// A column of the alias table: its own rank below the threshold, else the alias.
#[derive(Debug, Clone, Copy)]
struct Column {
    threshold: u32,
    alias: u32,
}

impl Popularity {
    pub(super) fn zipf(ranks: u32, exponent: f64) -> Self {
        let mut weights: Vec<f64> =
            (1..=ranks).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        let probabilities = weights.iter().map(|weight| *weight as f32).collect();
        let scale = f64::from(ranks);
        weights.iter_mut().for_each(|weight| *weight *= scale);
        Self { columns: columns(weights), probabilities }
    }

    /// Draws a rank, from 0.
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.draw();
        let column = ((u128::from(bits) * self.columns.len() as u128) >> 64) as u32;
        let Column { threshold, alias } = self.columns[column as usize];
        // The low bits hardly influence the column.
        if (bits as u32) < threshold { column } else { alias }
    }

    /// Returns the probability of a rank.
    pub(super) fn of(&self, rank: u32) -> f64 {
        self.probabilities.get(rank as usize).copied().unwrap_or(0.0).into()
    }
}

/// Pairs ranks with less than the mean weight with ranks that have more (Vose's method).
fn columns(mut weights: Vec<f64>) -> Box<[Column]> {
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0..weights.len() as u32).partition(|rank| weights[*rank as usize] < 1.0);
    let mut columns: Vec<Column> =
        (0..weights.len() as u32).map(|rank| Column { threshold: u32::MAX, alias: rank }).collect();
    while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
        let weight = weights[less as usize];
        columns[less as usize] =
            Column { threshold: (weight * f64::from(u32::MAX)) as u32, alias: more };
        weights[more as usize] -= 1.0 - weight;
        if weights[more as usize] < 1.0 {
            small.extend(large.pop());
        }
    }
    columns.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_drawn_with_their_probabilities() {
        let (popularity, mut random) = (Popularity::zipf(1000, 1.0), Random::new(7));
        let mut counts = vec![0_u32; 1000];
        (0..1_000_000).for_each(|_| counts[popularity.draw(&mut random) as usize] += 1);
        for rank in [0, 1, 9, 99] {
            let expected = popularity.of(rank) * 1e6;
            let drawn = f64::from(counts[rank as usize]);
            assert!((drawn / expected - 1.0).abs() < 0.1, "rank {rank}: {drawn} of {expected}");
        }
        assert!((f64::from(counts[0]) / f64::from(counts[1]) - 2.0).abs() < 0.1);
    }
}
