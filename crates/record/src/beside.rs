//! Samples of the machine during a run, once a second: block devices, processors and memory.
//!
//! Raw data: growth of the kernel's counters between two samples, from which rates derive.

use super::interval::add_cpu;
use super::{HostCpu, IoDevice, IoTally};
use plumb_units::{Counter, counters};
use serde::{Deserialize, Serialize};

/// Samples of a run in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Planned time between two samples, nanoseconds.
    pub interval_ns: u64,
    /// CPU time of all samples, nanoseconds.
    pub cost_ns: u64,
    /// Growth of the counters between consecutive samples.
    pub samples: Vec<Sample>,
}

/// Growth of the counters between two samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the first, nanoseconds from the run's start.
    pub begin_ns: u64,
    /// Time of the second, nanoseconds from the run's start.
    pub end_ns: u64,
    /// The block devices under the paths, in the same order in all samples.
    pub devices: Vec<DeviceSample>,
    /// CPU time of the whole host, with the load average at the end.
    pub cpu: Option<HostCpu>,
    pub memory: Option<MemorySample>,
}

/// I/O of a block device between two samples, by all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSample {
    /// The kernel's name of the disk or partition.
    pub device: String,
    pub reads: DeviceTally,
    pub writes: DeviceTally,
    /// Time with a request in flight, nanoseconds.
    pub busy_ns: u64,
    /// Time in flight summed over requests, nanoseconds.
    pub weighted_ns: u64,
}

/// Requests of a block device in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTally {
    pub requests: u64,
    /// Requests merged into others before submission.
    pub merged: u64,
    pub bytes: u64,
    /// Time from submission to completion, summed over requests, nanoseconds.
    pub time_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySample {
    /// Memory available without swapping at the end, bytes.
    pub available_bytes: Option<u64>,
    /// Time in which some task waited for memory, nanoseconds; `None` if the
    /// kernel does not record it.
    pub some_stalled_ns: Option<u64>,
    /// Time in which all non-idle tasks waited for memory, nanoseconds.
    pub full_stalled_ns: Option<u64>,
}

/// Returns a part of a whole as a fraction; 0 of an empty whole.
fn share_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl From<DeviceTally> for IoTally {
    fn from(tally: DeviceTally) -> IoTally {
        IoTally { requests: tally.requests, bytes: tally.bytes, time_ns: Some(tally.time_ns) }
    }
}

impl DeviceTally {
    /// Applies `of` to each count.
    fn part(&self, of: impl Fn(u64) -> u64) -> DeviceTally {
        DeviceTally {
            requests: of(self.requests),
            merged: of(self.merged),
            bytes: of(self.bytes),
            time_ns: of(self.time_ns),
        }
    }
}

counters!(DeviceTally { requests, merged, bytes, time_ns });

impl Sample {
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns) as f64 / 1e9
    }

    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Returns the sample with its counts scaled to a part of its time, rounded. Values read at its
    /// end, such as the load average, are unchanged.
    fn part(&self, inside_ns: u64) -> Sample {
        let share = share_of(inside_ns, self.length_ns());
        // A whole sample keeps its exact counts, even above the precision of f64.
        let of = |count: u64| if share < 1.0 { (count as f64 * share).round() as u64 } else { count };
        let device = |device: &DeviceSample| DeviceSample {
            device: device.device.clone(),
            reads: device.reads.part(of),
            writes: device.writes.part(of),
            busy_ns: of(device.busy_ns),
            weighted_ns: of(device.weighted_ns),
        };
        let cpu = |cpu: &HostCpu| HostCpu {
            user_ns: of(cpu.user_ns),
            system_ns: of(cpu.system_ns),
            iowait_ns: of(cpu.iowait_ns),
            steal_ns: of(cpu.steal_ns),
            idle_ns: of(cpu.idle_ns),
            ..cpu.clone()
        };
        Sample {
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            devices: self.devices.iter().map(device).collect(),
            cpu: self.cpu.as_ref().map(cpu),
            memory: self.memory.map(|memory| MemorySample {
                some_stalled_ns: memory.some_stalled_ns.map(of),
                full_stalled_ns: memory.full_stalled_ns.map(of),
                ..memory
            }),
        }
    }

    /// Adds the sample that follows.
    pub fn add(&mut self, next: &Sample) {
        self.end_ns = next.end_ns;
        for (device, more) in self.devices.iter_mut().zip(&next.devices) {
            device.reads.add(&more.reads);
            device.writes.add(&more.writes);
            device.busy_ns += more.busy_ns;
            device.weighted_ns += more.weighted_ns;
        }
        match (&mut self.cpu, &next.cpu) {
            (Some(cpu), Some(next)) => add_cpu(cpu, next),
            (cpu, _) => *cpu = None,
        }
        if let (Some(memory), Some(next)) = (&mut self.memory, &next.memory) {
            memory.some_stalled_ns.grow(&next.some_stalled_ns);
            memory.full_stalled_ns.grow(&next.full_stalled_ns);
            memory.available_bytes = next.available_bytes;
        }
    }
}

