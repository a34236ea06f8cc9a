//! `plumb plan-sort`: runs, merges and memory of an index build, before a row is read.
//!
//! The engine plans a sort from its settings and the number of rows (`sort::plan`); the same code
//! runs here without a database. `--memory` divides a budget for all servers; `--against` takes
//! rows and settings from the bundle of a run and shows what the run did beside its plan.

use crate::arguments::PlanSort;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{output, settings};
use plumb_engine::settings::Domain;
use plumb_engine::sort::forecast::{self, Forecast};
use plumb_engine::sort::merge_plan;
use plumb_engine::sort::plan::{SortPlan, TempSizes, area_of_share};
use plumb_engine::{Setting, Settings};
use plumb_record::Sort;
use plumb_run::assemble::one_pass::smallest_area;
use plumb_study::bundle::run_record;
use plumb_units::{Bytes, RowCount};
use serde_json::json;

/// Read cost ratio for merges of several passes, unless `sort_read_fac` is set.
const READ_FAC: u64 = 5;
const FULL_RATE: Bytes = Bytes(merge_plan::FULL_RATE_BYTES as u64);
/// Write buffers of Oracle 7.2's manual, each with numbers of servers.
const BUFFERS: [(u64, u64); 6] = [(2, 32), (2, 64), (4, 32), (4, 64), (8, 32), (8, 64)];
const SERVERS: [u64; 5] = [1, 4, 8, 16, 32];

struct Request {
    rows: u64,
    key_bytes: usize,
    settings: Settings,
    /// Sort of the run whose plan this is.
    did: Option<Sort>,
}

/// The plan of a sort, and its runs and merges on each server.
struct Planned {
    plan: SortPlan,
    each: Forecast,
    rows: u64,
}

/// Prints the plan. Fails on settings that contradict each other, and on a bundle without a sort.
pub fn run(arguments: &PlanSort) -> Result<Outcome, Failure> {
    let request = request(arguments)?;
    let planned = request.planned(&request.settings)?;
    if arguments.json {
        return output::print_json(&request.as_json(&planned)).map(|()| Outcome::Fine);
    }
    output::print(&request.shown(&planned)).map(|()| Outcome::Fine)
}

fn request(arguments: &PlanSort) -> Result<Request, Failure> {
    let mut request = Request {
        rows: arguments.rows.unwrap_or_default(),
        key_bytes: usize::from(arguments.key_bytes),
        settings: settings::parse(&arguments.set)?,
        did: None,
    };
    if let Some(bundle) = &arguments.against {
        let (_, record) = run_record(bundle)?;
        let sort = record.sort.ok_or_else(|| {
            Failure::run(format!(
                "--against {}: its workload {} sorts nothing; name the bundle of a large-sort",
                bundle.display(),
                record.header.workload
            ))
        })?;
        for row in record.settings.iter().filter(|row| !row.is_default) {
            request.settings.set(&row.name, &row.value, "--against")?;
        }
        request.rows = sort.rows;
        request.did = Some(sort);
    }
    if let Some(memory) = arguments.memory {
        request.divide(memory)?;
    }
    Ok(request)
}

impl Request {
    fn servers(&self) -> u64 {
        match &self.did {
            Some(sort) => sort.servers.len().max(1) as u64,
            None => self.settings.degree() as u64,
        }
    }

    /// Sets the sort area to an equal share of the memory, less write buffers on top of it.
    fn divide(&mut self, memory: Bytes) -> Result<(), Failure> {
        let given = memory.as_setting();
        if self.settings.is_explicit(Setting::SortAreaSize) {
            let area = self.settings.sort.sort_area_size.as_setting();
            return Err(Failure::usage(format!(
                "--memory {given}: --set sort_area_size={area} decides the same; give one of them"
            )));
        }
        let area = area_of_share(&self.settings, memory, self.servers()).map_err(|too_little| {
            Failure::usage(format!(
                "--memory {given}: {} need {} each besides write buffers; give {} or more, or fewer servers by \
                 --set parallel_degree=N",
                plural(self.servers(), "server"),
                too_little.area.as_setting(),
                too_little.budget.as_setting(),
            ))
        })?;
        Ok(self.settings.set(Setting::SortAreaSize.row().name, &area.as_setting(), "--memory")?)
    }

