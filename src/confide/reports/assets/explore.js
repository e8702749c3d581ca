
"use strict";
// Sliders for the cost of privacy. The page contains the texts of every point; this script computes nothing.

(() => {
  const root = document.getElementById("explore");
  if (!root) return;
  const { values, chosen, said } = JSON.parse(document.getElementById("data").textContent);
  const place = [...chosen];
  const sliders = ["alpha", "epsilon", "records"].map((id) => root.querySelector(`#${id}`));
  const texts = [root.querySelector("#sentence"), ...root.querySelectorAll("#results dd:first-of-type")];

  function update() {
    const [a, e, n] = place;
    sliders.forEach((slider, i) => {
      const text = values[i][place[i]];
      slider.value = place[i];
      slider.setAttribute("aria-valuetext", text);
      root.querySelector(`output[for="${slider.id}"]`).textContent = text;
    });
    said[(a * values[1].length + e) * values[2].length + n].forEach((text, i) => { texts[i].textContent = text; });
    const shown = { [`epsilon-${a}-${n}`]: values[1][e], [`records-${a}-${e}`]: values[2][n].replaceAll(",", "") };
    root.querySelectorAll("[data-line]").forEach((line) => {
      const at = shown[line.dataset.line];
      line.hidden = at === undefined;
      line.querySelectorAll("circle").forEach((dot) => {
        dot.classList.toggle("now", at !== undefined && Number(dot.textContent.split(":")[0]) === Number(at));
      });
    });
  }

  sliders.forEach((slider, i) => {
    slider.max = values[i].length - 1;
    slider.addEventListener("input", () => { place[i] = Number(slider.value); update(); });
  });
  root.querySelector("#reset").addEventListener("click", () => { place.splice(0, 3, ...chosen); update(); });
  root.querySelector("fieldset").hidden = false;
  update();
})();
