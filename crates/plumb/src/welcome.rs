//! Text that `plumb` prints without a command.

pub const TEXT: &str = "\
plumb finds out what a database's I/O path can do, which settings make it
faster, and whether the evidence proves it.

It is an embedded database engine that does real work: large sorts and index
builds, commits to a redo log, random reads and updates through a buffer
cache, loads. Every wait is named and timed, every setting leaves a receipt,
and the report reads like an AWR report, with findings. And it is a
laboratory: it calibrates devices, varies settings of the engine, of
PostgreSQL or of any command in designed experiments, states what they prove,
compares runs, and checks reports and claims of others.

To begin with:

  plumb run large-sort
      Load 2 million sales, build an index on them, verify it, report. Under
      a minute, in a directory of its own here, which is removed again.

  plumb run large-sort --rows 10M --set filesystemio_options=none
      The same work through the page cache: compare the two reports.

  plumb run slob        random reads and updates   plumb run redo   commits
      The same report for each, with the figures that it is run for.

  plumb calibrate
      What the device under this directory can do, with intervals.

  plumb study large-sort
      Whether asynchronous I/O and direct writes make it faster on this disk,
      by a designed experiment with a verdict per claim. One to two minutes.

  plumb compare-commands 'COMMAND' 'ANOTHER COMMAND'
      Any two programs, in turn and again and again: which is faster, and
      whether that is proved.

  plumb load FILE.csv --table T && plumb index T COLUMN,COLUMN && plumb check T
      Your own data, in a database ./plumb.db that stays.

`plumb list settings` shows what --set takes, `plumb help` lists all commands.
";