    fn planned(&self, settings: &Settings) -> Result<Planned, Failure> {
        let rows = self.rows.div_ceil(self.servers());
        let record = forecast::record_of_key(self.key_bytes, self.rows);
        let plan = SortPlan::of_settings(settings, TempSizes::of_new(settings), record, rows)?;
        let read_fac = settings.optional_number(Setting::SortReadFac).unwrap_or(READ_FAC);
        let each = forecast::forecast(&plan, rows, read_fac as f64);
        Ok(Planned { plan, each, rows })
    }

    /// Returns the smallest `sort_area_size` with which a server's forecast is as wanted.
    fn area_for(&self, wanted: impl Fn(&Forecast) -> bool) -> Option<Bytes> {
        let Domain::Size(least, most) = Setting::SortAreaSize.row().domain else { return None };
        let fits = |area: u64| {
            let mut settings = self.settings.clone();
            settings.set("sort_area_size", &area.to_string(), "plan-sort").is_ok()
                && self.planned(&settings).is_ok_and(|planned| wanted(&planned.each))
        };
        if fits(least) { Some(Bytes(least)) } else { smallest_area(least, most, fits).map(Bytes) }
    }

    fn shown(&self, planned: &Planned) -> String {
        let mut text = format!(
            "Plan of a sort of {} rows by {} with keys of {} bytes, nothing read yet.\n\n",
            RowCount(self.rows),
            plural(self.servers(), "server"),
            self.key_bytes
        );
        text += &output::aligned_under_head(&self.figures(planned));
        text += "\nSort area needed so that\n\n";
        text += &output::aligned_under_head(&self.thresholds());
        text += "\nMemory of write buffers by sort_direct_writes=true, on top of the sort areas\n\n";
        text += &output::aligned_under_head(&self.write_buffers());
        if planned.each.passes > 1 && self.settings.optional_number(Setting::SortReadFac).is_none() {
            text += &format!(
                "\nFan-in and request assume sort_read_fac={READ_FAC}; a run measures it. Set the value of a run's report.\n"
            );
        }
        text
    }

    fn figures(&self, planned: &Planned) -> Vec<Vec<String>> {
        let (plan, each, servers) = (&planned.plan, &planned.each, self.servers());
        let buffers = if plan.direct_writes { plan.write_buffer_memory() } else { Bytes(0) };
        let all = |bytes: Bytes| Bytes(bytes.0 * servers).to_string();
        let memory = Bytes(plan.area.0 + buffers.0);
        let written = Bytes(each.runs * each.run_rows * plan.record.bytes as u64);
        let did = |figure: fn(&Sort) -> u64| self.did.as_ref().map(|sort| RowCount(figure(sort)).to_string());
        let row = |name: &str, one: String, sum: String, did: Option<String>| {
            let mut cells = vec![name.to_string(), one, sum];
            cells.extend(self.did.as_ref().map(|_| did.unwrap_or_default()));
            cells
        };
        let mut head = vec![String::new(), "Each Server".into(), "All Servers".into()];
        head.extend(self.did.as_ref().map(|_| "Run Did".to_string()));
        vec![
            head,
            row("sort area", plan.area.to_string(), all(plan.area), None),
            row("write buffers", buffers.to_string(), all(buffers), None),
            row("memory before a row", memory.to_string(), all(memory), None),
            row("rows", count(planned.rows), count(self.rows), did(|sort| sort.rows)),
            row("bytes of a record", plan.record.bytes.to_string(), String::new(), None),
            row("runs", count(each.runs), count(each.runs * servers), did(|sort| sort.runs)),
            row("rows never written", count(each.memory_rows), count(each.memory_rows * servers), None),
            row("bytes of runs", written.to_string(), all(written), {
                self.did.as_ref().map(|sort| Bytes(sort.run_bytes).to_string())
            }),
            row("passes", each.passes.to_string(), String::new(), did(|sort| sort.merge_passes)),
            row("fan-in", count(each.fan_in), String::new(), did(|sort| sort.merge_width)),
            row("read request", each.request.to_string(), String::new(), None),
            row(
                "intermediate merges",
                count(each.intermediate_merges),
                count(each.intermediate_merges * servers),
                did(|sort| sort.intermediate_merges),
            ),
        ]
    }

