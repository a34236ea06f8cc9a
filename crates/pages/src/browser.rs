//! Renders a page in a real browser: uPlot draws, and no script fails.
//!
//! Skipped with a message without a browser; `PLUMB_REQUIRE_BROWSER=1` makes that a failure.
//! `PLUMB_PAGES=DIR` keeps the pages in a directory for inspection.

use std::path::PathBuf;
use std::process::Command;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Returns a browser; prints that the test is skipped if there is none.
#[cfg(test)]
pub(crate) fn browser() -> Option<PathBuf> {
    let found = NAMES.iter().find_map(|name| plumb_host::programs::find(name));
    let required = std::env::var_os("PLUMB_REQUIRE_BROWSER").is_some_and(|value| value == "1");
    assert!(found.is_some() || !required, "PLUMB_REQUIRE_BROWSER=1 and no {NAMES:?} in PATH");
    if found.is_none() {
        println!("skipped: no {NAMES:?} in PATH");
    }
    found
}

/// Returns the DOM after its scripts ran, in a window of 1300 pixels.
pub(crate) fn dom(browser: &PathBuf, name: &str, html: &str) -> String {
    dom_in(browser, 1300, name, html)
}

/// Returns the DOM in a window of this width. A headless browser has at least 500 pixels.
pub(crate) fn dom_in(browser: &PathBuf, width: u32, name: &str, html: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    std::fs::write(&page, html).unwrap();
    if let Some(kept) = std::env::var_os("PLUMB_PAGES") {
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::write(PathBuf::from(kept).join(name), html).unwrap();
    }
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--virtual-time-budget=5000"])
        .arg(format!("--window-size={width},2600"))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
