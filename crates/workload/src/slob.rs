//! SLOB: random reads and updates of single blocks by index, after Kevin
//! Closson's Silly Little Oracle Benchmark.
//!
//! Each schema has one table, with one row a block. A session draws a key r and selects the rows
//! with keys between r - WORK_UNIT and r, or updates them in one transaction. With a cache much
//! smaller than the tables, nearly every row is a read of one block from the device.
//!
//! Draw of an operation ([`Operations`]):
//! - `mix=slob`: UPDATE_PCT is a quota of each hundred operations. Until it is met, the parity of
//!   the last r decides if the next operation updates; later operations select. So updates come in
//!   bursts: half of the operations, until the quota is met. SCAN_PCT is a quota of the same
//!   hundred, taken by the first selects. `mix=iid` draws each operation independently.
//! - r is uniform over the keys with a whole work unit on both sides. Every HOTSPOT_FREQUENCY-th
//!   operation draws it from the hot spot, every HOT_SCHEMA_FREQUENCY-th goes to the first schema,
//!   and one in THINK_TM_FREQUENCY follows a pause.
//!
//! A row has SLOB's columns: CUSTID, and C2 to C20 of 128 bytes (less in blocks of 2K). An update
//! replaces the first and the last of these with REDO_STRESS=LITE, and all with HEAVY. A FILLER
//! after them, which never changes, fills the block, where SLOB sets PCTFREE 99. First, the engine
//! then keeps one row a block without a special rule. Second, no block has a run of zeros, which a
//! device that compresses would not store. Texts are drawn from 128 characters a byte: LZ4 gains
//! nothing, an entropy coder one bit in eight.
//!
//! Verification rests on BALANCE, the last column. An update adds and subtracts the same amount in
//! each pair of its rows, so the sum over a table is [`Rows::balance_sum`] whenever transactions
//! are whole. Its length is fixed, so that no row ever moves.
//!
//! The order of keys over the blocks is drawn (`placement=scattered`), so that a range of
//! keys is no sequential read.

pub use crate::specification::{BLOCK_BYTES, SLOB};
use crate::specification::{Work, blocks_of};
use plumb_types::{Column, ColumnType, RowBatch, Schema};
use plumb_units::Nanos;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};

/// Kind of an operation: select, update or scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads the rows of a work unit by index.
    Select,
    /// Changes the rows of a work unit in a transaction.
    Update,
    /// Reads the whole scan table.
    Scan,
}

/// Operations that go to the hot spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hotspot {
    /// No operation goes to a hot spot.
    Off,
    /// Every N-th operation goes there.
    All,
    /// Every N-th operation goes there if it is an update.
    Updates,
}

/// Two parameters that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// One parameter, with its value.
    pub first: String,
    /// The other parameter, with its value.
    pub second: String,
    /// The reason, and the cure.
    pub why: String,
}

/// The parameters of a run, with lengths in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlobSpec {
    /// Bytes of a block of the tables.
    pub block_bytes: u64,
    /// Rows of each schema's table, and blocks.
    pub scale: u64,
    /// Number of schemas, each with a table.
    pub schemas: u64,
    /// Rows of the scan table, and blocks.
    pub scan_blocks: u64,
    /// Number of sessions that load schemas.
    pub load_degree: u64,
    /// True if keys are stored in their order.
    pub ordered: bool,
    /// True if texts are drawn at random.
    pub obfuscate: bool,
    /// Seed of rows and operations.
    pub seed: u64,
    /// Number of sessions that run operations.
    pub sessions: u64,
    /// Number of sessions that share a schema.
    pub threads_per_schema: u64,
    /// Updates in a hundred operations.
    pub update_pct: u64,
    /// Scans in a hundred operations.
    pub scan_pct: u64,
    /// True if each operation is drawn independently.
    pub iid: bool,
    /// Length of a key range: an operation takes one row less.
    pub work_unit: u64,
    /// True if an update replaces all texts.
    pub heavy: bool,
    /// Time for which sessions run, unless `work_loop` ends them.
    pub run_time: Nanos,
    /// Operations of each session; 0 for as many as the time allows.
    pub work_loop: u64,
    /// Operations that go to the hot spot.
    pub hotspot: Hotspot,
    /// Length of the hot spot, in blocks.
    pub hotspot_blocks: u64,
    /// Blocks before the hot spot.
    pub hotspot_offset: u64,
    /// Every operation of this number goes to the hot spot.
    pub hotspot_frequency: u64,
    /// Every operation of this number goes to the first schema; 0 for none.
    pub hot_schema_frequency: u64,
    /// One in this number of operations follows a pause; 0 for none.
    pub think_frequency: u64,
    /// Shortest and longest time of a pause.
    pub think: (Nanos, Nanos),
    /// Operations that arrive each second, over all sessions; 0 for a closed loop.
    pub rate: u64,
}

