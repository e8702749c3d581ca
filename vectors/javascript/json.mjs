// Strict JSON that keeps integers exact and knows an integer from a float, and the canonical text of a value.
//
// Objects become Map, integers BigInt, floats Number: 1 and 1.0 are different texts, and a checksum tells them apart.

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;

/** The value of a text; refuses fields that stand twice, NaN, halves of surrogate pairs, and what is no JSON. */
export function parse(text) {
  let at = 0;
  const fail = () => { throw new Error("not strict JSON"); };
  const match = (pattern) => { pattern.lastIndex = at; const found = pattern.exec(text); if (found) at += found[0].length; return found; };
  const space = () => match(SPACE);
  const taken = (mark) => { space(); if (text[at] !== mark) return false; at += 1; return true; };
  const string = () => {
    const found = match(STRING) ?? fail(), value = JSON.parse(found[0]);
    return /\p{Surrogate}/u.test(value) ? fail() : value;
  };
  const value = () => {
    space();
    if (text[at] === '"') return string();
    if (taken("{")) {
      const made = new Map();
      if (taken("}")) return made;
      do {
        space();
        const key = string();
        if (made.has(key) || !taken(":")) fail();
        made.set(key, value());
      } while (taken(","));
      return taken("}") ? made : fail();
    }
    if (taken("[")) {
      const made = [];
      if (taken("]")) return made;
      do made.push(value()); while (taken(","));
      return taken("]") ? made : fail();
    }
    for (const [word, meant] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, at)) { at += word.length; return meant; }
    }
    const [digits, decimals, exponent] = match(NUMBER) ?? fail();
    if (decimals === undefined && exponent === undefined) return BigInt(digits);
    const number = Number(digits);
    return Number.isFinite(number) ? number : fail();
  };
  const whole = value();
  space();
  return at === text.length ? whole : fail();
}

/** Sorted keys (by code points), no spaces, ASCII; floats in the fewest digits, with ".0" or an exponent. */
export function canonical(value) {
  if (value instanceof Map) {
    const keys = [...value.keys()].sort(byCodePoints);
    return `{${keys.map((key) => `${quoted(key)}:${canonical(value.get(key))}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "string") return quoted(value);
  return typeof value === "number" ? float(value) : String(value);
}

/** The same with indentation, as files and messages are written. */
export function indented(value, width, depth = 0) {
  const pad = "\n" + " ".repeat(width * (depth + 1)), end = "\n" + " ".repeat(width * depth);
  const inner = (one) => indented(one, width, depth + 1);
  if (value instanceof Map && value.size) return `{${pad}${[...value].map(([key, one]) => `${quoted(key)}: ${inner(one)}`).join("," + pad)}${end}}`;
  if (Array.isArray(value) && value.length) return `[${pad}${value.map(inner).join("," + pad)}${end}]`;
  return canonical(value);
}

/** Maps and BigInts to plain objects and numbers, where every integer is a safe one. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [key, plain(one)]));
  if (Array.isArray(value)) return value.map(plain);
  return typeof value === "bigint" ? Number(value) : value;
}

function byCodePoints(a, b) {
  const [one, other] = [[...a], [...b]].map((text) => text.map((c) => c.codePointAt(0)));
  for (let i = 0; i < Math.min(one.length, other.length); i += 1) if (one[i] !== other[i]) return one[i] - other[i];
  return one.length - other.length;
}

const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function float(value) {
  if (Object.is(value, -0)) return "-0.0";
  const [digits, power] = value.toExponential().split("e");
  if (value !== 0 && (Number(power) < -4 || Number(power) >= 16)) {
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  const shown = String(value);
  return shown.includes(".") ? shown : `${shown}.0`;
}
