//! Each stage of an index build alone, on files in memory and one thread.

use crate::figure::Figure;
use crate::sort_kernels::Sink;
use anyhow::Context;
use plumb_engine::Instance;
use plumb_engine::access::memory::QUEUE_BUFFER_BYTES;
use plumb_engine::index::block::LeafBuilder;
use plumb_engine::parallel::servers::Operation;
use plumb_engine::parallel::table_queue::{Closed, TableQueue};
use plumb_engine::sort::area::{MemoryMerge, RecordSink, RecordSize, STRIPS_MAX, SortArea};
use plumb_engine::sort::codec::Codec;
use plumb_engine::sort::format::{Format, RunFormat};
use plumb_engine::sort::merge_plan::MergeShape;
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::sort::run::{Run, RunWriter};
use plumb_engine::sort::{SortServer, merge};
use plumb_engine::storage::block::{self, BlockKind};
use plumb_engine::storage::control::Table;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::scan::{self, Granules};
use plumb_events::clock::thread_cpu;
use plumb_events::{Phase, Role, Session};
use plumb_proof::random::Generator;
use plumb_units::{BlockAddress, Bytes, Lsn, RowId};
use std::hint::black_box;

/// Rows whose records stay in the second-level cache.
const HOT_ROWS: usize = 8192;
/// Width of the merge that is measured for itself, and most rows of it.
const FAN_IN: usize = 64;
const FAN_IN_ROWS: usize = 4_000_000;
/// Most rows of the inputs in order, in reverse and at random.
const GENERATION_ROWS: usize = 2_000_000;

/// Costs of the stages, and other measurements in words.
pub(super) struct Findings {
    pub(super) stages: Vec<Stage>,
    pub(super) lines: Vec<String>,
}

pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) nanos: Figure,
}

pub(super) struct Alone<'a, C> {
    instance: &'a Instance,
    session: Session,
    lsn: Lsn,
    operation: Operation,
    plan: SortPlan,
    table: Table,
    codec: C,
    hot_records: Vec<u8>,
    /// The first record of the second of two ranges.
    split: Vec<u8>,
    /// Records of the first range, in the order of the scan.
    records: Vec<u8>,
    record_count: usize,
}

/// Result of a sort: runs, and the rest in memory.
struct Sorted<A> {
    runs: Vec<Run>,
    /// None when there are no runs.
    shape: Option<MergeShape>,
    area: A,
    /// Nanoseconds a row of sorting and of writing.
    sort: f64,
    write: f64,
}

/// The area of a codec's records.
type Area<C> = <<C as Codec>::Format as Format>::Area;