impl SlobSpec {
    /// Returns the parameters of a work, in blocks of `block_bytes`.
    ///
    /// # Errors
    /// When two of them contradict each other, with the cure.
    pub fn of(work: &Work, block_bytes: u64) -> Result<SlobSpec, Conflict> {
        let value = |name: &str| work.value(name).unwrap_or(0);
        let blocks = |name: &str| blocks_of(value(name), block_bytes).max(1);
        let spec = SlobSpec {
            block_bytes,
            scale: blocks("scale"),
            schemas: value("schemas"),
            scan_blocks: blocks("scan-table-size"),
            load_degree: value("load-degree"),
            ordered: value("placement") == 1,
            obfuscate: value("obfuscate") == 1,
            seed: work.seed(),
            sessions: value("sessions"),
            threads_per_schema: value("threads-per-schema"),
            update_pct: value("update-pct"),
            scan_pct: value("scan-pct"),
            iid: value("mix") == 1,
            work_unit: value("work-unit"),
            heavy: value("redo-stress") == 1,
            run_time: Nanos(value("run-time")),
            work_loop: value("work-loop"),
            hotspot: [Hotspot::Off, Hotspot::All, Hotspot::Updates][value("hotspot") as usize],
            hotspot_blocks: blocks("hotspot-size"),
            hotspot_offset: blocks_of(value("hotspot-offset"), block_bytes),
            hotspot_frequency: value("hotspot-frequency"),
            hot_schema_frequency: value("hot-schema-frequency"),
            think_frequency: value("think-frequency"),
            think: (Nanos(value("think-min")), Nanos(value("think-max"))),
            rate: value("rate"),
        };
        spec.require_consistent().map(|()| spec)
    }

    pub(crate) fn require_consistent(&self) -> Result<(), Conflict> {
        let (scale, unit) = (self.scale, self.work_unit);
        let conflict =
            |first: String, second: String, why: &str| Err(Conflict { first, second, why: why.to_string() });
        let blocks = || format!("scale={scale} blocks");
        if scale < 2 * unit + 1 {
            let why = format!(
                "a key has a work unit on both sides; give a scale of {} or more, or a smaller work unit",
                2 * unit + 1
            );
            return conflict(blocks(), format!("work-unit={unit}"), &why);
        }
        if self.update_pct + self.scan_pct > 100 {
            let scans = format!("scan-pct={}", self.scan_pct);
            return conflict(
                format!("update-pct={}", self.update_pct),
                scans,
                "together they are more than a hundred in a hundred",
            );
        }
        if self.think.0 > self.think.1 {
            let longest = format!("think-max={}", self.think.1);
            return conflict(
                format!("think-min={}", self.think.0),
                longest,
                "the shortest pause is the longer one",
            );
        }
        if self.hotspot != Hotspot::Off && self.hotspot_offset + unit >= scale {
            let offset = format!("hotspot-offset={} blocks", self.hotspot_offset);
            return conflict(
                offset,
                blocks(),
                "the hot spot begins behind the last key; give a smaller offset or a larger scale",
            );
        }
        if self.hotspot != Hotspot::Off && self.hotspot_offset + self.hotspot_blocks > scale {
            let size = format!("hotspot-size={} blocks", self.hotspot_blocks);
            return conflict(
                size,
                blocks(),
                "the hot spot ends behind the last key; give a smaller size or offset, or a larger scale",
            );
        }
        if self.work_loop == 0 && self.run_time == Nanos(0) {
            return conflict(
                "run-time=0".to_string(),
                "work-loop=0".to_string(),
                "neither ends the run; give one of them",
            );
        }
        Ok(())
    }

