
"use strict";
// The price of privacy: three sliders over a table of plans. Nothing is computed here but looked up and written out.

function explore(root, grid) {
  const { alphas, epsilons, records } = grid;
  const at = ([a, e, n]) => (a * epsilons.length + e) * records.length + n;
  const place = [...grid.chosen];
  const sliders = ["alpha", "epsilon", "records"].map((id) => root.querySelector(`#${id}`));
  const values = [alphas, epsilons, records];
  const words = [(v) => `${v}`, (v) => `${v}`, Format.count];
  const level = (a) => 1 - alphas[a];
  const coverage = (where) => grid.coverage[at(where)] / 100;
  const plain = (a, n) => grid.plain[a * records.length + n];
  const write = (id, text) => { root.querySelector(`#${id}`).textContent = text; };

  const chance = (share) => share < 0.1 ? "below 0.1\u00a0%" : `${share.toFixed(1)}\u00a0%`;

  function rank(where) {
    const target = grid.target[at(where)];
    if (target === null) return "none serves: the answer is +∞";
    const over = target > records[where[2]] ? ", above n: +∞ is the likely answer" : "";
    return `${target.toFixed(2)}${over}`;
  }

  function results() {
    const [a, e, n] = place;
    const extra = grid.excess[at(place)].toFixed(1);
    const expected = `${grid.coverage[at(place)].toFixed(2)}\u00a0%`;
    const beyond = grid.beyond[at(place)];
    const needed = grid.needed[a * epsilons.length + e];
    write("coverage", `${expected}, where ${Format.tick(level(a))} is asked for`);
    write("excess", `${extra} records more covered than asked for`);
    write("most", `${grid.most[at(place)].toFixed(2)}\u00a0%, for continuous scores`);
    write("target", rank(place));
    write("plain", plain(a, n) === null ? "+∞" : Format.count(plain(a, n)));
    write("chances", `${chance(grid.all[at(place)])} for +∞; ${chance(beyond)} for +∞ or a threshold beyond all scores`);
    if (grid.pilot) write("on-pilot", grid.pilot[at(place)]);
    write("gaps", grid.desert[at(place)] === null ? "every one: the answer is +∞" : `half of the candidates without scores, if that begins within ${Format.count(grid.desert[at(place)])} ranks after the one without privacy`);
    write("needed", `about ${Format.count(needed)}; with fewer, more than 1 calibration in 100 gives a useless threshold (+∞, or above every score)`);
    const short = beyond >= 50
      ? `The answer is likely to be +∞, which excludes nothing, or a threshold beyond all scores: about ${Format.count(needed)} records are needed.`
      : beyond > 1
      ? `In ${chance(beyond)} of all draws the threshold is +∞ or lies beyond all scores: about ${Format.count(needed)} records are needed to make that rare.`
      : `Privacy costs as much as covering ${extra} records more than asked for.`;
    write("sentence", `With ${Format.count(records[n])} records and ε = ${epsilons[e]}, expect a coverage of ${expected} where ${Format.tick(level(a))} is asked for. ${short}`);
  }

  const row = (where, x) => ({ x, y: coverage(where), plain: grid.alone[where[0] * records.length + where[2]] / 100, where });

  function table(figure, rows, head) {
    const box = figure.querySelector(".scroll");
    const made = document.createElement("table");
    made.className = "numeric";
    const add = (parent, tag, text, scope) => {
      const cell = parent.appendChild(document.createElement(tag));
      if (text !== undefined) cell.textContent = text;
      if (scope) cell.scope = scope;
      return cell;
    };
    add(made, "caption", box.getAttribute("aria-label"));
    const top = add(add(made, "thead"), "tr");
    for (const name of [head, "Expected coverage", "Records more covered", "Without privacy"]) add(top, "th", name, "col");
    const body = add(made, "tbody");
    for (const one of rows) {
      const line = add(body, "tr");
      add(line, "th", head === "n" ? Format.count(one.x) : `${one.x}`, "row");
      add(line, "td", `${grid.coverage[at(one.where)].toFixed(2)}\u00a0%`);
      add(line, "td", grid.excess[at(one.where)].toFixed(1));
      add(line, "td", `${(grid.alone[one.where[0] * records.length + one.where[2]]).toFixed(2)}\u00a0%`);
    }
    box.replaceChildren(made);
  }

  function draw() {
    const [a, e, n] = place;
    const byLoss = epsilons.map((loss, i) => row([a, i, n], loss));
    const bySize = records.map((size, i) => row([a, e, i], size));
    const [first, second] = [root.querySelector("#by-epsilon"), root.querySelector("#by-records")];
    Charts.cost(first, byLoss, e, level(a), "ε");
    Charts.cost(second, bySize, n, level(a), "n");
    table(first, byLoss, "ε");
    table(second, bySize, "n");
  }

  function update() {
    sliders.forEach((slider, i) => {
      const text = words[i](values[i][place[i]]);
      slider.value = place[i];
      slider.setAttribute("aria-valuetext", text);
      root.querySelector(`output[for="${slider.id}"]`).textContent = text;
    });
    results();
    draw();
  }

  sliders.forEach((slider, i) => {
    slider.max = values[i].length - 1;
    slider.addEventListener("input", () => { place[i] = Number(slider.value); update(); });
  });
  root.querySelector("#reset").addEventListener("click", () => { place.splice(0, 3, ...grid.chosen); update(); });
  root.hidden = false;
  update();
}