impl<'a, C: Codec> Alone<'a, C> {
    pub(super) fn new(instance: &'a Instance, table: Table, codec: C) -> anyhow::Result<Alone<'a, C>> {
        let record = RecordSize::new::<Area<C>>(16);
        let session = instance.recorder.session(Role::User);
        let mut alone = Alone {
            instance,
            lsn: instance.next_lsn(&session)?,
            session,
            operation: instance.operation(),
            plan: SortPlan::new(instance, record, table.row_count)?,
            codec,
            table,
            hot_records: Vec::new(),
            split: Vec::new(),
            records: Vec::new(),
            record_count: 0,
        };
        alone.collect()?;
        Ok(alone)
    }

    /// Scans the table once for the input of all stages: rows, records, the key that halves them.
    fn collect(&mut self) -> anyhow::Result<()> {
        let mut all = Vec::new();
        let granules = Granules::new(&self.table);
        scan::scan(self.instance, &self.session, &self.operation, &granules, |row, row_id| {
            let made = self.codec.encode(row, row_id, &mut all);
            debug_assert!(made.is_ok());
            Ok(())
        })?;
        self.hot_records = records::<C::Format>(&all).take(HOT_ROWS).collect::<Vec<&[u8]>>().concat();
        // Every hundredth record: the table may lie in some order.
        let mut sample: Vec<&[u8]> = records::<C::Format>(&all).step_by(100).collect();
        sample.sort_by(|one, two| C::Format::compare(one, two));
        self.split = sample.get(sample.len() / 2).context("a table without rows")?.to_vec();
        let low: Vec<&[u8]> =
            records::<C::Format>(&all).filter(|one| C::Format::compare(one, &self.split).is_lt()).collect();
        (self.records, self.record_count) = (low.concat(), low.len());
        let record = RecordSize::new::<Area<C>>(self.records.len() / self.record_count.max(1));
        self.plan = SortPlan::new(self.instance, record, self.record_count as u64)?;
        Ok(())
    }

    /// Measures every stage `repeat` times, in turns.
    pub(super) fn measure(&self, repeat: usize) -> anyhow::Result<Findings> {
        const NAMES: [&str; 7] = ["scan", "key", "queue", "run sort", "run write", "merge", "leaf"];
        let mut nanos: [Vec<f64>; NAMES.len()] = Default::default();
        let mut sorted = Vec::new();
        for _ in 0..repeat {
            let server = self.server();
            let done = self.sort(&server)?;
            let merge = self.merge(&server, &done, |_| {})?;
            if sorted.is_empty() {
                self.merge(&server, &done, |record| sorted.extend_from_slice(record))?;
            }
            let (sort, write, leaf) = (done.sort, done.write, self.leaf(&sorted));
            let scan = self.scan()?;
            let measured = [scan, self.make(scan)?, self.queue()?, sort, write, merge, leaf];
            nanos.iter_mut().zip(measured).for_each(|(all, one)| all.push(one));
        }
        let stage = |(name, nanos)| Stage { name, nanos: Figure::of(nanos) };
        let stages = NAMES.into_iter().zip(nanos).map(stage).collect();
        let mut lines = self.generation(&sorted, repeat);
        let wide = (0..repeat).map(|_| self.wide_merge(&sorted)).collect::<anyhow::Result<Vec<f64>>>()?;
        lines.push(format!("merge, {FAN_IN}-way: {} ns a row (goal 30)", Figure::of(wide).show(1)));
        Ok(Findings { stages, lines })
    }

    fn server(&self) -> SortServer<'_> {
        SortServer {
            instance: self.instance,
            session: &self.session,
            operation: &self.operation,
            plan: &self.plan,
            lsn: self.lsn,
            last_phase: Phase::MergeAndIndex,
        }
    }

    fn scan(&self) -> anyhow::Result<f64> {
        self.scan_and(|row, _| {
            black_box(row);
        })
    }

    /// Returns the time that making the record of each row adds to a scan. (Of rows in an array of
    /// their own it takes up to four times as long as of rows in a block whose
    /// checksum has just been computed.)
    fn make(&self, scan: f64) -> anyhow::Result<f64> {
        let mut out = Vec::with_capacity(QUEUE_BUFFER_BYTES);
        let with_records = self.scan_and(|row, row_id| {
            if out.len() > QUEUE_BUFFER_BYTES / 2 {
                black_box(&mut out).clear();
            }
            let made = self.codec.encode(row, row_id, &mut out);
            debug_assert!(made.is_ok());
        })?;
        Ok(with_records - scan)
    }

    fn scan_and(&self, mut visit: impl FnMut(&[u8], RowId)) -> anyhow::Result<f64> {
        let granules = Granules::new(&self.table);
        let begin = thread_cpu();
        scan::scan(self.instance, &self.session, &self.operation, &granules, |row, row_id| {
            visit(row, row_id);
            Ok(())
        })?;
        Ok(per_row(begin, self.table.row_count as usize))
    }