    /// Returns the name of a schema's table; schemas count from 0.
    pub fn table(schema: u64) -> String {
        format!("USER{}_CF1", schema + 1)
    }

    /// Returns the name of that table's index.
    pub fn index(schema: u64) -> String {
        format!("USER{}_I_CF1", schema + 1)
    }

    /// The table that scans read; it exists if some operation scans.
    pub const SCAN_TABLE: &'static str = "CF2";

    /// Returns the schema of a session, except for operations that go to the hot one.
    pub fn schema_of(&self, session: u64) -> u64 {
        session / self.threads_per_schema % self.schemas
    }
}

/// Number of columns that an update replaces, and bytes of each.
const TEXTS: usize = 19;
const TEXT_BYTES: usize = 128;
/// Digits of a balance, and the balance of every new row.
pub const BALANCE_DIGITS: usize = 18;
const BALANCE: u64 = 500_000_000_000_000_000;
/// Index of the balance among the columns; the filler precedes it.
pub const BALANCE_COLUMN: usize = 2 + TEXTS;
/// Index of the first text, C2.
pub const FIRST_TEXT: usize = 1;
/// Index of the last text, C20.
pub const LAST_TEXT: usize = TEXTS;
/// Longest encoding of CUSTID, in bytes.
const KEY_BYTES: usize = 8;
/// Bytes of a row besides its values: a header of 3, lengths of one byte for short values and
/// of three for the filler.
const ROW_BESIDE: usize = 3 + 1 + TEXTS + 3 + 1;

/// Maker of the rows of one table.
#[derive(Debug, Clone)]
pub struct Rows {
    schema: Schema,
    text_bytes: usize,
    filler_bytes: usize,
    obfuscate: bool,
}

impl Rows {
    /// Returns the same rows with repeating texts, as SLOB's are.
    #[must_use]
    pub fn repeating(self) -> Rows {
        Rows { obfuscate: false, ..self }
    }

    /// Creates rows of at most `row_bytes_max` bytes, the room of a block,
    /// with texts drawn at random.
    pub fn new(row_bytes_max: usize) -> Rows {
        let beside = ROW_BESIDE + KEY_BYTES + BALANCE_DIGITS;
        // The filler gets at least 256 bytes, so that its length takes three.
        let text_bytes = TEXT_BYTES.min((row_bytes_max - beside - 256) / TEXTS);
        let filler_bytes = row_bytes_max - beside - TEXTS * text_bytes;
        let text = |max_bytes: usize| ColumnType::Text { max_bytes: max_bytes as u32 };
        let mut columns = vec![Column::required("CUSTID", ColumnType::NUMBER)];
        columns.extend((2..2 + TEXTS).map(|number| Column::required(format!("C{number}"), text(text_bytes))));
        columns.push(Column::required("FILLER", text(filler_bytes)));
        columns.push(Column::required("BALANCE", text(BALANCE_DIGITS)));
        Rows { schema: Schema { columns }, text_bytes, filler_bytes, obfuscate: true }
    }

    /// Returns the columns of the rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the bytes of a text that an update replaces.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Appends the row of a key to the batch.
    pub fn push(&self, random: &mut Texts, key: u64, batch: &mut RowBatch) {
        batch.begin_row(self.schema.column_count() as u8);
        batch.push_number(i128::from(key), 0);
        for _ in 0..TEXTS {
            batch.push_text(random.draw(self.text_bytes, self.obfuscate));
        }
        batch.push_text(random.draw(self.filler_bytes, self.obfuscate));
        batch.push_text(&balance_text(BALANCE));
        batch.end_row();
    }

