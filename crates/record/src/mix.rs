//! The device's rate for a workload's own mix of reads and writes, and the rate that it reached.

use serde::{Deserialize, Serialize};

/// The mix of a workload on its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixLimit {
    /// The directory it was measured in.
    pub path: String,
    pub block_bytes: u64,
    pub outstanding: u64,
    /// Writes in a hundred requests, before the work: what is asked for.
    pub write_percent: u8,
    /// And after it: what the work had. None in a record that measured the same twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_write_percent: Option<u8>,
    /// Before the work; none where it could not be measured.
    pub before: Option<MixRate>,
    pub after: Option<MixRate>,
    /// Why it could not be; empty where it could.
    pub refused: String,
    /// Requests a second that the work made: reads of blocks into the cache, writes of the database writers.
    pub reached_per_s: f64,
    /// Writes in a hundred of these.
    pub reached_write_percent: f64,
    /// Bytes of the file that it was measured with.
    pub file_bytes: u64,
}

/// A rate of requests from repeats; requests a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MixRate {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl MixLimit {
    /// Both points: writes in a hundred, and the rate; before and after.
    #[must_use]
    pub fn points(&self) -> [(u8, Option<MixRate>); 2] {
        let after = self.after_write_percent.unwrap_or(self.write_percent);
        [(self.write_percent, self.before), (after, self.after)]
    }

    /// What the work reached of the rates that were measured with its share of writes, as fractions: of their mean, of the highest repeat, of the lowest; none where there is
    /// none. Beyond 1 where a database writer, which has many requests at hand, keeps more outstanding than there are sessions.
    #[must_use]
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

    /// The same point as a job of fio: it can be run again by another tool.
    #[must_use]
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

/// True if a point measured with `point` writes in a hundred requests stands for work that made
/// `own`. Two measurements of one point differ by more than 2.
#[must_use]
pub fn is_near_mix(point: u8, own: f64) -> bool {
    (f64::from(point) - own).abs() <= 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_both_rates_and_the_job_says_the_same_to_fio() {
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