    /// Range, buffer, both ends of the queue, in one thread that never waits.
    fn queue(&self) -> anyhow::Result<f64> {
        let failed = |Closed| anyhow::anyhow!("nobody closes the queue");
        let rounds = (self.table.row_count as usize / HOT_ROWS).max(1);
        let queue = TableQueue::new(2, 1, 4);
        let mut buffers = [0, 1].map(|range| queue.empty_buffer(&self.session, range).unwrap_or_default());
        let begin = thread_cpu();
        for _ in 0..rounds {
            for record in records::<C::Format>(&self.hot_records) {
                let range = usize::from(C::Format::compare(&self.split, record).is_le());
                if buffers[range].len() + record.len() > QUEUE_BUFFER_BYTES {
                    queue.send(&self.session, range, std::mem::take(&mut buffers[range]));
                    if let Some(full) = queue.receive(&self.session, range).map_err(failed)? {
                        queue.give_back(range, full);
                    }
                    buffers[range] = queue.empty_buffer(&self.session, range).map_err(failed)?;
                }
                buffers[range].extend_from_slice(record);
            }
        }
        Ok(per_row(begin, rounds * HOT_ROWS))
    }

    /// Fills the sort area, and writes runs as a sort server does: strips for which there is no
    /// room, then enough that a merge of all runs has its buffers.
    fn sort(&self, server: &SortServer<'_>) -> anyhow::Result<Sorted<Area<C>>> {
        let mut area = Area::<C>::new(self.plan.area.0 as usize, self.plan.strips, self.plan.record)?;
        let mut writer = RunWriter::<<C::Format as RunFormat>::Packing>::new(server)?;
        let (mut sort, mut write, mut runs) = (0.0, 0.0, 0);
        let mut rest = self.records.as_slice();
        loop {
            let begin = thread_cpu();
            let taken = area.fill(rest)?;
            if taken == rest.len() {
                area.close()?;
            }
            sort += per_row(begin, self.record_count);
            rest = &rest[taken..];
            if rest.is_empty() {
                break;
            }
            let begin = thread_cpu();
            runs += area.spill(&mut writer)?;
            write += per_row(begin, self.record_count);
        }
        let begin = thread_cpu();
        let mut free = 0;
        let shape = loop {
            free += area.release_spare() as u64;
            if runs == 0 {
                break None;
            }
            let shape = self.plan.one_pass(runs as usize, Bytes(free));
            if shape.is_some() {
                break shape;
            }
            anyhow::ensure!(
                !area.is_empty(),
                "{runs} runs are too many for one merge: set a larger sort_area_size"
            );
            runs += area.spill(&mut writer)?;
        };
        let (runs, _) = writer.finish()?;
        write += per_row(begin, self.record_count);
        Ok(Sorted { runs, shape, area, sort, write })
    }

    /// Nanoseconds a row of the last merge.
    fn merge(
        &self,
        server: &SortServer<'_>,
        sorted: &Sorted<Area<C>>,
        mut take: impl FnMut(&[u8]),
    ) -> anyhow::Result<f64> {
        let begin = thread_cpu();
        if let Some(shape) = sorted.shape {
            let take = |record: &[u8]| {
                take(black_box(record));
                Ok(())
            };
            let strips = sorted.area.sources();
            merge::merge::<C::Format>(server, sorted.runs.clone(), shape, strips, take)?;
        } else {
            let mut memory = MemoryMerge::<C::Format>::new(sorted.area.sources());
            while let record @ [_, ..] = memory.current() {
                take(black_box(record));
                memory.advance();
            }
        }
        Ok(per_row(begin, self.record_count))
    }

    /// Entries into leaves, and their checksums.
    fn leaf(&self, sorted: &[u8]) -> f64 {
        let mut block = vec![0; self.instance.tablespace(Purpose::Indx).block_size.bytes()];
        let mut leaf = LeafBuilder::new();
        let mut state = C::State::default();
        let (address, lsn) = (BlockAddress::default(), self.lsn);
        let begin = thread_cpu();
        for record in records::<C::Format>(sorted) {
            let (key, row) = self.codec.decode(record, &mut state);
            if !leaf.push_key(&mut block, key, row) {
                let content = leaf.finish(&mut block, None);
                block::seal(&mut block, BlockKind::Leaf, address, lsn, content);
                black_box(&block);
                leaf.push_key(&mut block, key, row);
            }
        }
        per_row(begin, self.record_count)
    }