    /// Draws a new text for a column.
    pub fn text<'t>(&self, random: &'t mut Texts) -> &'t str {
        random.draw(self.text_bytes, self.obfuscate)
    }

    /// Returns the sum of the balances of `rows` rows, whatever was updated.
    pub fn balance_sum(rows: u64) -> u128 {
        u128::from(BALANCE) * u128::from(rows)
    }
}

/// Formats a balance for its column, with leading zeros.
pub fn balance_text(balance: u64) -> String {
    format!("{balance:0width$}", width = BALANCE_DIGITS)
}

/// Returns the amount to add to the row at this place of an update. The next row of a pair gets the
/// opposite; a row without a partner gets nothing.
pub fn balance_change(place: u64, rows: u64) -> i64 {
    let has_partner = place % 2 == 1 || place + 1 < rows;
    let amount = 1 + (place / 2 % 7) as i64;
    if !has_partner {
        0
    } else if place.is_multiple_of(2) {
        amount
    } else {
        -amount
    }
}

/// Source of texts drawn at random.
#[derive(Debug)]
pub struct Texts {
    random: Xoshiro256PlusPlus,
    text: String,
    turn: u8,
}

impl Texts {
    /// Creates a source that follows from the seed.
    pub fn new(seed: u64) -> Texts {
        Texts { random: Xoshiro256PlusPlus::seed_from_u64(seed), text: String::new(), turn: 0 }
    }

    /// Draws a text of `bytes` bytes.
    fn draw(&mut self, bytes: usize, obfuscate: bool) -> &str {
        self.text.clear();
        if !obfuscate {
            self.turn = (self.turn + 1) % 2;
            let pattern = if self.turn == 0 { "AAAAAAAABBBBBBBB" } else { "BBBBBBBBAAAAAAAA" };
            (0..bytes).for_each(|at| self.text.push(char::from(pattern.as_bytes()[at % 16])));
            return &self.text;
        }
        while self.text.len() < bytes {
            let word = self.random.next_u64();
            let left = (bytes - self.text.len()).min(9);
            (0..left).for_each(|at| self.text.push(char::from((word >> (7 * at)) as u8 & 0x7F)));
        }
        &self.text
    }
}

/// Returns the keys of a schema, 1 to its scale, in the order of their blocks.
pub fn keys(spec: &SlobSpec, schema: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (1..=spec.scale).collect();
    if !spec.ordered {
        keys.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(spec.seed ^ (schema + 1) << 32));
    }
    keys
}

/// One operation of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Kind: select, update or scan.
    pub kind: Kind,
    /// Schema of its table, from 0.
    pub schema: u64,
    /// Upper end of its rows: they have keys between `key` - WORK_UNIT and `key`.
    pub key: u64,
    /// Pause before it, if it has one.
    pub think: Option<Nanos>,
    /// True if its key is drawn from the hot spot.
    pub hot: bool,
    /// True if it goes to the first schema because of its number.
    pub in_hot_schema: bool,
}

/// The operations of a session, without end.
#[derive(Debug)]
pub struct Operations {
    spec: SlobSpec,
    schema: u64,
    random: Xoshiro256PlusPlus,
    /// The last key, whose parity decides the next kind.
    key: u64,
    count: u64,
    /// Operations of the current hundred, and its updates and scans.
    in_hundred: u64,
    updates: u64,
    scans: u64,
}

impl Operations {
    /// Creates the operations of a session, counted from 0.
    pub fn new(spec: &SlobSpec, session: u64) -> Operations {
        Operations {
            spec: spec.clone(),
            schema: spec.schema_of(session),
            random: Xoshiro256PlusPlus::seed_from_u64(spec.seed.wrapping_mul(0x9E37_79B9) ^ (session + 1)),
            key: 1,
            count: 0,
            in_hundred: 0,
            updates: 0,
            scans: 0,
        }
    }

