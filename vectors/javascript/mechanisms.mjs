// What the numbers of a statement mean, utilities, and the exact law (docs/theory.md, section 2).
import { asFraction, doubleAbove, exp, fixed, Fraction, ln, ONE, over, sum, times, toNumber } from "./numbers.mjs";

const ZERO = new Fraction(0n), larger = (...values) => values.reduce((a, b) => (a.compare(b) >= 0 ? a : b));

function read(statement) {
  const one = { head_start: 0, fade: 0, flat: "0", rise: 0, ...statement };
  const [rate, offset, flat] = [one.rate, one.offset, one.flat].map(Fraction.of);
  const common = (a, b) => { let [x, y] = [a, b]; while (y) [x, y] = [y, x % y]; return (a / x) * b; };
  return { ...one, rate, offset, flat, unit: common(rate.bottom, offset.bottom) };
}

const targetOf = (one, n) => one.rate.times(BigInt(n + 1)).plus(one.offset);
const aheadOf = (one, n) => Math.max(0, one.head_start - one.fade * n);

/** Candidate j of m is rise (j - flat)_+ / (m - flat) ahead, rounded down. */
function heights(one, m) {
  return Array.from({ length: m }, (_, i) => {
    const beyond = Fraction.of(BigInt(i + 1)).minus(one.flat).positive();
    return beyond.times(BigInt(one.rise)).over(Fraction.of(BigInt(m)).minus(one.flat)).floor();
  });
}

/** Theorem 1: the range distance of replacing, and of adding, one record. */
function ranges(one) {
  const [left, right, fade] = [one.left, one.right, one.head_start ? one.fade : 0].map((x) => Fraction.of(BigInt(x)));
  const both = left.plus(right).times(one.unit), down = new Fraction(1n).minus(one.rate);
  return [both, larger(left.times(one.unit), right.times(one.unit).plus(fade), both.times(one.rate), both.times(down).plus(fade))];
}

export function statement({ statement: given, n, m }) {
  const one = read(given), scale = Fraction.of(one.scale), [replace, add] = ranges(one);
  const slope = (x) => new Fraction(BigInt(x) * one.unit).over(scale).toNumber();
  return {
    unit: Number(one.unit), slope_left: slope(one.left), slope_right: slope(one.right), target: String(targetOf(one, n)),
    heights: heights(one, m).map(Number), head_start: aheadOf(one, n),
    replace_one: doubleAbove(replace.over(scale)), add_remove: doubleAbove(add.over(scale)),
  };
}

export function scale({ range_distance, epsilon }) {
  return doubleAbove(Fraction.of(BigInt(range_distance)).over(Fraction.of(epsilon)));
}

export function utilities({ statement: given, counts }) {
  const one = read(given), n = counts.reduce((a, b) => a + b, 0), target = targetOf(one, n), last = counts.length - 1;
  let below = 0;
  return heights(one, counts.length).map((height, j) => {
    const beyond = Fraction.of(BigInt(below)).minus(target).positive().times(one.unit * BigInt(one.right));
    below += counts[j];
    const short = target.minus(BigInt(below)).positive().times(one.unit * BigInt(one.left));
    const penalty = j < last ? larger(beyond, short) : beyond;
    return Number(Fraction.of(height).minus(penalty).plus(BigInt(j < last ? 0 : aheadOf(one, n))).floor());
  });
}

/** w_j / sum w; fixed-point. */
const lawOf = (weights) => weights.map((w) => over(w, sum(weights)));

function fixedLaw({ utilities: given, scale: by }) {
  const best = Math.max(...given), width = Fraction.of(by);
  return lawOf(given.map((u) => exp(fixed(Fraction.of(u).minus(Fraction.of(best)).over(width)))));
}

export const law = (given) => fixedLaw(given).map(toNumber);
export const lawOfWeights = ({ weights }) => lawOf(weights.map(fixed)).map(toNumber);

export function loss({ statement: given, counts, neighbour }) {
  const logs = [counts, neighbour].map((h) => fixedLaw({ utilities: utilities({ statement: given, counts: h }), scale: given.scale }).map(ln));
  const one = read(given), total = (h) => h.reduce((a, b) => a + b, 0);
  const range = ranges(one)[total(counts) === total(neighbour) ? 0 : 1];
  const worst = logs[0].map((p, j) => asFraction(p - logs[1][j]).abs()).reduce((a, b) => larger(a, b), ZERO);
  return { log_ratio: worst.toNumber(), at_most: doubleAbove(range.over(Fraction.of(given.scale))) };
}
