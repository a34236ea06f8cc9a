//! The table of routes: path, fields of the query, answer, and the text of `/openapi.json`.

use crate::answer::{HttpRefusal, Site};
use crate::page;
use crate::request::Fields;
use plumb_pages::list;
use plumb_report::html;
use serde_json::{Map, Value, json};

/// A request after its checks.
pub struct RouteRequest {
    /// Name of a bundle; empty for a route without one.
    pub id: String,
    pub fields: Fields,
}

/// Kind of a body, and with it the policy of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    Json,
    Metrics,
    Style,
    /// A report, which has scripts of its own.
    Report,
    Page,
}

impl Media {
    pub const fn content_type(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Metrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Media::Style => "text/css; charset=utf-8",
            Media::Report | Media::Page => "text/html; charset=utf-8",
        }
    }
}

/// A route that is read with GET.
pub struct Route {
    pub path: &'static str,
    /// Fields that the query may have.
    pub takes: &'static [&'static str],
    pub media: Media,
    /// The command that prints the same, or the content.
    pub says: &'static str,
    pub answer: fn(&Site, &RouteRequest) -> Result<String, HttpRefusal>,
}

const fn route(
    path: &'static str,
    takes: &'static [&'static str],
    media: Media,
    says: &'static str,
    answer: fn(&Site, &RouteRequest) -> Result<String, HttpRefusal>,
) -> Route {
    Route { path, takes, media, says, answer }
}

pub const SIDES: &[&str] = &["a", "b"];
const SERIES: &[&str] = &["figure", "workload"];

pub const ROUTES: &[Route] = &[
    route("/bundles", &[], Media::Json, "plumb list bundles --json", |served, _| {
        Ok(served.bundles()?.to_json())
    }),
    route(
        "/bundles/{id}/record",
        &[],
        Media::Json,
        "plumb report BUNDLE --json, of a run",
        |served, asked| served.record(&asked.id),
    ),
    route(
        "/bundles/{id}/analysis",
        &[],
        Media::Json,
        "plumb report BUNDLE --json, of a study",
        |served, asked| served.analysis(&asked.id),
    ),
    route("/bundles/{id}/report", &[], Media::Report, "The page of a bundle", |served, asked| {
        served.report(&asked.id)
    }),
    route("/compare", SIDES, Media::Json, "plumb compare A B --json", |served, asked| {
        served.comparison(asked.fields.require("a")?, asked.fields.require("b")?)
    }),
    route("/series", SERIES, Media::Json, "plumb report --series BUNDLE... --json", |served, asked| {
        Ok(served.series(asked.fields.get("figure"), asked.fields.get("workload"))?.data + "\n")
    }),
    route("/settings", &[], Media::Json, "plumb list settings --json", |_, _| Ok(list::settings().to_json())),
    route("/events", &[], Media::Json, "plumb list events --json", |_, _| Ok(list::events().to_json())),
    route("/health", &[], Media::Json, "plumb list bundles --health --json", |served, _| {
        Ok(served.health()?.list().to_json())
    }),
    route("/metrics", &[], Media::Metrics, "Health as OpenMetrics", |served, _| {
        Ok(served.health()?.metrics())
    }),
    route("/openapi.json", &[], Media::Json, "This table", |served, _| Ok(openapi(served.program.version))),
    route("/", page::TAKES, Media::Page, "The list of bundles", |site, asked| {
        page::bundles(site, &asked.fields)
    }),
    route("/pages/compare", SIDES, Media::Report, "The page of a comparison", |served, asked| {
        let comparison = served.compare(asked.fields.require("a")?, asked.fields.require("b")?)?;
        Ok(html::render(&plumb_pages::compare::document(&comparison)))
    }),
    route("/pages/series", SERIES, Media::Report, "The page of a figure over runs", |served, asked| {
        Ok(html::render(&served.series(asked.fields.get("figure"), asked.fields.get("workload"))?))
    }),
    route("/pages/health", &[], Media::Report, "The page of health", |served, _| {
        Ok(html::render(&served.health()?.document(served.program.version)))
    }),
    route("/style.css", &[], Media::Style, "The style sheet of the list", |_, _| Ok(page::style())),
];

/// Describes the routes, as OpenAPI 3.1 lays them out.
fn openapi(version: &str) -> String {
    let mut paths = Map::new();
    for route in ROUTES {
        let parameter = |name: &str, place: &str| {
            json!({ "name": name, "in": place, "required": place == "path" || route.takes == SIDES,
                    "schema": { "type": "string" } })
        };
        let id = route.path.contains("{id}").then(|| parameter("id", "path"));
        let parameters: Vec<Value> =
            id.into_iter().chain(route.takes.iter().map(|name| parameter(name, "query"))).collect();
        let media = route.media.content_type().split(';').next().unwrap_or_default();
        let responses = json!({
            "200": { "description": "The answer", "content": { media: {} } },
            "default": { "description": "A refusal, as {\"error\": LINE}", "content": { "application/json": {} } },
        });
        let get = json!({ "summary": route.says, "parameters": parameters, "responses": responses });
        paths.insert(route.path.to_string(), json!({ "get": get }));
    }
    let about =
        json!({ "openapi": "3.1.0", "info": { "title": "plumb", "version": version }, "paths": paths });
    format!("{about:#}\n")
}
