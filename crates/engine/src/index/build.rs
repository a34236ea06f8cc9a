//! Builds an index: scan, parallel disk sort, leaves written once and in order.
//!
//! A sample of the table's blocks gives the key ranges of the sort servers. Scan servers read the
//! table and make a record (key and row id) of each row. The table queue passes it to the sort
//! server of its range. At the end of the table each sort server merges its runs straight into the
//! leaves of a sub-index. The sub-indexes follow one another in key order. So the join only links
//! the last leaf of each to the first of the next. It writes the branches above all, so that no
//! leader merges serially.
//!
//! Ranges are of (key, row id) rather than of keys. A key of half the rows is split over servers by
//! row id, so the servers stay balanced.
//!
//! With `parallel_degree=1` one server scans, sorts and writes, without a queue.
//!
//! Each sort server writes the branches above its leaves along with them
//! ([`levels`](super::levels)). One block of each server is left for the join. 100 million rows in
//! 8K blocks make 225,000 leaves and 700 branches.
//!
//! The index enters the control file last, after its blocks are durable.

use crate::access::memory::{QUEUE_BUFFER_BYTES, QUEUE_BUFFERS_PER_SENDER, queue_bytes};
use crate::index::block::key_bytes_max;
use crate::index::levels::{self, BranchWriter, LastLeaf, LeafWriter, TreeTarget, WrittenTree};
use crate::parallel::servers::{self, Operation};
use crate::parallel::table_queue::{CloseGuard, Closed, TableQueue};
use crate::sort::area::RecordSize;
use crate::sort::codec::{BytesCodec, Codec};
use crate::sort::format::{Format, RunFormat};
use crate::sort::key::KeyBuilder;
use crate::sort::plan::{SHARED_MEMORY, SortPlan};
use crate::sort::summary::{self, Divided, SortSummary};
use crate::sort::word::{WordCodec, WordLayout};
use crate::sort::{SortOutcome, SortServer, Sorter, key_ranges};
use crate::storage::block::{self, BlockKind, LsnRange};
use crate::storage::control::{Index, IndexColumn, SegmentExtent, StoredAddress, Table, stored_name};
use crate::storage::scattered_reader::{Piece, ScatteredOptions, ScatteredReader};
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::table::chain::chained_length;
use crate::table::heap;
use crate::table::scan::{self, Granules};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Phase, Role, Session, Statistic, now};
use plumb_io::{Arena, Operation as Transfer, Request};
use plumb_units::{BlockAddress, BlockNumber, Bytes, Lsn, RowId};
use std::sync::Arc;
use std::thread;

/// Table blocks read to find the key ranges.
const SAMPLE_BLOCKS: usize = 256;
/// Sample blocks in flight at once.
const SAMPLE_READS: usize = 32;
/// Bytes of the smallest record that is planned for: a packed word.
const RECORD_BYTES_MIN: usize = 8;

/// Parameters of an index build.
#[derive(Debug, Clone)]
pub struct IndexSpec {
    /// Name of the index, in any case: the catalog keeps names in capitals.
    pub name: String,
    /// Name of the table, in any case.
    pub table: String,
    /// Names of the key columns, each with `true` for descending.
    pub columns: Vec<(String, bool)>,
}

/// Result of an index build.
#[derive(Debug, Clone)]
pub struct BuildOutcome {
    /// The index as entered in the catalog.
    pub index: Index,
    /// Summary of the sort servers' work.
    pub sort: SortSummary,
}

/// Builds an index by a parallel disk sort.
///
/// # Errors
/// If the table or a column is missing, the index exists, a key is too long, a block is corrupt or
/// I/O fails. Then nothing of the build remains.
pub fn create_index(instance: &Instance, spec: &IndexSpec) -> Result<BuildOutcome, EngineError> {
    create_index_among(instance, spec, 0)
}