    fn thresholds(&self) -> Vec<Vec<String>> {
        let row = |name: &str, area: Option<Bytes>| {
            let text = |area: Option<Bytes>| area.map_or("beyond its range".into(), |area| area.to_string());
            vec![
                name.to_string(),
                text(area),
                text(area.map(|area| Bytes(area.0.saturating_mul(self.servers())))),
            ]
        };
        vec![
            vec![String::new(), "sort_area_size".into(), "All Servers".into()],
            row("one merge takes all runs", self.area_for(|each| each.passes <= 1)),
            row(
                &format!("it reads {} or more a request", FULL_RATE.as_setting()),
                self.area_for(is_at_full_rate),
            ),
            row("no row is written", self.area_for(|each| each.runs == 0)),
        ]
    }

    fn write_buffers(&self) -> Vec<Vec<String>> {
        let sort = &self.settings.sort;
        let set = (sort.sort_write_buffers, sort.sort_write_buffer_size.0 / Bytes::K);
        let mut all = BUFFERS.to_vec();
        if !all.contains(&set) {
            all.push(set);
        }
        let head = ["sort_write_buffers", "sort_write_buffer_size"].map(String::from).into_iter();
        let mut rows = vec![head.chain(SERVERS.iter().map(|servers| plural(*servers, "server"))).collect()];
        rows.extend(all.into_iter().map(|(buffers, size)| {
            let sums = SERVERS.iter().map(|servers| Bytes(servers * buffers * size * Bytes::K).as_setting());
            [buffers.to_string(), format!("{size}K")].into_iter().chain(sums).collect::<Vec<String>>()
        }));
        rows
    }

    fn as_json(&self, planned: &Planned) -> serde_json::Value {
        let (plan, each) = (&planned.plan, &planned.each);
        let area = |area: Option<Bytes>| area.map(|area| area.0);
        json!({
            "rows": self.rows,
            "key_bytes": self.key_bytes,
            "servers": self.servers(),
            "sort_area_bytes": plan.area.0,
            "write_buffer_bytes": if plan.direct_writes { plan.write_buffer_memory().0 } else { 0 },
            "record_bytes": plan.record.bytes,
            "each_server": {
                "rows": planned.rows,
                "runs": each.runs,
                "memory_rows": each.memory_rows,
                "passes": each.passes,
                "fan_in": each.fan_in,
                "request_bytes": each.request.0,
                "intermediate_merges": each.intermediate_merges,
            },
            "one_pass_sort_area_bytes": area(self.area_for(|each| each.passes <= 1)),
            "full_rate_sort_area_bytes": area(self.area_for(is_at_full_rate)),
            "in_memory_sort_area_bytes": area(self.area_for(|each| each.runs == 0)),
            "did": self.did.as_ref().map(|sort| json!({
                "runs": sort.runs,
                "passes": sort.merge_passes,
                "fan_in": sort.merge_width,
                "intermediate_merges": sort.intermediate_merges,
            })),
        })
    }
}

/// True if the rows are read back at most once, by requests that come near the device's full rate.
fn is_at_full_rate(each: &Forecast) -> bool {
    each.passes == 0 || (each.passes == 1 && each.request >= FULL_RATE)
}

fn count(number: u64) -> String {
    RowCount(number).to_string()
}

fn plural(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
