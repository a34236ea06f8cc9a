//! Prints the figures as text, 140 characters wide.

use super::power::STOPPED_BLOCKS;
use super::synthetic::Noise;
use super::{Curve, ErrorRates, Goal, Reached, Row, Scale, Share};
use std::fmt::{self, Display, Formatter};

/// Columns of a table: noises next to each other.
const HALVES: usize = 6;

impl Display for ErrorRates {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Scale { studies, seed } = self.scale;
        writeln!(out, "{studies} studies a cell, seed {seed}; s_d 3%")?;
        rates(out, "Anything said falsely, % of studies", &self.false_statements)?;
        rates(out, "UNSTABLE, % of a fortieth of them", &self.unstable)?;
        writeln!(
            out,
            "\n{:<72}{:<18}{:>16}{:>16}",
            "What really happens, % of studies", "counted", "before", "now"
        )?;
        for row in &self.situations {
            let share = |share: Option<Share>| share.map_or(String::new(), |share| share.to_string());
            writeln!(
                out,
                "{:<72}{:<18}{:>16}{:>16}",
                row.name,
                row.counted,
                share(row.before),
                share(row.now)
            )?;
        }
        coverage(self, out)?;
        curves(self, out)?;
        writeln!(
            out,
            "\n{:<44}{:>15}{:>15}{:>15}",
            "Blocks to 95% power (half of the studies)", "lognormal", "heavy tails", "bursts"
        )?;
        for rows in self.power.chunks(3) {
            let first = rows[0];
            let plural = if first.claims == 1 { "" } else { "s" };
            let name =
                format!("{}% at s_d {}%, {} claim{plural}", first.percent, first.deviation, first.claims);
            write!(out, "{name:<44}")?;
            for row in rows {
                write!(out, "{:>15}", row.blocks.map_or("> 90".to_string(), |blocks| blocks.to_string()))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\nBlocks spent by stopping early, lognormal noise (half of the studies)")?;
        writeln!(out, "sized for    true effect    fixed    planned    mean    of fixed    decided")?;
        for row in &self.savings {
            let share = 100.0 * row.mean_blocks / row.fixed as f64;
            writeln!(
                out,
                "{:>8}% {:>13}% {:>8} {:>10} {:>7.1} {share:>10.0}% {:>9.1}%",
                row.sized_for,
                row.percent,
                row.fixed,
                row.planned,
                row.mean_blocks,
                100.0 * row.decided.found()
            )?;
        }
        writeln!(out, "\nGoals")?;
        for Goal { text, found, reached } in self.goals() {
            let mark = if reached == Reached::Yes { "reached" } else { "NOT REACHED" };
            writeln!(out, "{mark:<12} {text}: {found}")?;
        }
        Ok(())
    }
}

/// Prints `4.12 (<4.41)`: a share and the upper end of its interval, per cent.
impl Display for Share {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{:.2} (<{:.2})", 100.0 * self.found(), 100.0 * self.upper()))
    }
}

fn rates(out: &mut Formatter<'_>, caption: &str, rows: &[Row]) -> fmt::Result {
    for half in 0..Noise::ALL.len() / HALVES {
        write!(out, "\n{caption:<38}")?;
        let columns = half * HALVES..(half + 1) * HALVES;
        for noise in &Noise::ALL[columns.clone()] {
            write!(out, "{:>16}", noise.name())?;
        }
        writeln!(out)?;
        for row in rows {
            write!(out, "{:<38}", row.name)?;
            for share in &row.shares[columns.clone()] {
                write!(out, "{share:>16}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn coverage(found: &ErrorRates, out: &mut Formatter<'_>) -> fmt::Result {
    writeln!(out, "\nCoverage of 95% intervals, % of a tenth of the studies")?;
    for noise in Noise::ALL {
        let own = || found.coverage.iter().filter(|row| row.noise == noise);
        if own().next().is_none() {
            continue;
        }
        write!(out, "{:<24}", noise.name())?;
        for row in own() {
            write!(out, "{:>4} blocks {:>6.2}", row.blocks, 100.0 * row.share.found())?;
        }
        writeln!(out)?;
    }
    let caption =
        format!("Coverage after a stop by {STOPPED_BLOCKS} blocks, % of a quarter (width, fixed: 1)");
    write!(out, "\n{caption:<72}")?;
    for rows in found.stopped.chunk_by(|one, two| one.noise == two.noise) {
        if rows[0] == found.stopped[0] {
            for row in rows {
                write!(out, "{:>16}", format!("{}% slower", row.percent))?;
            }
        }
        write!(out, "\n{:<72}", rows[0].noise.name())?;
        for row in rows {
            write!(out, "{:>16}", format!("{:.2} ({:.2})", 100.0 * row.share.found(), row.width))?;
        }
    }
    writeln!(out)
}

fn curves(found: &ErrorRates, out: &mut Formatter<'_>) -> fmt::Result {
    let Some(first) = found.curves.first() else { return Ok(()) };
    write!(out, "\n{:<44}", "Found, % of half of the studies; blocks")?;
    for (blocks, _) in &first.points {
        write!(out, "{blocks:>8}")?;
    }
    writeln!(out)?;
    for Curve { percent, noise, points } in &found.curves {
        write!(out, "{:<44}", format!("{percent}%, {}", noise.name()))?;
        for (_, share) in points {
            write!(out, "{:>8.1}", 100.0 * share.found())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