/// Builds an index as [`create_index`], while others are built in the same instance. Its servers
/// are numbered from `first_server` on, so that no two of an instance have one name.
///
/// # Errors
/// As [`create_index`].
pub fn create_index_among(
    instance: &Instance,
    spec: &IndexSpec,
    first_server: usize,
) -> Result<BuildOutcome, EngineError> {
    let (table, columns) = resolve(instance, spec)?;
    let coordinator = instance.recorder.session(Role::Coordinator);
    let block_size = instance.tablespace(table.tablespace).block_size;
    let layout = WordLayout::new(&columns, &table, block_size);
    let lsn = instance.next_lsn(&coordinator)?;
    let build = Build { instance, spec, table: &table, columns: &columns, lsn, first_server };
    match layout {
        Some(layout) if layout.fits::<u64>() => build.run(&coordinator, &WordCodec::<u64>::new(layout)),
        Some(layout) => build.run(&coordinator, &WordCodec::<u128>::new(layout)),
        None => build.run(&coordinator, &BytesCodec(KeyBuilder::new(&columns, &table.schema))),
    }
}

/// Finds the table and the columns, and refuses a name that is taken.
fn resolve(instance: &Instance, spec: &IndexSpec) -> Result<(Table, Vec<IndexColumn>), EngineError> {
    let catalog = instance.catalog();
    let table = catalog.table(&spec.table)?.clone();
    catalog.require_free(&spec.name)?;
    let column = |(name, descending): &(String, bool)| match table.schema.position(name) {
        Some(position) => Ok(IndexColumn { position, descending: *descending }),
        None => Err(EngineError::Missing {
            kind: "column",
            name: format!("{name} in table {}", table.name),
            known: table.schema.names(),
        }),
    };
    let columns = spec.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    if columns.is_empty() {
        return Err(EngineError::Missing {
            kind: "column",
            name: "for the key".to_string(),
            known: table.schema.names(),
        });
    }
    Ok((table, columns))
}

/// State shared by all parts of a build.
struct Build<'a> {
    instance: &'a Instance,
    spec: &'a IndexSpec,
    table: &'a Table,
    columns: &'a [IndexColumn],
    lsn: Lsn,
    /// Number of its first server of each role.
    first_server: usize,
}

struct SubIndex {
    outcome: SortOutcome,
    server: String,
    tree: WrittenTree,
}

