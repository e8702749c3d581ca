
"use strict";
// Charts by Observable Plot, drawn again when their box changes its width.

const Format = {
  percent: (share, digits = 2) => `${(100 * share).toFixed(digits)}\u00a0%`,
  tick: (share) => `${Number((100 * share).toPrecision(10))}\u00a0%`,
  count: (n) => n.toLocaleString("en-US"),
  brief: (n) => (n >= 1e6 ? `${n / 1e6} M` : n >= 1e4 ? `${n / 1e3} k` : Number.isInteger(n) ? n.toLocaleString("en-US") : `${n}`),
  short: (text, most) => {
    const room = Math.max(4, Math.min(48, most));
    return text.length > room ? `${text.slice(0, room - 1)}…` : text;
  },
  // A name in lines of at most so many letters, whole.
  lines: (text, most) => {
    const room = Math.max(8, most);
    const found = [""];
    for (const word of text.split(" ").flatMap((one) => one.match(new RegExp(`[^]{1,${room}}`, "g")) ?? [])) {
      if (found.at(-1) === "") found[found.length - 1] = word;
      else if (found.at(-1).length + 1 + word.length <= room) found[found.length - 1] += ` ${word}`;
      else found.push(word);
    }
    return found;
  },
};

const Charts = {
  drawn: new Map(),

  // `build(width)` gives the options of Plot.plot; `label` is what a screen reader says instead of the picture.
  show(figure, label, build) {
    const canvas = figure.querySelector(".canvas");
    const draw = () => {
      const width = Math.max(240, Math.floor(canvas.clientWidth));
      const svg = Plot.plot({ className: "plot", width, ...build(width) });
      svg.querySelectorAll("[aria-label]").forEach((mark) => mark.removeAttribute("aria-label"));
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", label);
      canvas.replaceChildren(svg);
    };
    if (!Charts.drawn.has(canvas)) {
      new ResizeObserver((entries) => {
        if (Math.abs(entries[0].contentRect.width - canvas.firstChild.getAttribute("width")) > 1) Charts.drawn.get(canvas)();
      }).observe(canvas);
    }
    Charts.drawn.set(canvas, draw);
    draw();
  },

  // Density of coverage from its distribution function, as areas and lines; the asked-for level is dashed.
  law(figure, law, level) {
    const middle = (i) => (law.levels[i] + law.levels[i + 1]) / 2;
    const density = (below) => below.slice(1).map((p, i) => ({ x: middle(i), y: Math.max(0, p - below[i]) }));
    const bound = density(law.bound);
    const expected = law.expected && density(law.expected);
    const [low, high] = [law.levels[0], law.levels.at(-1)];
    const label = `Distribution of coverage. With a probability of 95\u00a0% it is at least ${Format.percent(law.reached[1])}.`;
    Charts.show(figure, label, (width) => ({
      height: Math.min(260, 0.55 * width),
      marginLeft: 8, marginRight: 26, marginTop: 26, marginBottom: 44,
      x: { domain: [Math.min(low, level), Math.max(high, level)], tickFormat: Format.tick, ticks: width < 420 ? 4 : 7, label: "coverage", labelOffset: 36 },
      y: { axis: null },
      marks: [
        Plot.areaY(expected || bound, { x: "x", y: "y", fill: "var(--accent-soft)" }),
        Plot.lineY(bound, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 1.6 }),
        Plot.ruleY([0], { stroke: "var(--reference)" }),
        Plot.ruleX([level], { stroke: "var(--promise)", strokeWidth: 1.8, strokeDasharray: "5 4" }),
        law.n === null ? null : Plot.text([law.n], { frameAnchor: "top-left", text: (d) => `n = ${Format.count(d)}` }),
        Plot.text([level], { x: (d) => d, frameAnchor: "top", dy: -16, text: (d) => `asked for ${Format.tick(d)}`, fill: "var(--promise)" }),
      ],
    }));
  },

  // Expected coverage against epsilon or n, with the current point and what there is without privacy.
  cost(figure, rows, now, level, name) {
    const label = `Expected coverage against ${name}; at ${rows[now].x} it is ${Format.percent(rows[now].y)}.`;
    Charts.show(figure, label, (width) => ({
      height: Math.min(260, 0.62 * width),
      marginLeft: 46, marginRight: 28, marginBottom: 40,
      x: { type: "log", label: name, ticks: 4, tickFormat: Format.brief },
      y: { domain: [level - 0.08 * (1 - level), 1], tickFormat: Format.tick, ticks: 5, grid: true, label: null },
      marks: [
        Plot.ruleY([level], { stroke: "var(--promise)", strokeWidth: 1.5, strokeDasharray: "5 4" }),
        Plot.lineY(rows, { x: "x", y: "plain", stroke: "var(--reference)", strokeWidth: 1.5 }),
        Plot.lineY(rows, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 2 }),
        Plot.dot([rows[now]], { x: "x", y: "y", r: 5, fill: "var(--accent)", stroke: "var(--paper)", strokeWidth: 1.5 }),
      ],
    }));
  },

  // What charts with one row per name have in common: whole names, in lines that take two fifths of the width, few
  // marks below.
  rows(points, width) {
    const names = points.map((d) => Format.lines(d.name, Math.floor((0.4 * width - 14) / 7)));
    const marginLeft = 14 + 7 * Math.max(...names.flat().map((line) => line.length));
    return {
      height: 52 + Math.max(20, 6 + 13 * Math.max(...names.map((lines) => lines.length))) * points.length,
      marginLeft, marginRight: 24, marginTop: 10, marginBottom: 36,
      x: { nice: true, ticks: Math.max(2, Math.min(4, Math.floor((width - marginLeft) / 110))), grid: true },
      y: { domain: points.map((d, i) => i), tickFormat: (i) => names[i].join("\n"), tickSize: 0, label: null, type: "band" },
    };
  },

  // Shares with their intervals, one row each; points that are promised something of their own have a mark each, and
  // those that are surely below the promise are triangles of another colour.
  intervals(figure, points, promised, label) {
    const own = points.every((d) => d.promised !== undefined);
    const names = points.map((d, i) => i);
    const least = Math.min(...points.map((d) => Math.min(d.low, own ? d.promised : promised)));
    Charts.show(figure, label, (width) => {
      const { x, ...rows } = Charts.rows(points, width);
      return {
        ...rows,
        x: { ...x, domain: [least, 1], tickFormat: Format.tick, label: null },
        marks: [
          own
            ? Plot.tickX(names, { x: (i) => points[i].promised, y: (i) => i, stroke: "var(--promise)", strokeWidth: 2.5 })
            : Plot.ruleX([promised], { stroke: "var(--promise)", strokeWidth: 1.5, strokeDasharray: "5 4" }),
          ...[false, true].flatMap((below) => {
            const some = names.filter((i) => Boolean(points[i].below) === below);
            const color = below ? "var(--below)" : "var(--accent)";
            const shape = below ? { symbol: "triangle", r: 5.5 } : { symbol: "circle", r: 4 };
            return [
              Plot.ruleY(some, { y: (i) => i, x1: (i) => points[i].low, x2: (i) => points[i].high, stroke: color, strokeWidth: 2 }),
              Plot.dot(some, { y: (i) => i, x: (i) => points[i].value, fill: color, ...shape }),
            ];
          }),
        ],
      };
    });
  },

  sizes(figure, points, label) {
    const [first, last] = [Number(points[0].name), Number(points.at(-1).name)];
    const whole = d3.range(first, last + 1);
    const few = whole.length <= 24;
    Charts.show(figure, label, (width) => ({
      height: Math.min(240, 0.6 * width),
      marginLeft: 46, marginBottom: 40,
      x: few ? { type: "band", domain: whole, label: "labels in the set", padding: 0.15 } : { label: "labels in the set", domain: [first - 0.5, last + 0.5] },
      y: { tickFormat: Format.tick, ticks: 4, grid: true, label: null },
      marks: [
        few
          ? Plot.barY(points, { x: (d) => Number(d.name), y: "share", fill: "var(--accent)" })
          : Plot.rectY(points, { x1: (d) => Number(d.name) - 0.45, x2: (d) => Number(d.name) + 0.45, y: "share", fill: "var(--accent)" }),
        Plot.ruleY([0], { stroke: "var(--reference)" }),
      ],
    }));
  },

  // Looks from left to right, called by their names where these fit.
  looks(points, width) {
    const names = new Map(points.map((d) => [d.look, d.name]));
    const longest = Math.max(...points.map((d) => Math.min(d.name.length, 12)));
    const ticks = Math.max(2, Math.min(points.length, Math.floor((width - 60) / (8 * longest + 16))));
    const step = Math.ceil(points.length / ticks);
    const [first, last] = [points[0].look, points.at(-1).look];
    const shown = points.filter((d, i) => i % step === 0).map((d) => d.look);
    return { domain: [first - 0.5, last + 0.5], ticks: shown, tickFormat: (i) => Format.short(names.get(i), 12), label: null };
  },

  // Shares of looks with their intervals, the band of all looks so far, and the level that is tested.
  course(figure, points, least, label) {
    const known = points.filter((d) => d.share !== null);
    const lows = known.map((d) => d.share).concat(least === null ? [] : [least], points.filter((d) => d.to > d.from && d.to - d.from < 0.5).map((d) => d.from));
    const bottom = Math.max(0, Math.min(...lows) - 0.04);
    const cut = (value) => Math.min(1, Math.max(bottom, value));
    Charts.show(figure, label, (width) => ({
      height: Math.min(320, 0.62 * width),
      marginLeft: 46, marginRight: 24, marginTop: 12, marginBottom: 40,
      x: Charts.looks(points, width),
      y: { domain: [bottom, 1], tickFormat: Format.tick, ticks: 5, grid: true, label: null },
      marks: [
        Plot.areaY(points.filter((d) => d.to >= d.from), { x: "look", y1: (d) => cut(d.from), y2: (d) => cut(d.to), fill: "var(--accent-soft)", fillOpacity: 0.45, curve: "step" }),
        least === null ? null : Plot.ruleY([least], { stroke: "var(--promise)", strokeWidth: 1.5, strokeDasharray: "5 4" }),
        ...[false, true].flatMap((alarmed) => {
          const some = known.filter((d) => d.alarmed === alarmed);
          const color = alarmed ? "var(--below)" : "var(--accent)";
          const shape = alarmed ? { symbol: "triangle", r: 5 } : { symbol: "circle", r: 3.5 };
          return [
            Plot.ruleX(some, { x: "look", y1: (d) => cut(d.low), y2: (d) => cut(d.high), stroke: color, strokeWidth: 1.5 }),
            Plot.dot(some, { x: "look", y: "share", fill: color, ...shape }),
          ];
        }),
      ],
    }));
  },

  // The logarithm of the evidence, and the line at which it raises the alarm.
  evidence(figure, points, alarm, label) {
    const values = points.map((d) => d.evidence);
    const [low, high] = [Math.floor(Math.min(-1, ...values)), Math.ceil(Math.max(alarm + 0.3, ...values))];
    const whole = d3.range(low, high + 1, Math.max(1, Math.ceil((high - low) / 6)));
    Charts.show(figure, label, (width) => ({
      height: Math.min(240, 0.5 * width),
      marginLeft: 46, marginRight: 24, marginTop: 12, marginBottom: 40,
      x: Charts.looks(points, width),
      y: { domain: [low, high], ticks: whole, tickFormat: (d) => (d < 4 ? `${Number((10 ** d).toPrecision(3))}` : `1e${d}`), grid: true, label: null },
      marks: [
        Plot.ruleY([alarm], { stroke: "var(--promise)", strokeWidth: 1.5, strokeDasharray: "5 4" }),
        Plot.lineY(points, { x: "look", y: "evidence", stroke: "var(--accent)", strokeWidth: 2 }),
        Plot.dot(points.filter((d) => !d.alarmed), { x: "look", y: "evidence", r: 3, fill: "var(--accent)" }),
        Plot.dot(points.filter((d) => d.alarmed), { x: "look", y: "evidence", r: 5, symbol: "triangle", fill: "var(--below)" }),
      ],
    }));
  },

  // Shares of the sizes of sets, stacked from the smallest.
  shares(figure, points, bins, label) {
    const rows = points.flatMap((d) => {
      let below = 0;
      return d.shares.map((share, i) => ({ look: d.look, bin: i, from: below, to: (below += share) }));
    });
    const color = (i) => d3.interpolateBlues(0.25 + (0.65 * i) / Math.max(1, bins.length - 1));
    Charts.show(figure, label, (width) => ({
      height: Math.min(300, 0.6 * width),
      marginLeft: 46, marginRight: 60, marginTop: 12, marginBottom: 40,
      x: Charts.looks(points, width),
      y: { domain: [0, 1], tickFormat: Format.tick, ticks: 5, label: null },
      marks: [
        Plot.rect(rows, { x1: (d) => d.look - 0.45, x2: (d) => d.look + 0.45, y1: "from", y2: "to", fill: (d) => color(d.bin), stroke: "var(--paper)", strokeWidth: 0.5 }),
        Plot.text(rows.filter((d) => d.look === points.at(-1).look && d.to - d.from > 0.04), { x: points.at(-1).look + 0.5, y: (d) => (d.from + d.to) / 2, text: (d) => `size ${bins[d.bin]}`, textAnchor: "start", dx: 4 }),
      ],
    }));
  },

  replies(figure, points, threshold, logarithmic, label) {
    const names = points.map((d, i) => i);
    Charts.show(figure, label, (width) => {
      const { x, ...rows } = Charts.rows(points, width);
      return {
        ...rows,
        x: logarithmic ? { ...x, label: "threshold, logarithmic", type: "log" } : { ...x, label: "threshold" },
        marks: [
          threshold === null ? null : Plot.ruleX([threshold], { stroke: "var(--promise)", strokeWidth: 1.5, strokeDasharray: "5 4" }),
          Plot.dot(names, { y: (i) => i, x: (i) => points[i].value, r: 5, fill: "var(--accent)" }),
        ],
      };
    });
  },
};
