//! `[limits]`: what one process takes on, whatever the operation. `docs/reference/config.md` gives the reasons.

use std::time::Duration;

use counterfoil_core::complaint::Pad;

use super::quantity::{SIZE_ACCEPTED, parse_size, print_size};
use super::reader::Section;
use super::setting::Setting;
use super::terms::span;

/// What one process takes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest body of a guarded request, in bytes.
    pub request_body_max: Setting<usize>,
    /// The largest answer that is kept, in bytes.
    pub kept_answer_max: Setting<usize>,
    /// Actions that run at once.
    pub max_running: Setting<usize>,
    /// Duplicates that wait for one action.
    pub waiting_for_one: Setting<usize>,
    /// Duplicates that wait in all.
    pub waiting_in_all: Setting<usize>,
    /// Connections of callers.
    pub connections: Setting<usize>,
    /// Requests at once on one HTTP/2 connection of a caller.
    pub http2_streams: Setting<usize>,
    /// The largest header of a request, in bytes.
    pub header_bytes: Setting<usize>,
    /// The most lines of a request's header.
    pub header_lines: Setting<usize>,
    /// How long a caller may take to send its header.
    pub header: Setting<Duration>,
    /// How long a caller may take to send the body of a guarded request.
    pub body: Setting<Duration>,
    /// Connections to the upstream.
    pub upstream_connections: Setting<usize>,
    /// How long connecting to the upstream may take.
    pub connect: Setting<Duration>,
    /// How long the upstream may take to begin its answer to an unguarded request that it has.
    pub answer: Setting<Duration>,
    /// How long a stream of unguarded traffic may rest.
    pub idle: Setting<Duration>,
    /// How long a stop waits for what runs.
    pub drain: Setting<Duration>,
    /// Rows of one sweep.
    pub sweep_rows: Setting<usize>,
    /// The pause between sweeps.
    pub sweep_every: Setting<Duration>,
    /// Writes that may wait for the store's writer.
    pub writer_queue: Setting<usize>,
    /// Writes that one commit takes.
    pub writer_batch: Setting<usize>,
}

impl Limits {
    pub(crate) fn read(section: Option<Section<'_>>, pad: &Pad) -> Self {
        let empty = toml::Table::new();
        let section = section.unwrap_or_else(|| Section::root(&empty, pad));
        let seconds = Duration::from_secs;
        let limits = Self {
            request_body_max: Setting::or(size(&section, "request_body_max", 1, 64 << 20), 1 << 20),
            kept_answer_max: Setting::or(size(&section, "kept_answer_max", 1, 16 << 20), 1 << 20),
            max_running: Setting::or(section.number("max_running", 1, 100_000), 512),
            waiting_for_one: Setting::or(section.number("waiting_for_one", 1, 10_000), 64),
            waiting_in_all: Setting::or(section.number("waiting_in_all", 1, 100_000), 1024),
            connections: Setting::or(section.number("connections", 1, 1_000_000), 10_000),
            http2_streams: Setting::or(section.number("http2_streams", 1, 10_000), 128),
            // The HTTP library does not go below 8 KiB.
            header_bytes: Setting::or(size(&section, "header_bytes", 8 << 10, 1 << 20), 64 << 10),
            header_lines: Setting::or(section.number("header_lines", 10, 1000), 100),
            header: Setting::or(span(&section, "header", 1, 300), seconds(10)),
            body: Setting::or(span(&section, "body", 1, 3600), seconds(30)),
            upstream_connections: Setting::or(section.number("upstream_connections", 1, 1_000_000), 2048),
            connect: Setting::or(span(&section, "connect", 1, 60), seconds(5)),
            answer: Setting::or(span(&section, "answer", 1, 86_400), seconds(60)),
            idle: Setting::or(span(&section, "idle", 1, 86_400), seconds(300)),
            drain: Setting::or(span(&section, "drain", 1, 3600), seconds(25)),
            sweep_rows: Setting::or(section.number("sweep_rows", 1, 10_000), 1000),
            sweep_every: Setting::or(span(&section, "sweep_every", 1, 3600), seconds(10)),
            writer_queue: Setting::or(section.number("writer_queue", 1, 1_000_000), 10_000),
            writer_batch: Setting::or(section.number("writer_batch", 1, 10_000), 256),
        };
        section.finish();
        limits
    }
}

fn size(section: &Section<'_>, key: &'static str, least: usize, most: usize) -> Option<usize> {
    section.text(key, SIZE_ACCEPTED, |text| match parse_size(text)? {
        0 => Err("it is zero".to_owned()),
        size if size < least => Err(format!("{text:?} is under {}", print_size(least))),
        size if size > most => Err(format!("{text:?} is over {}", print_size(most))),
        size => Ok(size),
    })
}
