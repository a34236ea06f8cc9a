//! The device's rate for a workload's own mix of reads and writes, and the workload's rate.

use serde::{Deserialize, Serialize};

/// The mix of a workload on its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixLimit {
    /// The directory of the measurement.
    pub path: String,
    /// Number of bytes of a request.
    pub block_bytes: u64,
    /// Number of requests outstanding at a time.
    pub outstanding: u64,
    /// Writes per hundred requests of the point before the work, as requested.
    pub write_percent: u8,
    /// Writes per hundred requests of the point after the work, as the work had. `None` if both
    /// points have the same mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_write_percent: Option<u8>,
    /// Rate before the work; `None` if it could not be measured.
    pub before: Option<MixRate>,
    /// Rate after the work; `None` if it could not be measured.
    pub after: Option<MixRate>,
    /// Reason why a rate could not be measured; empty if both could.
    pub refused: String,
    /// Requests per second of the work: reads of blocks into the cache,
    /// writes of the database writers.
    pub reached_per_s: f64,
    /// Writes per hundred requests of the work.
    pub reached_write_percent: f64,
    /// Bytes of the measured file.
    pub file_bytes: u64,
}

/// A rate of requests per second, from repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MixRate {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl MixLimit {
    /// Returns the points before and after the work: writes per hundred requests, and the rate.
    pub fn points(&self) -> [(u8, Option<MixRate>); 2] {
        let after = self.after_write_percent.unwrap_or(self.write_percent);
        [(self.write_percent, self.before), (after, self.after)]
    }

    /// Returns the work's rate as a share of the rates with its mix: of their mean, of the highest
    /// repeat, of the lowest. `None` without such a rate. A share may exceed 1, because a database
    /// writer has more requests outstanding than there are sessions.
    pub fn share(&self) -> Option<[f64; 3]> {
        let of_its_mix = |(percent, rate): (u8, Option<MixRate>)| {
            rate.filter(|_| is_near_mix(percent, self.reached_write_percent))
        };
        let known: Vec<MixRate> = self.points().into_iter().filter_map(of_its_mix).collect();
        let mean = known.iter().map(|rate| rate.median).sum::<f64>() / known.len() as f64;
        let most = known.iter().map(|rate| rate.most).fold(0.0, f64::max);
        let least = known.iter().map(|rate| rate.least).fold(f64::INFINITY, f64::min);
        (least > 0.0)
            .then(|| [mean, most, least].map(|rate| self.reached_per_s / rate))
            .filter(|_| mean > 0.0)
    }

    /// Returns the same point as a job of fio, so that another tool can repeat it.
    pub fn fio_job(&self) -> String {
        let [_, (percent, _)] = self.points();
        let (order, mix) = match percent {
            0 => ("randread", String::new()),
            100 => ("randwrite", String::new()),
            _ => ("randrw", format!("rwmixwrite={percent}\n")),
        };
        format!(
            "; the mix of this run: {} reads and writes of {} bytes, {} outstanding, to one file\n\
             [mix]\ndirectory={}\nfilename=plumb-mix.fio.dat\nsize={}\nrw={order}\n{mix}bs={}\niodepth={}\n\
             numjobs=1\nioengine=io_uring\ndirect=1\nrandrepeat=1\ntime_based=1\nruntime=10\nunlink=1\n",
            "random",
            self.block_bytes,
            self.outstanding,
            self.path,
            self.file_bytes,
            self.block_bytes,
            self.outstanding
        )
    }
}

/// True if a point with `point` writes per hundred requests represents work with `own`. Two
/// measurements of one point differ by more than 2.
pub fn is_near_mix(point: u8, own: f64) -> bool {
    (f64::from(point) - own).abs() <= 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_both_rates() {
        let rate = |median| Some(MixRate { median, least: median - 1.0, most: median + 1.0 });
        let mix = MixLimit {
            path: "/u01".to_string(),
            block_bytes: 8192,
            outstanding: 16,
            write_percent: 17,
            after_write_percent: Some(17),
            before: rate(900.0),
            after: rate(1100.0),
            refused: String::new(),
            reached_per_s: 950.0,
            reached_write_percent: 16.2,
            file_bytes: 1 << 29,
        };
        assert_eq!(mix.share(), Some([0.95, 950.0 / 1101.0, 950.0 / 899.0]));
        insta::assert_snapshot!(mix.fio_job());
        let with = |own: f64, after: u8| {
            let (reached_write_percent, after_write_percent) = (own, Some(after));
            let own = MixLimit { reached_write_percent, after_write_percent, ..mix.clone() };
            own.share().map(|[of_mean, ..]| of_mean)
        };
        assert_eq!(with(9.1, 9), Some(950.0 / 1100.0), "the one before has another mix");
        assert_eq!(with(9.1, 17), None, "neither has its mix");
        assert_eq!(MixLimit { before: None, after: None, ..mix }.share(), None);
    }
}
