//! Blocks that are in the cache: what a hit costs, and what a scan leaves of a hot set.

use super::TableOfBlocks;
use anyhow::{Result, ensure};
use plumb_engine::cache::CacheReader;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Role, Statistic, now};
use plumb_proof::random::Generator;
use plumb_units::{BlockAddress, Bytes};

/// Pin and unpin of blocks that are in the cache, in random order.
pub(super) fn hit(table: &TableOfBlocks) -> Result<()> {
    const HITS: u64 = 2_000_000;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches());
    let frames = instance.caches().own().options().frame_count;
    let resident = &table.blocks[..table.blocks.len().min(frames / 2)];
    for block in resident {
        reader.get(Purpose::Users, *block, table.expected)?;
    }
    let mut random = Generator::new(3);
    // Drawn beforehand: a draw takes as long as part of a hit.
    let drawn: Vec<BlockAddress> = (0..HITS).map(|_| resident[random.below(resident.len())]).collect();
    let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits);
    let begin = now();
    for block in &drawn {
        reader.get(Purpose::Users, *block, table.expected)?;
    }
    let each = now().saturating_sub(begin).0 as f64 / HITS as f64;
    let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - hits;
    let goal = if frames * 8192 <= 64 << 20 { 150 } else { 400 };
    println!(
        "hit in a cache of {}: {each:.0} ns, {:.1}% hits; goal: {goal} ns",
        Bytes(frames as u64 * 8192),
        hits as f64 * 100.0 / HITS as f64
    );
    Ok(())
}

/// Measures the hit ratio of a hot set, with and without a scan.
pub(super) fn scan(table: &TableOfBlocks) -> Result<()> {
    let instance = &table.instance;
    let frames = instance.caches().own().options().frame_count;
    ensure!(table.blocks.len() > 12 * frames, "the table is smaller than twelve caches: raise --size");
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches());
    let (hot, rest) = table.blocks.split_at(frames / 2);
    let scanned = &rest[..10 * frames];
    let pass = |reader: &mut CacheReader<'_>,
                set: &[BlockAddress],
                random: &mut Generator,
                reads: usize|
     -> Result<f64> {
        let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
        for _ in 0..reads {
            reader.get(Purpose::Users, set[random.below(set.len())], table.expected)?;
        }
        let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - before;
        Ok(hits as f64 / reads as f64)
    };
    let mut random = Generator::new(11);
    for _ in 0..3 {
        for block in hot {
            reader.get(Purpose::Users, *block, table.expected)?;
        }
    }
    let alone = pass(&mut reader, hot, &mut random, 20 * frames)?;
    // For each multiblock read of the scan as many reads of the hot set as it has blocks.
    let mut hits = Vec::new();
    let mut scan = scanned;
    while !scan.is_empty() {
        let run =
            scan.windows(2).take(63).take_while(|pair| pair[0].block.plus(1) == pair[1].block).count() + 1;
        let read = reader.read_multiblock(Purpose::Users, scan[0], run as u32, table.expected)?.len();
        hits.push((pass(&mut reader, hot, &mut random, read)?, read));
        scan = &scan[read..];
    }
    let total: usize = hits.iter().map(|(_, reads)| reads).sum();
    let beside = hits.iter().map(|(share, reads)| share * *reads as f64).sum::<f64>() / total as f64;
    println!(
        "hot set of half the cache: hit ratio {alone:.3} alone, {beside:.3} beside a scan of ten times the cache: {:.3} of it; goal: at least 0.95",
        beside / alone
    );
    let new = &rest[11 * frames..11 * frames + frames / 2];
    let passes = (0..3).map(|_| {
        let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
        for block in new {
            reader.get(Purpose::Users, *block, table.expected)?;
        }
        let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - before;
        Ok(hits as f64 / new.len() as f64)
    });
    let passes = passes.collect::<Result<Vec<f64>>>()?;
    let shown: Vec<String> = passes.iter().map(|share| format!("{share:.3}")).collect();
    println!(
        "a new hot set of half the cache: hit ratio {} in its passes; goal: at least 0.95 in the third",
        shown.join(", ")
    );
    Ok(())
}
