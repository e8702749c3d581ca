// `node --test vectors/javascript/reader.test.mjs`: every vector holds or is left out with a reason, and a changed one is noticed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { agrees, check, NOT_CHECKED, subjects } from "./reader.mjs";
import { exp, fixed, Fraction, ln, ONE, toNumber } from "./numbers.mjs";

const all = subjects();

for (const { subject, cases } of all) {
  test(`${subject}: every vector holds`, () => {
    assert.deepEqual(cases.filter((one) => check(one) === false).map((one) => one.id), []);
  });
}

test("what is left out is what is said to be", () => {
  const left = all.flatMap(({ cases }) => cases.filter((one) => check(one) === null));
  assert.equal(left.length, 14);
  assert.deepEqual(new Set(left.map((one) => one.operation)), new Set(Object.keys(NOT_CHECKED)));
});

/** The same value with its first number, text or word changed. */
function changed(value) {
  if (Array.isArray(value)) return value.length ? [changed(value[0]), ...value.slice(1)] : [0];
  if (value !== null && typeof value === "object") { const [[key, one], ...rest] = Object.entries(value); return { [key]: changed(one), ...Object.fromEntries(rest) }; }
  if (typeof value === "number") return value ? value * 1.5 : 1;
  if (typeof value === "boolean") return !value;
  if (/^-?[\d.]+(e-?\d+)?$/.test(value)) return String(Number(value) * 1.5 + 1);
  return value === null ? 1 : `${value}1`;
}

for (const { subject, cases } of all) {
  test(`${subject}: a changed expected value is noticed, in every case`, () => {
    const checked = cases.filter((one) => check(one) !== null);
    assert(checked.length > 0);
    for (const one of checked) {
      const { refused, expected, tolerance, ...rest } = one;
      const other = refused ? { ...rest, expected: 0, tolerance: { absolute: 1e9 } } : { ...rest, expected: changed(expected), tolerance };
      assert.equal(check(other), false, one.id);
      assert.equal(check({ ...rest, refused: refused ? undefined : true, expected: 0, tolerance: 0 }), false, one.id);
    }
  });
}

test("numbers: fractions become the nearest double, and decimals keep their digits", () => {
  for (const value of [0.1, -2.5, 5e-324, 1.7976931348623157e308, 2 ** 53 - 1, 1e-310, 2.2250738585072014e-308]) assert.equal(Fraction.of(value).toNumber(), value);
  assert.equal(Fraction.of("1/3").toNumber(), 1 / 3);
  assert.equal(new Fraction(2n ** 53n + 1n).toNumber(), 2 ** 53);
  assert.equal(new Fraction(2n ** 53n + 3n).toNumber(), 2 ** 53 + 4);
  assert.equal(toNumber(exp(ONE)), Math.E);
  const error = ln(exp(fixed("5/7"))) - fixed("5/7");
  assert(error * error < 10n ** 20n);
  assert(agrees(1.0000001, "1", { above: 1e-6 }) && !agrees(0.9999999, "1", { above: 1e-6 }) && !agrees("1", 1, 0));
});
