// Statements about coverage: Theorems 2 and 3 of docs/theory.md, and other laws in closed form.
import { law, statement, utilities } from "./mechanisms.mjs";
import { doubleAbove, asFraction, doubleBelow, exp, fixed, Fraction, ln, ONE, over, sum, times, toNumber } from "./numbers.mjs";

const integers = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);

/** Theorem 2; `deficit` a fixed-point number. */
function fixedTail(deficit, { slope, rivals }) {
  const p = exp(-times(fixed(slope), deficit)), g = fixed(rivals);
  return over(times(g, p), ONE + times(g, p));
}

export const tail = (given) => toNumber(fixedTail(fixed(given.deficit), given));

/** ln(1 + G)/l. */
export const meanOvershoot = ({ slope, rivals }) => toNumber(over(ln(ONE + fixed(rivals)), fixed(slope)));

/** G = max_g (w_1 + ... + w_(g-1)) / w_g. */
export function rivals({ log_weights }) {
  const weights = log_weights.map((w) => exp(fixed(w)));
  const all = weights.slice(1).map((w, g) => over(sum(weights.slice(0, g + 1)), w));
  return doubleAbove(asFraction(all.reduce((a, b) => (a > b ? a : b))).plus(new Fraction(1n, 10n ** 60n)));
}

/** P(R >= k) for k = 1, ..., ceil(T). */
function atLeast(given) {
  return integers(1, Math.ceil(given.target)).map((k) => ONE - fixedTail(fixed(given.target) - BigInt(k - 1) * ONE, given));
}

/** E min(R, n+1) / (n+1), as a sum of P(R >= k). */
export const marginalCoverage = (given) => toNumber(sum(atLeast(given).slice(0, given.n + 1)) / BigInt(given.n + 1));

/** P(Bin(n, p) = 0), ..., P(Bin(n, p) = n); fixed-point. */
export function binomial(n, p) {
  let ways = 1n;
  const raised = (a) => integers(1, n).reduce((made, _) => [...made, times(made.at(-1), a)], [ONE]);
  const [up, down] = [raised(p), raised(ONE - p)];
  return integers(0, n).map((k) => { if (k) ways = (ways * BigInt(n - k + 1)) / BigInt(k); return ways * times(up[k], down[n - k]); });
}

/** P(R = 0) + sum_k P(R = k) P(Bin(n, level) >= k). */
export function conditionalFailure(given) {
  const chances = binomial(given.n, fixed(given.level)), ranks = atLeast(given);
  const fails = ranks.map((p, i) => (i + 1 <= given.n ? times(p - (ranks[i + 1] ?? 0n), sum(chances.slice(i + 1))) : 0n));
  return toNumber(ONE - ranks[0] + sum(fails));
}

/** L(x) in closed form (docs/theory.md, Lemma C6). */
export function sharpLoss({ x, slope, rivals }) {
  const mass = rivals * Math.exp(-slope * Math.max(x - 1, 0));
  const inverse = (d) => Math.exp(slope * Math.max(d + Math.min(x, 1) - 1, 0));
  let end = 0;
  while ((end + 2) / inverse(end + 1) > (end + 1) / inverse(end)) end++;
  let sum = Math.sqrt((end + 1) * inverse(end));
  for (;; end++) {
    const root = Math.sqrt(inverse(end + 1) - inverse(end));
    if (mass + inverse(end + 1) <= (sum + root) * root) return end + 1 - sum ** 2 / (mass + inverse(end));
    sum += root;
  }
}

/** The least coverage over every multiset of n + 1 points in m bins: what no certificate may exceed. */
export function certificate({ n, m, statement: given }) {
  const laws = new Map();
  const covers = (counts, bin) => {
    const key = String(counts);
    if (!laws.has(key)) laws.set(key, law({ utilities: utilities({ statement: given, counts }), scale: given.scale }));
    return laws.get(key).slice(bin).reduce((a, p) => a + p, 0);
  };
  const multisets = (points, bins) => (bins === 1 ? [[points]] : integers(0, points).flatMap((k) => multisets(points - k, bins - 1).map((rest) => [k, ...rest])));
  const coverage = (points) => points.reduce((a, count, bin) => a + (count ? count * covers(points.map((c, i) => c - (i === bin)), bin) : 0), 0);
  statement({ statement: given, n, m });
  return Math.min(...multisets(n + 1, m).map(coverage)) / (n + 1);
}

/** ceil((n+1)(1-alpha)), by fractions. */
export function splitRank({ alpha, n }) {
  const level = new Fraction(1n).minus(Fraction.of(alpha));
  if (level.top <= 0n || level.compare(new Fraction(1n)) >= 0) throw new Error("alpha lies between 0 and 1");
  const rank = level.times(BigInt(n + 1)).ceil();
  return rank > BigInt(n) ? Infinity : Number(rank);
}

/** k - 1 - ln k with k = eta/(1 - e^-eta), rounded up. */
export function zcdp({ range }) {
  const k = over(fixed(range), ONE - exp(-fixed(range)));
  return doubleAbove(asFraction(k - ONE - ln(k)));
}