impl Build<'_> {
    fn run<C: Codec>(&self, coordinator: &Session, codec: &C) -> Result<BuildOutcome, EngineError> {
        let instance = self.instance;
        let degree = instance.parallel_degree();
        let begin = now();
        let mut sample = self.sample(coordinator, codec)?;
        let record_bytes =
            (sample.iter().map(Vec::len).sum::<usize>()).div_ceil(sample.len().max(1)).max(RECORD_BYTES_MIN);
        let record = RecordSize::new::<<C::Format as Format>::Area>(record_bytes);
        let plan = SortPlan::new(instance, record, self.table.row_count / degree as u64)?;
        sample.sort_by(|one, two| C::Format::compare(one, two));
        let ranges = key_ranges(&sample, degree);
        drop(sample);
        instance.recorder.phase(Phase::Sample, begin, 0);

        let extent_counts =
            [Purpose::Temp, Purpose::Indx].map(|p| (p, instance.tablespace(p).extent_counts()));
        let operation = instance.operation();
        let parts = if degree == 1 {
            self.serial(coordinator, &operation, &plan, codec)
        } else {
            self.parallel(coordinator, &operation, &plan, codec, &ranges)
        };
        let mut written: Vec<SegmentExtent> = parts.iter().flat_map(|part| part.tree.extents()).collect();
        let entered = operation.outcome().and_then(|()| {
            let joined = self.join(coordinator, &parts, &mut written)?;
            instance.sync(coordinator, Purpose::Indx)?;
            instance.change_catalog(coordinator, |catalog| catalog.indexes.push(joined.clone()))?;
            Ok(joined)
        });
        if entered.is_err() {
            instance.tablespace(Purpose::Indx).release(written.iter().map(|extent| extent.extent));
            for (purpose, counts) in extent_counts {
                // The build's error is the one to report.
                let _ = instance.tablespace(purpose).cut_back(&counts);
            }
        }
        Ok(self.outcome(entered?, &parts, &plan, degree))
    }

    fn outcome(&self, index: Index, parts: &[SubIndex], plan: &SortPlan, degree: usize) -> BuildOutcome {
        let area = self.instance.settings.sort.sort_area_size;
        let server = |part: &SubIndex| summary::of_sorter(part.server.clone(), area, plan, &part.outcome);
        let servers = parts.iter().map(server).collect();
        BuildOutcome {
            index,
            sort: SortSummary::new(plan, servers, self.memory(plan, degree), Divided::ByKey),
        }
    }

    /// Returns the memory planned before the first row.
    fn memory(&self, plan: &SortPlan, degree: usize) -> Vec<(String, Bytes)> {
        let settings = &self.instance.settings;
        let options = scan::reader_options(self.instance, self.table.tablespace);
        let block = self.instance.tablespace(self.table.tablespace).block_size.bytes();
        let conventional_scan = !settings.scans_directly(degree);
        let all = |bytes: usize| Bytes((bytes * degree) as u64);
        let mut memory = plan.memory(settings, degree as u64);
        if plan.direct_writes && conventional_scan {
            memory.push((SHARED_MEMORY.to_string(), settings.cache.db_cache_size));
        }
        // A conventional scan stages one request; a direct scan reads ahead.
        let scan_buffers = if conventional_scan { 1 } else { options.buffer_count };
        memory.push(("scan buffers".to_string(), all(options.chunk_blocks as usize * block * scan_buffers)));
        memory.push(("index write buffers".to_string(), all(levels::BUFFER_MEMORY)));
        if degree > 1 {
            memory.push(("table queue".to_string(), Bytes(queue_bytes(degree as u64))));
        }
        memory
    }

    /// Returns records of evenly spaced blocks of the table.
    fn sample<C: Codec>(&self, session: &Session, codec: &C) -> Result<Vec<Vec<u8>>, EngineError> {
        let tablespace = self.instance.tablespace(self.table.tablespace);
        let blocks = sample_addresses(self.table);
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        let options = ScatteredOptions {
            piece_bytes: tablespace.block_size.bytes(),
            in_flight: blocks.len().min(SAMPLE_READS),
            event: Event::DirectPathRead,
            stream: IoStream::TableReads,
        };
        let mut reader = ScatteredReader::new(session, &self.instance.access, options)?;
        let mut records = Vec::new();
        reader.read(
            blocks.len(),
            |number| Piece::of_blocks(session, tablespace, blocks[number], 1),
            |number, block| self.sample_block(codec, block, blocks[number], &mut records),
        )?;
        session.count(Statistic::SampleRows, records.len() as u64);
        Ok(records)
    }

    fn sample_block<C: Codec>(
        &self,
        codec: &C,
        bytes: &[u8],
        address: BlockAddress,
        records: &mut Vec<Vec<u8>>,
    ) -> Result<(), EngineError> {
        let tablespace = self.instance.tablespace(self.table.tablespace);
        let content = block::verify(bytes, self.table.expected(), address, tablespace.path(address))?;
        for slot in 0..content.entries {
            let mut record = Vec::new();
            let row = heap::row_at(bytes, content, slot).unwrap_or(&[]);
            // Chained rows are skipped, because the others suffice.
            if chained_length(row).is_some() {
                continue;
            }
            self.make(codec, row, RowId::new(address, slot), &mut record)?;
            records.push(record);
        }
        Ok(())
    }

    /// Appends the record of a row.
    ///
    /// # Errors
    /// If the row is malformed, or its key is too long.
    #[inline]
    fn make<C: Codec>(
        &self,
        codec: &C,
        row: &[u8],
        row_id: RowId,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let found = codec.encode(row, row_id, out).map_err(|error| EngineError::bad_row(row_id, error))?;
        let block_size = self.instance.tablespace(Purpose::Indx).block_size.bytes();
        if found > key_bytes_max(block_size) {
            let limit = key_bytes_max(block_size);
            return Err(EngineError::KeyTooLong { found, limit, block_size, row: row_id });
        }
        Ok(())
    }

    /// Runs scan, sort and write in one server.
    fn serial<C: Codec>(
        &self,
        coordinator: &Session,
        operation: &Operation,
        plan: &SortPlan,
        codec: &C,
    ) -> Vec<SubIndex> {
        let granules = Granules::new(self.table);
        let part = thread::scope(|scope| {
            let work = |session: &Session| {
                let server = self.sort_server(session, operation, plan);
                let mut sorter = Sorter::<C::Format>::new(&server)?;
                let mut records = Vec::with_capacity(QUEUE_BUFFER_BYTES);
                let begin = now();
                let visit = |row: &[u8], row_id| {
                    self.make(codec, row, row_id, &mut records)?;
                    if records.len() >= QUEUE_BUFFER_BYTES / 4 {
                        sorter.fill(&records)?;
                        records.clear();
                    }
                    Ok(())
                };
                if self.instance.settings.scans_directly(1) {
                    scan::scan(self.instance, session, operation, &granules, visit)?;
                } else {
                    scan::scan_conventional(self.instance, session, operation, &granules, visit)?;
                }
                self.instance.recorder.phase(Phase::TableScan, begin, self.table.row_count);
                sorter.fill(&records)?;
                self.finish_part(session, codec, sorter)
            };
            let server = servers::start(scope, operation, (Role::Serial, self.first_server), work);
            servers::join(coordinator, vec![server])
        });
        part.into_iter().flatten().collect()
    }

    /// Runs scan servers, the table queue, and sort servers.
    fn parallel<C: Codec>(
        &self,
        coordinator: &Session,
        operation: &Operation,
        plan: &SortPlan,
        codec: &C,
        ranges: &[Vec<u8>],
    ) -> Vec<SubIndex> {
        let degree = self.instance.parallel_degree();
        let granules = Granules::new(self.table).shared_by(degree);
        let queue = TableQueue::new(degree, degree, degree * QUEUE_BUFFERS_PER_SENDER);
        let (granules, queue) = (&granules, &queue);
        let parts = thread::scope(|scope| {
            // Created here rather than by the servers, so that no server waits for one that cannot
            // start.
            let guard = || queue.close_unless_done();
            let sorts = (0..degree).map(|range| {
                let guard = guard();
                let work = move |session: &Session| {
                    self.sort_range(session, operation, plan, codec, (queue, range, guard))
                };
                servers::start(scope, operation, (Role::SortServer, self.first_server + range), work)
            });
            let sorts: Vec<_> = sorts.collect();
            let scans = (0..degree).map(|number| {
                let guard = guard();
                let work = move |session: &Session| {
                    self.scan_ranges(session, operation, codec, granules, (queue, guard), ranges)
                };
                servers::start(scope, operation, (Role::ScanServer, self.first_server + number), work)
            });
            let scans: Vec<_> = scans.collect();
            servers::join(coordinator, scans);
            servers::join(coordinator, sorts)
        });
        parts.into_iter().flatten().collect()
    }

    fn scan_ranges<C: Codec>(
        &self,
        session: &Session,
        operation: &Operation,
        codec: &C,
        granules: &Granules<'_>,
        (queue, guard): (&TableQueue, CloseGuard<'_>),
        ranges: &[Vec<u8>],
    ) -> Result<(), EngineError> {
        let begin = now();
        let mut buffers = Vec::new();
        for range in 0..=ranges.len() {
            buffers.push(queue.empty_buffer(session, range).map_err(|Closed| EngineError::Stopped)?);
        }
        let mut record = Vec::new();
        let mut rows = 0;
        scan::scan(self.instance, session, operation, granules, |row, row_id| {
            record.clear();
            self.make(codec, row, row_id, &mut record)?;
            let range = ranges.iter().take_while(|first| C::Format::compare(first, &record).is_le()).count();
            if buffers[range].len() + record.len() > QUEUE_BUFFER_BYTES {
                let full = std::mem::take(&mut buffers[range]);
                queue.send(session, range, full);
                buffers[range] = queue.empty_buffer(session, range).map_err(|Closed| EngineError::Stopped)?;
            }
            buffers[range].extend_from_slice(&record);
            rows += 1;
            Ok(())
        })?;
        for (range, buffer) in buffers.into_iter().enumerate() {
            queue.send(session, range, buffer);
        }
        queue.sender_done();
        guard.done();
        session.count(Statistic::QueueRows, rows);
        self.instance.recorder.phase(Phase::TableScan, begin, rows);
        Ok(())
    }

    fn sort_range<C: Codec>(
        &self,
        session: &Session,
        operation: &Operation,
        plan: &SortPlan,
        codec: &C,
        (queue, range, guard): (&TableQueue, usize, CloseGuard<'_>),
    ) -> Result<SubIndex, EngineError> {
        let server = self.sort_server(session, operation, plan);
        let mut sorter = Sorter::<C::Format>::new(&server)?;
        while let Some(buffer) = queue.receive(session, range).map_err(|Closed| EngineError::Stopped)? {
            sorter.fill(&buffer)?;
            queue.give_back(range, buffer);
        }
        guard.done();
        self.finish_part(session, codec, sorter)
    }

    fn sort_server<'s>(
        &'s self,
        session: &'s Session,
        operation: &'s Operation,
        plan: &'s SortPlan,
    ) -> SortServer<'s> {
        let (instance, lsn) = (self.instance, self.lsn);
        SortServer { instance, session, operation, plan, lsn, last_phase: Phase::MergeAndIndex }
    }

    /// Merges the sorted records into the leaves of a sub-index.
    fn finish_part<C: Codec>(
        &self,
        session: &Session,
        codec: &C,
        sorter: Sorter<'_, C::Format>,
    ) -> Result<SubIndex, EngineError> {
        let target = self.target(session);
        let mut leaves = LeafWriter::new(&target, codec)?;
        let outcome = sorter.finish(|record| leaves.push(record))?;
        let entries = leaves.entry_count();
        if entries != outcome.row_count {
            return Err(EngineError::Verification {
                what: format!("index entries written by {}", session.name()),
                found: entries.to_string(),
                expected: outcome.row_count.to_string(),
            });
        }
        let tree = leaves.finish()?;
        session.count(Statistic::IndexEntries, entries);
        session.count(Statistic::IndexLeafBlocks, tree.leaf_count);
        Ok(SubIndex { outcome, server: session.name().to_string(), tree })
    }

    fn target<'t>(&'t self, session: &'t Session) -> TreeTarget<'t> {
        let tablespace = self.instance.tablespace(Purpose::Indx);
        TreeTarget { session, access: &self.instance.access, tablespace, lsn: self.lsn }
    }

    /// Links the sub-indexes and writes the branches above them.
    fn join(
        &self,
        session: &Session,
        parts: &[SubIndex],
        written: &mut Vec<SegmentExtent>,
    ) -> Result<Index, EngineError> {
        let begin = now();
        let tablespace = self.instance.tablespace(Purpose::Indx);
        let target = self.target(session);
        let filled: Vec<&WrittenTree> =
            parts.iter().map(|part| &part.tree).filter(|tree| tree.leaf_count > 0).collect();
        for pair in filled.windows(2) {
            let last = pair[0].last_leaf.as_ref().expect("a filled part has a leaf");
            let next = pair[1].first_leaf.expect("a filled part has a leaf");
            assert!(last.address != next, "I4: a leaf does not link to itself");
            self.link(session, tablespace, last, next)?;
        }
        let mut branches: Vec<SegmentExtent> =
            filled.iter().flat_map(|tree| tree.branches.iter().copied()).collect();
        let tops = || filled.iter().filter_map(|tree| tree.top.as_ref());
        let highest = tops().map(|top| top.height).max().unwrap_or(0);
        let mut writer = BranchWriter::new(&target, highest.saturating_sub(1))?;
        for top in tops() {
            writer.adopt(top.clone())?;
        }
        let (extents, root) = writer.finish_root()?;
        // The caller frees them if a later step fails.
        written.extend(&extents);
        branches.extend(extents);
        let entry_count: u64 = parts.iter().map(|part| part.outcome.row_count).sum();
        self.instance.recorder.phase(Phase::Join, begin, 0);
        if entry_count != self.table.row_count {
            return Err(EngineError::Verification {
                what: format!("entries of index {}", stored_name(&self.spec.name)),
                found: entry_count.to_string(),
                expected: format!("{}, one for each row", self.table.row_count),
            });
        }
        Ok(Index {
            name: stored_name(&self.spec.name),
            table: self.table.name.clone(),
            columns: self.columns.to_vec(),
            entry_count,
            root: root.map(|root| StoredAddress::from(root.address)),
            height: root.map_or(0, |root| root.height),
            leaves: filled.iter().flat_map(|tree| tree.leaves.iter().copied()).collect(),
            branches,
            lsns: LsnRange::only(self.lsn),
        })
    }

    /// Rewrites a leaf with the address of the next leaf.
    fn link(
        &self,
        session: &Session,
        tablespace: &Tablespace,
        leaf: &LastLeaf,
        next: BlockAddress,
    ) -> Result<(), EngineError> {
        let (_, mut buffers) = Arena::buffers(tablespace.block_size.bytes(), 1)?;
        let mut buffer = buffers.remove(0);
        buffer.copy_from_slice(&leaf.block);
        crate::index::block::set_next(&mut buffer, next);
        block::seal(&mut buffer, BlockKind::Leaf, leaf.address, self.lsn, leaf.content);
        let mut channel = self.instance.access.method.channel(&[])?;
        let request = Request {
            operation: Transfer::Write,
            file: Arc::clone(&tablespace.file(leaf.address.file)?.file),
            offset: leaf.address.block.byte_offset(tablespace.block_size),
            range: 0..buffer.len(),
            buffer,
            event: Event::DirectPathWrite,
            stream: IoStream::IndexWrites,
            tag: 0,
        };
        channel.submit(session, request)?;
        session.count(Statistic::PhysicalWriteBlocks, 1);
        session.count(Statistic::PhysicalWritesDirect, 1);
        channel.wait(session, Event::DirectPathWrite)?;
        Ok(())
    }
}

/// Returns evenly spaced blocks of a table, at most [`SAMPLE_BLOCKS`].
fn sample_addresses(table: &Table) -> Vec<BlockAddress> {
    let total: u64 = table.extents.iter().map(|extent| u64::from(extent.used)).sum();
    let count = total.min(SAMPLE_BLOCKS as u64);
    let mut extents = table.extents.iter();
    let mut current = extents.next();
    let mut passed = 0u64;
    let mut addresses = Vec::new();
    for number in 0..count {
        // The middle of stretch `number` of `count` equal stretches.
        let wanted = (2 * number + 1) * total / (2 * count);
        while let Some(extent) = current {
            if wanted < passed + u64::from(extent.used) {
                let first = extent.extent.address(0);
                let within = (wanted - passed) as u32;
                addresses.push(BlockAddress { file: first.file, block: BlockNumber(first.block.0 + within) });
                break;
            }
            passed += u64::from(extent.used);
            current = extents.next();
        }
    }
    assert_eq!(addresses.len() as u64, count, "every sampled block is in an extent");
    addresses
}
