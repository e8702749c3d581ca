// What of a page cannot be seen: boxes that hide what is wider than they are, and what sticks out of the page.
// On paper nothing scrolls, so that a box that scrolls is cut, too.
(paper) => {
  const found = [];
  const name = (one) => `${one.tagName.toLowerCase()}${one.className && one.className.split ? "." + one.className.split(" ")[0] : ""} "${one.textContent.trim().slice(0, 40)}"`;
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const article = document.querySelector("main");
  const scrolls = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX);
  for (const one of article.querySelectorAll("*")) {
    if (one.closest("svg, math, .visually-hidden, .headerlink") || !one.offsetWidth) continue;
    const style = getComputedStyle(one);
    if (style.display === "inline" || style.visibility === "hidden") continue;
    const over = one.scrollWidth - one.clientWidth;
    const hides = /hidden|clip/.test(style.overflowX) || (paper && scrolls(one));
    if (over > 1 && one.clientWidth && hides) found.push(`${name(one)} hides ${over} pixels`);
    let box = one.parentElement;
    while (box !== article && !scrolls(box)) box = box.parentElement;
    const out = one.getBoundingClientRect().right - box.getBoundingClientRect().right;
    if (box === article && out > 1 && !found.length) found.push(`${name(one)} sticks out by ${Math.round(out)} pixels`);
  }
  return found.slice(0, 3);
}
