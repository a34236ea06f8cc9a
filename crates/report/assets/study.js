// The I/O profiles of two arms: one panel a stream, the reference dashed, the treatment filled, all panels on
// the same axes. Rates are held over their bucket, so the area under a line is the bytes that moved. A line
// down to the axis marks where either run ended. A change of theme, of width or to paper draws afresh.
(function () {
  "use strict";
  const figures = Array.from(document.querySelectorAll("figure.pair"));
  if (!figures.length) {
    return;
  }
  const context = JSON.parse(document.getElementById("context").textContent);
  const MB = 1024 * 1024;
  const plots = [];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  function shown(value) {
    return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  }

  function sum(bytes) {
    return bytes.reduce(function (total, part) { return total + part; }, 0);
  }

  function seriesOf(run, name) {
    const found = run.profile.series.find(function (series) { return series.name === name; });
    return found ? found.bytes : [];
  }

  // Names of the streams that moved on either side, in the order of the first side that has them.
  function streams(pair) {
    const names = [];
    [pair.reference, pair.treatment].forEach(function (run) {
      run.profile.series.forEach(function (series) {
        if (sum(series.bytes) > 0 && names.indexOf(series.name) < 0) {
          names.push(series.name);
        }
      });
    });
    return names;
  }

  // Times and rates of one run; a bucket between idle neighbours is left out.
  function rates(run, name) {
    const seconds = run.profile.bucket_ns / 1e9;
    const bytes = seriesOf(run, name);
    const times = [];
    const values = [];
    for (let i = 0; i <= bytes.length; i++) {
      const here = i < bytes.length ? bytes[i] : 0;
      const idle = !here && !(bytes[i - 1] || 0) && !(bytes[i + 1] || 0);
      times.push(i * seconds);
      values.push(idle ? null : here / MB / seconds);
    }
    return [times, values];
  }

  function axis(size) {
    return {
      size: size, gap: 4, stroke: colour("muted"), font: "11px system-ui, sans-serif",
      grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
      values: function (u, splits) { return splits.map(shown); },
    };
  }

  function drawEnds(u, pair) {
    const ctx = u.ctx;
    [pair.reference, pair.treatment].forEach(function (run, side) {
      const x = u.valToPos(run.elapsed_ns / 1e9, "x", true);
      ctx.save();
      ctx.strokeStyle = colour("side-" + side);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      ctx.restore();
    });
  }

  function panel(figure, place, pair, name) {
    const line = function (side, dash, fill) {
      const stroke = colour("side-" + side);
      return {
        stroke: stroke, width: 1.75, dash: dash, fill: fill ? stroke + "26" : undefined,
        paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
      };
    };
    const options = {
      width: Math.max(place.clientWidth, 240), height: 170, padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, range: [0, Number(figure.dataset.xMax)] },
        y: { range: [0, Number(figure.dataset.yMax)] },
      },
      axes: [axis(26), axis(46)],
      series: [{}, line(0, [5, 3], false), line(1, undefined, true)],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 5 } },
      hooks: { draw: [function (u) { drawEnds(u, pair); place.dataset.plot = "drawn"; }] },
    };
    const data = uPlot.join([rates(pair.reference, name), rates(pair.treatment, name)]);
    plots.push(new uPlot(options, data, place));
  }

  function draw() {
    plots.splice(0).forEach(function (plot) { plot.destroy(); });
    figures.forEach(function (figure) {
      const pair = context.claims[Number(figure.dataset.claim)].profiles;
      const panels = figure.querySelector(".panels");
      panels.textContent = "";
      const places = streams(pair).map(function (name) {
        const place = document.createElement("div");
        place.className = "panel";
        const heading = document.createElement("h4");
        heading.textContent = name;
        const moved = document.createElement("span");
        moved.textContent = shown(sum(seriesOf(pair.reference, name)) / MB) + " MB against "
          + shown(sum(seriesOf(pair.treatment, name)) / MB) + " MB; MB/s over seconds";
        heading.append(moved);
        place.append(heading);
        panels.append(place);
        return { place: place, name: name };
      });
      places.forEach(function (entry) { panel(figure, entry.place, pair, entry.name); });
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
