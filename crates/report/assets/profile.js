// Bytes over time: the profile of one run over its phases, or those of two runs, a panel a stream. Each figure has
// its data beside it and the axes that the report fixed.
//
// Rates are held over their bucket (steps, not slopes), so the area under a line is the bytes that
// moved. Colours come from the style sheet; a change of theme, of width or to paper draws afresh.
(function () {
  "use strict";
  const MB = 1024 * 1024;
  const LABEL_LINE = 17;
  const LABEL_GAP = 12;
  const COLOURS = 8;
  const AXES = 86;
  let plots = [];

  const figures = Array.from(document.querySelectorAll("figure.profile, figure.pair")).map(function (figure) {
    return { figure: figure, data: JSON.parse(figure.querySelector("script").textContent) };
  });

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // The colour of a series' line, which a legend's box is filled with.
  function marker(u, i) {
    const stroke = u.series[i].stroke;
    return typeof stroke === "function" ? stroke(u, i) : stroke;
  }

  function shown(value) {
    return value == null ? "\u2013" : value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  }

  // Times and rates in MB/s; a bucket between idle neighbours is left out, so that idle streams do not cover the axis.
  function rates(bytes, seconds, buckets) {
    const times = [];
    const values = [];
    for (let i = 0; i <= buckets; i++) {
      const here = i < buckets ? bytes[i] || 0 : 0;
      const idle = !here && !(bytes[i - 1] || 0) && !(bytes[i + 1] || 0);
      times.push(i * seconds);
      values.push(idle ? null : here / MB / seconds);
    }
    return [times, values];
  }

  function axis(label, size, font) {
    return {
      label: label, size: size, labelSize: 20, gap: 4, stroke: colour("muted"), font: font, labelFont: font,
      grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
      values: function (u, splits) { return splits.map(shown); },
    };
  }

  function line(stroke, dash, filled) {
    return {
      stroke: stroke, width: 1.75, dash: dash, fill: filled ? stroke + "26" : undefined,
      paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
    };
  }

  // The axes are fixed so that two reports compare: dragging does not zoom.
  function make(options, data, place) {
    options.cursor = { drag: { x: false, y: false }, points: { size: 6 } };
    options.hooks.draw.push(function () { place.dataset.plot = "drawn"; });
    plots.push(new uPlot(options, data, place));
  }

  // The line of each label, the lowest being 0. A label's edge runs down from its line to the axis, so a
  // label stands above every later one that it reaches: no edge then crosses a name.
  function labelLines(bands, measure, scale) {
    const lines = [];
    for (let i = bands.length - 1; i >= 0; i--) {
      const end = bands[i].start_s * scale + measure(bands[i].name) + LABEL_GAP;
      lines[i] = 0;
      for (let later = i + 1; later < bands.length; later++) {
        if (bands[later].start_s * scale < end) {
          lines[i] = Math.max(lines[i], lines[later] + 1);
        }
      }
    }
    return lines;
  }

  function textFont(ratio) {
    return 12 * ratio + "px system-ui, sans-serif";
  }

  function drawBands(u, bands, xMax) {
    const ctx = u.ctx;
    const ratio = devicePixelRatio;
    const box = u.bbox;
    ctx.save();
    ctx.font = textFont(ratio);
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    const measure = function (text) { return ctx.measureText(text).width / ratio; };
    const lines = labelLines(bands, measure, box.width / ratio / xMax);
    bands.forEach(function (band, index) {
      const start = u.valToPos(Math.max(band.start_s, 0), "x", true);
      const end = u.valToPos(Math.min(band.end_s, xMax), "x", true);
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

  function dashed(u, stroke, dash, from, to) {
    const ctx = u.ctx;
    ctx.save();
    ctx.strokeStyle = stroke;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash(dash.map(function (length) { return length * devicePixelRatio; }));
    ctx.beginPath();
    ctx.moveTo(from[0], from[1]);
    ctx.lineTo(to[0], to[1]);
    ctx.stroke();
    ctx.restore();
  }

  function drawLimit(u, limit, yMax) {
    if (!limit || limit.mb_per_s > yMax) {
      return;
    }
    const ratio = devicePixelRatio;
    const y = u.valToPos(limit.mb_per_s, "y", true);
    const end = u.bbox.left + u.bbox.width;
    dashed(u, colour("muted"), [6, 4], [u.bbox.left, y], [end, y]);
    u.ctx.save();
    u.ctx.fillStyle = colour("muted");
    u.ctx.font = textFont(ratio);
    u.ctx.textAlign = "right";
    u.ctx.textBaseline = "alphabetic";
    u.ctx.fillText(limit.name + " " + shown(limit.mb_per_s) + " MB/s", end - 4 * ratio, y - 4 * ratio);
    u.ctx.restore();
  }

  function drawProfile(figure, chart) {
    const place = figure.querySelector(".plot");
    const width = Math.max(place.clientWidth, 320);
    const xMax = chart.x_max_s;
    const yMax = chart.y_max_mb_per_s;
    const bands = chart.bands
      .filter(function (band) { return band.start_s < xMax && band.end_s > band.start_s; })
      .sort(function (one, two) { return one.start_s - two.start_s; });
    const buckets = Math.max.apply(null, chart.streams.map(function (stream) { return stream.bytes.length; }));
    const measuring = document.createElement("canvas").getContext("2d");
    measuring.font = textFont(1);
    const measure = function (text) { return measuring.measureText(text).width; };
    // Room on the right for the names of phases that begin near the end.
    const scale = (width - AXES) / xMax;
    const beyond = bands.map(function (band) {
      return measure(band.name) + LABEL_GAP - (xMax - band.start_s) * scale;
    });
    const right = Math.min(Math.max.apply(null, beyond.concat([14])), 160);
    const lines = labelLines(bands, measure, (width - AXES + 14 - right) / xMax);
    const labels = bands.length ? (Math.max.apply(null, lines) + 1) * LABEL_LINE + 6 : 10;
    const series = chart.streams.map(function (stream) {
      const hue = stream.colour % COLOURS;
      // The later half is dashed too: hue alone does not tell eight lines apart.
      const drawn = line(colour("stream-" + hue), hue < COLOURS / 2 ? undefined : [7, 3], true);
      drawn.label = stream.name;
      drawn.value = function (u, value) { return value == null ? "\u2013" : shown(value) + " MB/s"; };
      return drawn;
    });
    const data = chart.streams.map(function (stream) { return rates(stream.bytes, chart.bucket_s, buckets); });
    make({
      width: width, height: 320 + labels, padding: [labels, right, 0, 4],
      scales: { x: { time: false, range: [0, xMax] }, y: { range: [0, yMax] } },
      axes: [axis("seconds from the start", 30, textFont(1)), axis("MB/s", 52, textFont(1))],
      series: [{ label: "at", value: function (u, value) { return value == null ? "\u2013" : shown(value) + " s"; } }]
        .concat(series),
      legend: { markers: { width: 2, fill: marker } },
      hooks: {
        drawClear: [function (u) { drawBands(u, bands, xMax); }],
        draw: [function (u) { drawLimit(u, chart.limit, yMax); }],
      },
    }, [data[0][0]].concat(data.map(function (stream) { return stream[1]; })), place);
    drawStrips(figure, chart, right);
  }

  // What was seen beside the run: panels below the profile whose time axis stands under its own.
  function drawStrips(figure, chart, right) {
    const place = figure.querySelector(".strips");
    place.textContent = "";
    chart.strips.forEach(function (strip) {
      const panel = document.createElement("div");
      panel.className = "strip-panel";
      const heading = document.createElement("h4");
      heading.textContent = strip.title;
      const unit = document.createElement("span");
      unit.textContent = strip.unit;
      heading.append(unit);
      panel.append(heading);
      place.append(panel);
      const series = strip.lines.map(function (one, index) {
        const drawn = line(colour("stream-" + one.colour % COLOURS), index ? [5, 3] : undefined, !index);
        drawn.label = one.name;
        drawn.value = function (u, value) { return shown(value) + (value == null ? "" : " " + strip.unit); };
        return drawn;
      });
      // A step holds to the end of the last stretch.
      const values = strip.lines.map(function (one) { return one.values.concat(one.values.slice(-1)); });
      make({
        width: Math.max(panel.clientWidth, 320), height: 118, padding: [6, right, 0, 4],
        scales: { x: { time: false, range: [0, chart.x_max_s] }, y: { range: [0, strip.top] } },
        axes: [axis(null, 26, textFont(1)), axis(null, 72, textFont(1))],
        series: [{ label: "at", value: function (u, value) { return value == null ? "\u2013" : shown(value) + " s"; } }]
          .concat(series),
        legend: { markers: { width: 2, fill: marker } },
        hooks: { draw: [] },
      }, [strip.ends_s].concat(values), panel);
    });
  }

  function drawPair(figure, pair) {
    const panels = figure.querySelector(".panels");
    panels.textContent = "";
    const sides = pair.sides.map(function (side) { return side.chart; });
    const total = function (stream) {
      return shown(stream.bytes.reduce(function (sum, part) { return sum + part; }, 0) / MB) + " MB";
    };
    // All panels first: each takes its width from the grid that they make up.
    const places = sides[0].streams.map(function (stream, index) {
      const place = document.createElement("div");
      place.className = "panel";
      const heading = document.createElement("h4");
      heading.textContent = stream.name;
      const moved = document.createElement("span");
      moved.textContent = total(stream) + " against " + total(sides[1].streams[index]) + "; MB/s over seconds";
      heading.append(moved);
      place.append(heading);
      panels.append(place);
      return place;
    });
    places.forEach(function (place, index) {
      const data = sides.map(function (side) {
        const bytes = side.streams[index].bytes;
        return rates(bytes, side.bucket_s, bytes.length);
      });
      const ends = function (u) {
        pair.sides.forEach(function (side, number) {
          const x = u.valToPos(side.end_s, "x", true);
          dashed(u, colour("side-" + number), [2, 3], [x, u.bbox.top], [x, u.bbox.top + u.bbox.height]);
        });
      };
      make({
        width: Math.max(place.clientWidth, 240), height: 170, padding: [8, 12, 0, 0],
        scales: {
          x: { time: false, range: [0, sides[0].x_max_s] },
          y: { range: [0, sides[0].y_max_mb_per_s] },
        },
        axes: [axis(null, 26, "11px system-ui, sans-serif"), axis(null, 46, "11px system-ui, sans-serif")],
        series: [{}, line(colour("side-0"), [5, 3], false), line(colour("side-1"), undefined, true)],
        legend: { show: false },
        hooks: { draw: [ends] },
      }, uPlot.join(data), place);
    });
  }

  function draw() {
    plots.splice(0).forEach(function (plot) { plot.destroy(); });
    figures.forEach(function (one) {
      (one.data.sides ? drawPair : drawProfile)(one.figure, one.data);
    });
  }

  draw();
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", function () {
    if (document.documentElement.clientWidth !== width) {
      width = document.documentElement.clientWidth;
      draw();
    }
  });
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
