//! Text that `plumb` prints without a command.

pub const TEXT: &str = "\
plumb finds out what a database's I/O path can do, which settings make it
faster, and whether the evidence proves it.

It is an embedded database engine that does the real work of a large sort:
it loads a table by direct path, builds an index by a parallel disk sort, and
verifies it. Every wait is named and timed, every setting leaves a receipt,
and the report reads like an AWR report.

To begin with:

  plumb run large-sort
      Load 2 million sales, build an index on them, verify it, report. Under
      a minute, in a directory of its own here, which is removed again.

  plumb run large-sort --rows 10M --set filesystemio_options=none
      The same work through the page cache: compare the two reports.

  plumb study large-sort
      Whether asynchronous I/O and direct writes make it faster on this disk,
      by a designed experiment with a verdict per claim. One to two minutes.

  plumb compare-commands 'COMMAND' 'ANOTHER COMMAND'
      Any two programs, in turn and again and again: which is faster, and
      whether that is proved.

  plumb load FILE.csv --table T && plumb index T COLUMN,COLUMN && plumb check T
      Your own data, in a database ./plumb.db that stays.

`plumb list settings` shows what --set takes, `plumb help` all twenty-six commands.
";
