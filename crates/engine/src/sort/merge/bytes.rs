//! The merge of runs of packed records, in a tournament of codes.

use super::{Cursor, RunReader, enter_next_piece};
use crate::EngineError;
use crate::sort::SortServer;
use crate::sort::format::BytesKey;
use crate::sort::merge_plan::MergeShape;
use crate::sort::packed::Packed;
use crate::sort::run::Run;
use crate::sort::tournament::Tournament;
use plumb_events::Statistic;

/// Merges runs and hands their records out in order; gives back how many.
///
/// # Errors
/// When a block is corrupt, a read fails, the operation stops, or `take` fails.
pub fn merge(
    server: &SortServer<'_>,
    runs: Vec<Run<'_>>,
    shape: MergeShape,
    mut take: impl FnMut(&[u8]) -> Result<(), EngineError>,
) -> Result<u64, EngineError> {
    assert!(!runs.is_empty());
    assert!(runs.len() <= shape.width);
    let mut reader = RunReader::<BytesKey>::new(server, runs, shape)?;
    let mut cursors = Vec::with_capacity(reader.sources.len());
    for source in 0..reader.sources.len() {
        cursors.push(Cursor::default());
        enter_next_piece(&mut reader, &mut cursors, source)?;
    }
    let mut tournament = Tournament::new(cursors.iter_mut().map(next_packed));
    let mut rows = 0;
    while let Some(source) = tournament.winner() {
        take(tournament.record(source))?;
        rows += 1;
        if cursors[source].at == cursors[source].end && !cursors[source].enter_next_block(server)? {
            server.operation.check()?;
            enter_next_piece(&mut reader, &mut cursors, source)?;
        }
        tournament.replace(next_packed(&mut cursors[source]));
    }
    server.session.count(Statistic::MergeRows, rows);
    tournament.matches().count_in(server.session);
    Ok(rows)
}

/// The record that a cursor is at, which is passed by; `None` when the run is used up.
#[inline]
fn next_packed(cursor: &mut Cursor) -> Option<Packed<'_>> {
    let Cursor { piece, at, end, .. } = cursor;
    let next = Packed::first_of(&piece.as_ref()?.buffer[*at..*end])?;
    *at += next.length;
    Some(next)
}
