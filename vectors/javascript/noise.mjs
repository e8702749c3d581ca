// Discrete Laplace noise, intervals that account for it, and bets of a watch (docs/theory-after-release.md).
import { binomial } from "./guarantees.mjs";
import { exp, fixed, ln, ONE, over, power, sum, times, toNumber } from "./numbers.mjs";

const integers = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);

/** P(z) = (1 - r)/(1 + r) r^|z| with r = e^-epsilon, for |z| <= reach; fixed-point. */
function one(epsilon, reach) {
  const r = exp(-fixed(epsilon)), first = over(ONE - r, ONE + r);
  const half = integers(1, reach).reduce((made, _) => [...made, times(made.at(-1), r)], [first]);
  return [...half.slice(1).reverse(), ...half];
}

const convolved = (a, b) => integers(0, a.length + b.length - 2).map((k) => sum(integers(Math.max(0, k - b.length + 1), Math.min(k, a.length - 1)).map((i) => times(a[i], b[k - i]))));

export function noiseLaw({ epsilon, noises, values }) {
  const reach = Math.ceil(45 / epsilon), own = one(epsilon, reach);
  const law = integers(2, noises).reduce((made) => convolved(made, own), own), middle = (law.length - 1) / 2;
  return values.map((v) => toNumber(law[middle + v] ?? 0n));
}

/** E exp(sZ) = 1/(1 - (sinh(s/2)/sinh(epsilon/2))^2). */
function fixedLogMgf(s, epsilon) {
  if (Math.abs(toNumber(s)) >= epsilon) throw new Error("no mean exists");
  const sinh = (x) => { const e = exp(x < 0n ? -x : x); return (e - over(ONE, e)) / 2n; };
  const ratio = over(sinh(s / 2n), sinh(fixed(epsilon) / 2n));
  return -ln(ONE - times(ratio, ratio));
}

export const logMgf = ({ epsilon, s }) => toNumber(fixedLogMgf(fixed(s), epsilon));

/** The largest p in [0, 1] that fits, within 1e-12. */
function bisected(fits) {
  let [low, high] = [0n, ONE];
  for (let i = 0; i < 40; i += 1) { const middle = (low + high) / 2n; [low, high] = fits(middle) ? [middle, high] : [low, middle]; }
  return toNumber(low);
}

export function coverageOfCounts({ hits, n, confidence }) {
  const error = (ONE - fixed(confidence)) / 2n;
  const low = (k) => (k === 0 ? 0 : bisected((p) => sum(binomial(n, p).slice(k)) <= error));
  return [low(hits), 1 - low(n - hits)];
}

/** One noisy count of covered records of a public number: the p with P(C + Z >= count) = error/2, and its mirror. */
export function noisyInterval({ covered, size, epsilon, error }) {
  if (!Number.isInteger(covered)) throw new Error("a count is an integer");
  const r = exp(-fixed(epsilon)), raised = (k) => power(r, BigInt(k) * ONE), half = fixed(error) / 2n;
  const beyond = (z) => (z > 0 ? over(raised(z), ONE + r) : ONE - over(raised(1 - z), ONE + r));
  const low = (x) => {
    const tails = integers(0, size).map((c) => beyond(x - c));
    return bisected((p) => sum(binomial(size, p).map((b, c) => times(b, tails[c]))) <= half);
  };
  return [low(covered), 1 - low(size - covered)];
}

function bet(p0, p1, epsilon, person = 1) {
  const [a, b] = [fixed(p0), fixed(p1)], k = BigInt(person);
  const s = ln(over(a, b)) / k, u = ln(over(ONE - b, ONE - a)) / k;
  const price = fixedLogMgf(s, epsilon) + fixedLogMgf(u, epsilon);
  return (x, y) => -s * BigInt(x) + u * BigInt(y) - price;
}

export const logEValue = ({ p0, p1, epsilon, per_person, counts }) => counts.map(([x, y]) => toNumber(bet(p0, p1, epsilon, per_person)(x, y)));

const entering = (look, looks) => looks / ((looks + look - 1) * (looks + look)), cash = (look, looks) => looks / (looks + look);
export const stake = ({ look, looks }) => [entering(look, looks), cash(look, looks)];

/** ln( mean of the bets' stakes + cash ) after each look; a stake enters at every look. */
export function evidence({ p0, bets, epsilon, looks, counts }) {
  const each = bets.map((p1) => bet(p0, p1, epsilon)), held = bets.map(() => 0n);
  return counts.map(([x, y], i) => {
    each.forEach((one_, k) => { held[k] = times(held[k] + fixed(entering(i + 1, looks)), exp(one_(x, y))); });
    return toNumber(ln(sum(held) / BigInt(held.length) + fixed(cash(i + 1, looks))));
  });
}