impl Beside {
    /// Cuts the samples to a period, with times from its start. A sample partly outside
    /// has its counts scaled to the time inside, as if they grew evenly. The cost is
    /// scaled to the samples inside.
    pub fn within(&self, begin_ns: u64, end_ns: u64) -> Beside {
        let inside = |sample: &Sample| {
            let (begin, end) = (sample.begin_ns.max(begin_ns), sample.end_ns.min(end_ns));
            end.saturating_sub(begin)
        };
        let looks: f64 = self.samples.iter().map(|sample| share_of(inside(sample), sample.length_ns())).sum();
        let cut = |sample: &Sample| {
            (inside(sample) > 0).then(|| Sample {
                begin_ns: sample.begin_ns.saturating_sub(begin_ns),
                end_ns: sample.end_ns.min(end_ns) - begin_ns,
                ..sample.part(inside(sample))
            })
        };
        Beside {
            interval_ns: self.interval_ns,
            cost_ns: (self.cost_ns as f64 * looks / self.samples.len().max(1) as f64).round() as u64,
            samples: self.samples.iter().filter_map(cut).collect(),
        }
    }

    /// Returns the sums of the devices that moved anything.
    pub fn devices(&self) -> Vec<IoDevice> {
        let sum = self.joined(1).pop().unwrap_or_default();
        let moved = |device: &DeviceSample| device.reads.requests + device.writes.requests > 0;
        let device = |device: DeviceSample| IoDevice {
            device: device.device,
            reads: device.reads.into(),
            writes: device.writes.into(),
            busy_ns: Some(device.busy_ns),
            weighted_ns: Some(device.weighted_ns),
        };
        sum.devices.into_iter().filter(moved).map(device).collect()
    }

    /// Joins neighbouring samples, so that at most this number is left.
    pub fn joined(&self, most: usize) -> Vec<Sample> {
        let size = self.samples.len().div_ceil(most.max(1)).max(1);
        let sum = |group: &[Sample]| {
            let (first, rest) = group.split_first()?;
            let mut sum = first.clone();
            rest.iter().for_each(|next| sum.add(next));
            Some(sum)
        };
        self.samples.chunks(size).filter_map(sum).collect()
    }

    /// Formats the samples as CSV: a line for each device and sample, with the kernel's counters.
    pub fn to_csv(&self) -> String {
        let mut csv = "begin_s,end_s,device,reads,reads_merged,read_bytes,read_time_ns,writes,writes_merged,\
                       write_bytes,write_time_ns,busy_ns,weighted_ns,cpu_user_ns,cpu_system_ns,cpu_iowait_ns,\
                       cpu_steal_ns,cpu_idle_ns,load,memory_available_bytes,memory_some_stalled_ns,\
                       memory_full_stalled_ns\n"
            .to_string();
        let none = [DeviceSample::default()];
        for sample in &self.samples {
            let devices = if sample.devices.is_empty() { &none[..] } else { &sample.devices[..] };
            devices.iter().for_each(|device| csv.push_str(&line(sample, device)));
        }
        csv
    }
}

