//! dev timing
use plumb_engine::*;
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::index::build::*;
use plumb_units::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rows = parse_count(&args[1]).unwrap();
    let mut settings = Settings::default();
    for s in &args[2..] { let (n, v) = s.split_once('=').unwrap(); settings.set(n, v, "--set").unwrap(); }
    let home = std::path::PathBuf::from(format!("/tmp/plumb-dev-{}", std::process::id()));
    let sizes = InitialSizes { users: Bytes(rows * 48 + (64<<20)), temp: Bytes(rows * 20 + (64<<20)), indx: Bytes(rows * 22 + (64<<20)) };
    let instance = Instance::create(&Layout::in_one(home), settings, sizes, Cancel::default()).unwrap();
    let t = plumb_events::now();
    let source = plumb_workload::SalesTable::new(plumb_workload::SalesSpec { rows, seed: 1 });
    let l = table::load::load(&instance, "sales", &source).unwrap();
    println!("load {:?} {}", l, Nanos(plumb_events::now().0 - t.0));
    for i in 0..3 {
        let s0 = instance.recorder.snapshot();
        let t = plumb_events::now();
        let b = create_index(&instance, &IndexSpec { name: format!("ix{i}"), table: "sales".into(), columns: vec![("store_id".into(), false), ("prod_id".into(), false)] }).unwrap();
        println!("build {} {:?} {:?}", Nanos(plumb_events::now().0 - t.0), b.servers, b.direct_writes_reason);
        let p = instance.recorder.snapshot().since(&s0);
        for s in &p.sessions {
            println!("  {} elapsed {} cpu {} runq {} waits {} idle {} unacc {}", s.name, s.elapsed, s.cpu, s.run_queue, s.waits(false), s.waits(true), s.unaccounted());
            for e in plumb_events::Event::ALL { let t = &s.events[*e as usize]; if t.count > 0 { print!("   [{} {} {}]", e.name(), t.count, t.time); } } println!();
        }
    }
    for ph in instance.recorder.phases() { println!("{} {}..{} rows {}", ph.name, ph.begin, ph.end, ph.rows); }
    instance.destroy().unwrap();
}
