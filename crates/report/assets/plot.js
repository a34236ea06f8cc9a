// The I/O profile: the context's series over its phases, on the axes that the report fixed.
//
// Rates are held over their bucket (steps, not slopes), so the area under a line is the bytes that
// moved. Colours come from the style sheet; a change of theme, of width or to paper draws afresh.
(function () {
  "use strict";
  const place = document.getElementById("plot");
  if (!place) {
    return;
  }
  const context = JSON.parse(document.getElementById("context").textContent);
  const profile = context.io_profile;
  const xMax = Number(place.dataset.xMax);
  const yMax = Number(place.dataset.yMax);
  const bucketSeconds = profile.bucket_ns / 1e9;
  const MB = 1024 * 1024;
  const LABEL_LINE = 17;
  const LABEL_GAP = 12;
  const COLOURS = 8;
  const AXES = 86;

  // The position in the record chooses the colour, so a stream keeps it when others are idle.
  const streams = profile.series
    .map(function (series, index) { return { name: series.name, bytes: series.bytes, index: index }; })
    .filter(function (series) { return series.bytes.some(function (bytes) { return bytes > 0; }); });
  const buckets = Math.max.apply(null, streams.map(function (series) { return series.bytes.length; }));
  const bands = context.phases
    .map(function (phase) { return { name: phase.name, start: phase.start_ns / 1e9, end: phase.end_ns / 1e9 }; })
    .filter(function (band) { return band.start < xMax && band.end > band.start; })
    .sort(function (one, two) { return one.start - two.start; });
  const calibration = context.calibration;
  const stored = context.limits && context.limits.state === "calibrated" ? context.limits : null;
  const several = new Set(context.devices.map(function (device) { return device.device; })).size > 1;
  const read = (stored && stored.sequential_read_bytes_per_s)
    || (calibration && calibration.sequential_read_bytes_per_s);
  const limit = read && !several ? read / MB : null;
  let plot = null;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // Rates in MB/s; a bucket between idle neighbours is left out, so that idle streams do not cover the axis.
  function rates(series) {
    const bytes = series.bytes;
    const out = [];
    for (let i = 0; i <= buckets; i++) {
      const here = i < buckets ? bytes[i] || 0 : 0;
      const idle = !here && !(bytes[i - 1] || 0) && !(bytes[i + 1] || 0);
      out.push(idle ? null : here / MB / bucketSeconds);
    }
    return out;
  }

  function data() {
    const times = [];
    for (let i = 0; i <= buckets; i++) {
      times.push(i * bucketSeconds);
    }
    return [times].concat(streams.map(rates));
  }

  function shown(value) {
    return value == null ? "\u2013" : value.toLocaleString("en-US", { maximumFractionDigits: 1 });
  }

  // The line of each label, the lowest being 0. A label's edge runs down from its line to the axis, so a
  // label stands above every later one that it reaches: no edge then crosses a name.
  function labelLines(measure, scale) {
    const lines = [];
    for (let i = bands.length - 1; i >= 0; i--) {
      const end = bands[i].start * scale + measure(bands[i].name) + LABEL_GAP;
      lines[i] = 0;
      for (let later = i + 1; later < bands.length; later++) {
        if (bands[later].start * scale < end) {
          lines[i] = Math.max(lines[i], lines[later] + 1);
        }
      }
    }
    return lines;
  }

  function textFont(ratio) {
    return 12 * ratio + "px system-ui, sans-serif";
  }

  function drawBands(u) {
    const ctx = u.ctx;
    const ratio = devicePixelRatio;
    const box = u.bbox;
    ctx.save();
    ctx.font = textFont(ratio);
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    const measure = function (text) { return ctx.measureText(text).width / ratio; };
    const lines = labelLines(measure, box.width / ratio / xMax);
    bands.forEach(function (band, index) {
      const start = u.valToPos(Math.max(band.start, 0), "x", true);
      const end = u.valToPos(Math.min(band.end, xMax), "x", true);
      const base = box.top - (5 + lines[index] * LABEL_LINE) * ratio;
      ctx.fillStyle = colour(index % 2 ? "band-b" : "band-a");
      ctx.fillRect(start, box.top, end - start, box.height);
      ctx.fillStyle = colour("band-edge");
      ctx.fillRect(start, base - 11 * ratio, ratio, box.top + box.height - base + 11 * ratio);
      ctx.fillStyle = colour("ink");
      ctx.fillText(band.name, start + 5 * ratio, base);
    });
    ctx.restore();
  }

  function drawLimit(u) {
    if (limit === null || limit > yMax) {
      return;
    }
    const ctx = u.ctx;
    const ratio = devicePixelRatio;
    const y = u.valToPos(limit, "y", true);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("muted");
    ctx.lineWidth = ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(u.bbox.left + u.bbox.width, y);
    ctx.stroke();
    ctx.font = textFont(ratio);
    ctx.textAlign = "right";
    ctx.textBaseline = "alphabetic";
    ctx.fillText("device sequential read " + shown(limit) + " MB/s", u.bbox.left + u.bbox.width - 4 * ratio, y - 4 * ratio);
    ctx.restore();
  }

  function options(width) {
    const measuring = document.createElement("canvas").getContext("2d");
    measuring.font = textFont(1);
    const measure = function (text) { return measuring.measureText(text).width; };
    // Room on the right for the names of phases that begin near the end.
    const scale = (width - AXES) / xMax;
    const beyond = bands.map(function (band) {
      return measure(band.name) + LABEL_GAP - (xMax - band.start) * scale;
    });
    const right = Math.min(Math.max.apply(null, beyond.concat([14])), 160);
    const lines = labelLines(measure, (width - AXES + 14 - right) / xMax);
    const labels = bands.length ? (Math.max.apply(null, lines) + 1) * LABEL_LINE + 6 : 10;
    const axis = function (label, size) {
      return {
        label: label, size: size, labelSize: 20, gap: 4,
        stroke: colour("muted"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
        grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
        values: function (u, splits) { return splits.map(shown); },
      };
    };
    return {
      width: width, height: 320 + labels, padding: [labels, right, 0, 4],
      scales: { x: { time: false, range: [0, xMax] }, y: { range: [0, yMax] } },
      axes: [axis("seconds from the begin", 30), axis("MB/s", 52)],
      series: [{ label: "at", value: function (u, value) { return value == null ? "\u2013" : shown(value) + " s"; } }]
        .concat(streams.map(function (series) {
          const stroke = colour("stream-" + series.index % COLOURS);
          return {
            // The later half is dashed too: hue alone does not tell eight lines apart.
            dash: series.index % COLOURS < COLOURS / 2 ? undefined : [7, 3],
            label: series.name, stroke: stroke, fill: stroke + "26", width: 1.75,
            paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
            value: function (u, value) { return value == null ? "\u2013" : shown(value) + " MB/s"; },
          };
        })),
      legend: { markers: { width: 2, fill: function (u, i) { return u.series[i]._fill; } } },
      // The axes are fixed so that two reports compare: dragging does not zoom.
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      hooks: {
        drawClear: [drawBands],
        draw: [function (u) { drawLimit(u); place.dataset.plot = "drawn"; }],
      },
    };
  }

  function draw() {
    if (plot) {
      plot.destroy();
    }
    plot = new uPlot(options(Math.max(place.clientWidth, 320)), data(), place);
  }

  draw();
  let width = place.clientWidth;
  new ResizeObserver(function () {
    if (place.clientWidth !== width) {
      width = place.clientWidth;
      draw();
    }
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", function () {
    document.documentElement.dataset.paper = "";
    draw();
  });
  window.addEventListener("afterprint", function () {
    delete document.documentElement.dataset.paper;
    draw();
  });
})();