fn line(sample: &Sample, device: &DeviceSample) -> String {
    let tally = |tally: &DeviceTally| {
        [tally.requests, tally.merged, tally.bytes, tally.time_ns].map(|count| count.to_string())
    };
    let optional = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let cpu = sample.cpu.as_ref();
    let times: [fn(&HostCpu) -> u64; 5] =
        [|cpu| cpu.user_ns, |cpu| cpu.system_ns, |cpu| cpu.iowait_ns, |cpu| cpu.steal_ns, |cpu| cpu.idle_ns];
    let memory = sample.memory.unwrap_or_default();
    let mut fields = vec![
        format!("{:.3}", sample.begin_ns as f64 / 1e9),
        format!("{:.3}", sample.end_ns as f64 / 1e9),
        device.device.clone(),
    ];
    fields.extend(tally(&device.reads));
    fields.extend(tally(&device.writes));
    fields.extend([device.busy_ns, device.weighted_ns].map(|time| time.to_string()));
    fields.extend(times.map(|of| optional(cpu.map(of))));
    fields.push(cpu.and_then(|cpu| cpu.load_end).map_or(String::new(), |load| load.to_string()));
    fields.extend([memory.available_bytes, memory.some_stalled_ns, memory.full_stalled_ns].map(optional));
    fields.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64) -> Sample {
        let tally = DeviceTally { requests: second, merged: 1, bytes: 8192 * second, time_ns: 10 * second };
        Sample {
            begin_ns: second * 1_000_000_000,
            end_ns: (second + 1) * 1_000_000_000,
            devices: vec![DeviceSample {
                device: "vda".to_string(),
                reads: tally,
                writes: DeviceTally::default(),
                busy_ns: 5,
                weighted_ns: 9,
            }],
            cpu: Some(HostCpu { user_ns: second, load_end: Some(0.5), ..HostCpu::default() }),
            memory: Some(MemorySample { available_bytes: Some(1 << 30), ..MemorySample::default() }),
        }
    }

    fn beside() -> Beside {
        Beside { interval_ns: 1_000_000_000, cost_ns: 4_000, samples: (0..10).map(sample).collect() }
    }

    #[test]
    fn joined_samples_have_the_same_sums() {
        for most in [1, 3, 4, 10, 99] {
            let joined = beside().joined(most);
            assert!(joined.len() <= most, "{most}");
            let sum: u64 = joined.iter().map(|sample| sample.devices[0].reads.requests).sum();
            assert_eq!(sum, 45);
            let devices = beside().devices();
            assert_eq!((devices.len(), devices[0].reads.requests, devices[0].busy_ns), (1, 45, Some(50)));
            assert_eq!(joined.last().expect("some").end_ns, 10_000_000_000);
        }
    }

    #[test]
    fn a_period_has_its_own_clock_and_blanks() {
        let inside = beside().within(2_000_000_000, 5_000_000_000);
        assert_eq!(inside.samples.len(), 3);
        assert_eq!((inside.samples[0].begin_ns, inside.samples[2].end_ns), (0, 3_000_000_000));
        assert_eq!((inside.samples[0].devices[0].reads.requests, inside.cost_ns), (2, 1_200));
        insta::assert_snapshot!(Beside { samples: vec![sample(3), Sample::default()], ..beside() }.to_csv());
    }

    #[test]
    fn a_cut_sample_has_counts_in_proportion() {
        let busy = |second: u64| {
            let mut busy = sample(second);
            busy.devices[0].busy_ns = 1_000_000_000;
            busy.devices[0].reads.requests = 1_001;
            busy.cpu =
                Some(HostCpu { user_ns: 800, idle_ns: 200, load_end: Some(0.5), ..HostCpu::default() });
            busy.memory = Some(MemorySample { some_stalled_ns: Some(400), ..MemorySample::default() });
            busy
        };
        let all = Beside { samples: (0..4).map(busy).collect(), ..beside() };
        let cut = all.within(750_000_000, 2_500_000_000);
        let ends: Vec<_> = cut.samples.iter().map(|sample| (sample.begin_ns, sample.end_ns)).collect();
        assert_eq!(
            ends,
            [(0, 250_000_000), (250_000_000, 1_250_000_000), (1_250_000_000, 1_750_000_000)],
            "the strip has no gap to the period's end"
        );
        let requests = cut.samples.iter().map(|sample| sample.devices[0].reads.requests);
        assert_eq!(requests.collect::<Vec<_>>(), [250, 1_001, 501]);
        for sample in &cut.samples {
            assert_eq!(sample.devices[0].busy_ns, sample.end_ns - sample.begin_ns, "busy all the time");
        }
        let last = &cut.samples[2];
        let cpu = last.cpu.as_ref().expect("it is known");
        assert_eq!((cpu.user_ns, cpu.idle_ns, cpu.load_end), (400, 100, Some(0.5)));
        assert_eq!(last.memory.and_then(|memory| memory.some_stalled_ns), Some(200));
        assert_eq!(cut.cost_ns, 1_750, "of 1.75 of four looks");
        let within = all.within(1_100_000_000, 1_200_000_000);
        assert_eq!((within.samples.len(), within.samples[0].devices[0].reads.requests), (1, 100));
        assert!(all.within(9_000_000_000, 9_500_000_000).samples.is_empty());
    }
}