    /// Draws the next operation of the session.
    pub fn draw(&mut self) -> Operation {
        let thinks = self.spec.think_frequency > 0 && self.key.is_multiple_of(self.spec.think_frequency);
        let think = thinks.then(|| {
            let (least, most) = self.spec.think;
            Nanos(self.random.random_range(least.0..=most.0))
        });
        let kind = if self.spec.iid { self.kind_alone() } else { self.kind_by_quota() };
        self.count += 1;
        let hot = match self.spec.hotspot {
            Hotspot::Off => false,
            Hotspot::All => self.count.is_multiple_of(self.spec.hotspot_frequency),
            Hotspot::Updates => {
                kind == Kind::Update && self.count.is_multiple_of(self.spec.hotspot_frequency)
            }
        };
        self.key = self.draw_key(hot);
        let frequency = self.spec.hot_schema_frequency;
        let in_hot_schema = frequency > 0 && self.count.is_multiple_of(frequency);
        let schema = if in_hot_schema { 0 } else { self.schema };
        Operation { kind, schema, key: self.key, think, hot, in_hot_schema }
    }

    fn draw_key(&mut self, hot: bool) -> u64 {
        let (unit, scale) = (self.spec.work_unit, self.spec.scale);
        let (least, most) = (unit + 1, scale - unit);
        if !hot {
            return self.random.random_range(least..=most);
        }
        let begin = (self.spec.hotspot_offset + 1).clamp(least, most);
        let end = (self.spec.hotspot_offset + self.spec.hotspot_blocks).clamp(begin, most);
        self.random.random_range(begin..=end)
    }

    fn kind_alone(&mut self) -> Kind {
        let (updates, scans) = (self.spec.update_pct, self.spec.scan_pct);
        match self.random.random_range(0..100_u64) {
            drawn if drawn < updates => Kind::Update,
            drawn if drawn < updates + scans => Kind::Scan,
            _ => Kind::Select,
        }
    }

    fn kind_by_quota(&mut self) -> Kind {
        if self.in_hundred == 100 {
            (self.in_hundred, self.updates, self.scans) = (0, 0, 0);
        }
        self.in_hundred += 1;
        let left = 101 - self.in_hundred;
        let owed = self.spec.update_pct - self.updates;
        // Updates that the parity has not brought come at the end of the hundred.
        if owed > 0 && (self.key.is_multiple_of(2) || owed == left) {
            self.updates += 1;
            return Kind::Update;
        }
        if self.scans < self.spec.scan_pct {
            self.scans += 1;
            return Kind::Scan;
        }
        Kind::Select
    }
}

/// Arrival times of a session's operations in an open loop: a Poisson stream of
/// its share of the rate.
#[derive(Debug)]
pub struct Arrivals {
    random: Xoshiro256PlusPlus,
    mean_ns: f64,
    next: f64,
}

impl Arrivals {
    /// Creates the arrivals of a session that starts at `begin`; `None` in a closed loop.
    pub fn new(spec: &SlobSpec, session: u64, begin: Nanos) -> Option<Arrivals> {
        if spec.rate == 0 {
            return None;
        }
        let mut arrivals = Arrivals {
            random: Xoshiro256PlusPlus::seed_from_u64(spec.seed ^ (session + 1) << 24),
            mean_ns: 1e9 * spec.sessions as f64 / spec.rate as f64,
            next: begin.0 as f64,
        };
        arrivals.advance();
        Some(arrivals)
    }

    /// Returns the time of the next arrival.
    pub fn draw(&mut self) -> Nanos {
        let due = Nanos(self.next as u64);
        self.advance();
        due
    }

    /// Returns the number of remaining arrivals before `end`.
    pub fn due_before(&mut self, end: Nanos) -> u64 {
        let mut count = 0;
        while self.draw() < end {
            count += 1;
        }
        count
    }

    fn advance(&mut self) {
        // Above 0 and at most 1, so that the logarithm is finite.
        let drawn = 1.0 - self.random.random_range(0.0..1.0_f64);
        self.next -= self.mean_ns * drawn.ln();
    }
}

#[cfg(test)]
mod tests;