    /// Strips from records at random, in order and in reverse.
    fn generation(&self, sorted: &[u8], repeat: usize) -> Vec<String> {
        let random: Vec<&[u8]> = records::<C::Format>(&self.records).take(GENERATION_ROWS).collect();
        let ordered: Vec<&[u8]> = records::<C::Format>(sorted).take(GENERATION_ROWS).collect();
        let reversed: Vec<&[u8]> = ordered.iter().rev().copied().collect();
        let rate = |input: &[&[u8]]| {
            let bytes = input.concat();
            let once = |_| 1e3 / self.strips(&bytes, input.len());
            Figure::of((0..repeat).map(once).collect::<Vec<_>>())
        };
        let base = rate(&random);
        let line = |name: &str, input: &[&[u8]]| {
            let rate = rate(input);
            let ratio = rate.value / base.value;
            format!(
                "run generation, {name}: {} million rows a second, {ratio:.1} times random (goal 3)",
                rate.show(1)
            )
        };
        let random = format!("run generation, random: {} million rows a second", base.show(1));
        vec![random, line("presorted", &ordered), line("reversed", &reversed)]
    }

    /// Returns the nanoseconds a row of sorting strips that are not written.
    fn strips(&self, mut rest: &[u8], rows: usize) -> f64 {
        let area = Area::<C>::new(self.plan.area.0 as usize, STRIPS_MAX, self.plan.record);
        let mut area = area.expect("memory for an area");
        let begin = thread_cpu();
        while !rest.is_empty() {
            let taken = area.fill(rest).expect("memory for a strip");
            rest = &rest[taken..];
            if rest.is_empty() {
                area.close().expect("memory for a strip");
            }
            while let Ok(1..) = area.spill(&mut Sink) {}
        }
        per_row(begin, rows)
    }

    /// Nanoseconds a row of a merge of exactly [`FAN_IN`] runs.
    fn wide_merge(&self, sorted: &[u8]) -> anyhow::Result<f64> {
        let mut random = Generator::new(9);
        let mut dealt: Vec<Vec<&[u8]>> = vec![Vec::new(); FAN_IN];
        for record in records::<C::Format>(sorted).take(FAN_IN_ROWS) {
            dealt[random.below(FAN_IN)].push(record);
        }
        let server = self.server();
        let mut writer = RunWriter::<<C::Format as RunFormat>::Packing>::new(&server)?;
        for run in &dealt {
            run.iter().try_for_each(|record| writer.record(record))?;
            writer.end_run()?;
        }
        let (runs, _) = writer.finish()?;
        let shape = MergeShape {
            fan_in: FAN_IN,
            chunk_blocks: self.plan.chunk_blocks_max.min(16),
            buffer_count: 2 * FAN_IN,
        };
        let begin = thread_cpu();
        let rows = merge::merge::<C::Format>(&server, runs, shape, Vec::new(), |record| {
            black_box(record);
            Ok(())
        })?;
        Ok(per_row(begin, rows as usize))
    }
}

/// Records that lie one after the other.
fn records<F: Format>(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = F::length(rest);
        let (record, after) = rest.split_at(length);
        rest = after;
        (length > 0).then_some(record)
    })
}

fn per_row(begin: plumb_units::Nanos, rows: usize) -> f64 {
    thread_cpu().saturating_sub(begin).0 as f64 / rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_engine::sort::format::BytesKey;
    use plumb_engine::sort::word::WordKey;

    #[test]
    fn records_lie_one_after_the_other_and_a_piece_at_the_end_is_none() {
        let words = [1u128.to_le_bytes(), 2u128.to_le_bytes()].concat();
        assert_eq!(records::<WordKey<u128>>(&words).count(), 2);
        assert_eq!(records::<WordKey<u128>>(&words[..31]).count(), 1);
        let text = [&[1, 0][..], &[7; 8], b"a", &[2, 0], &[8; 8], b"bc"].concat();
        let lengths: Vec<usize> = records::<BytesKey>(&text).map(<[u8]>::len).collect();
        assert_eq!(lengths, [11, 12]);
    }
}
