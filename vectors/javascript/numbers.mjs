// Numbers of the vectors: exact fractions of BigInt, and fixed-point decimals with 80 digits for exp, ln and powers.

const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };

/** An exact fraction. */
export class Fraction {
  constructor(top, bottom = 1n) {
    if (bottom < 0n) [top, bottom] = [-top, -bottom];
    if (bottom === 0n) throw new Error("a fraction has the denominator 0");
    const common = gcd(top, bottom) || 1n;
    this.top = top / common;
    this.bottom = bottom / common;
  }

  /** Of a double (exactly), a BigInt, or a text such as "1/3", "0.05", "1e-30". */
  static of(value) {
    if (value instanceof Fraction) return value;
    if (typeof value === "bigint") return new Fraction(value);
    if (typeof value === "number") return ofDouble(value);
    const found = /^([+-]?)(\d+)(?:\/(\d+)|(?:\.(\d+))?(?:e([+-]?\d+))?)$/i.exec(value);
    if (!found) throw new Error("not a number");
    const [, sign, whole, bottom, decimals = "", power = "0"] = found;
    const one = sign === "-" ? -1n : 1n;
    if (bottom !== undefined) return new Fraction(one * BigInt(whole), BigInt(bottom));
    const digits = BigInt(whole + decimals) * one, shift = BigInt(power) - BigInt(decimals.length);
    return shift >= 0n ? new Fraction(digits * 10n ** shift) : new Fraction(digits, 10n ** -shift);
  }

  plus(other) { const b = Fraction.of(other); return new Fraction(this.top * b.bottom + b.top * this.bottom, this.bottom * b.bottom); }
  minus(other) { const b = Fraction.of(other); return this.plus(new Fraction(-b.top, b.bottom)); }
  times(other) { const b = Fraction.of(other); return new Fraction(this.top * b.top, this.bottom * b.bottom); }
  over(other) { const b = Fraction.of(other); return new Fraction(this.top * b.bottom, this.bottom * b.top); }
  compare(other) { const d = this.minus(other).top; return d < 0n ? -1 : d > 0n ? 1 : 0; }
  abs() { return new Fraction(this.top < 0n ? -this.top : this.top, this.bottom); }
  positive() { return this.top > 0n ? this : new Fraction(0n); }
  floor() { const q = this.top / this.bottom; return this.top % this.bottom < 0n ? q - 1n : q; }
  ceil() { return -new Fraction(-this.top, this.bottom).floor(); }
  toString() { return this.bottom === 1n ? `${this.top}` : `${this.top}/${this.bottom}`; }

  /** The nearest double, ties to even. */
  toNumber() {
    if (this.top === 0n) return 0;
    const top = this.top < 0n ? -this.top : this.top, length = (n) => n.toString(2).length;
    const shift = Math.max(length(top) - length(this.bottom) - 55, -1076); // 55 bits or more, or down to the smallest
    const [dividend, divisor] = shift < 0 ? [top << BigInt(-shift), this.bottom] : [top, this.bottom << BigInt(shift)];
    const digits = dividend / divisor, drop = Math.max(length(digits) - 53, -1074 - shift), cut = BigInt(drop);
    const rest = ((digits & ((1n << cut) - 1n)) << 1n) | (dividend % divisor ? 1n : 0n), half = 1n << cut;
    const kept = digits >> cut, up = rest > half || (rest === half && kept & 1n) ? 1n : 0n;
    const size = Number(kept + up) * 2 ** (shift + drop);
    return this.top < 0n ? -size : size;
  }
}

const view = new DataView(new ArrayBuffer(8));

function ofDouble(value) {
  if (!Number.isFinite(value)) throw new Error("not a finite number");
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0), power = Number((bits >> 52n) & 0x7ffn), part = bits & ((1n << 52n) - 1n);
  const digits = (power ? part | (1n << 52n) : part) * (bits >> 63n ? -1n : 1n), shift = (power || 1) - 1075;
  return shift >= 0 ? new Fraction(digits << BigInt(shift)) : new Fraction(digits, 1n << BigInt(-shift));
}

/** The next double above, and below. */
export function nextUp(value) {
  if (value === Infinity) return value;
  if (value === 0) return Number.MIN_VALUE;
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? 1n : -1n));
  return view.getFloat64(0);
}
export const nextDown = (value) => -nextUp(-value);

/** The smallest double that is at least a fraction, and the largest that is at most. */
export function doubleAbove(exact) {
  const value = exact.toNumber();
  return Fraction.of(value).compare(exact) >= 0 ? value : nextUp(value);
}
export const doubleBelow = (exact) => -doubleAbove(new Fraction(-exact.top, exact.bottom));

// Fixed-point decimals: a BigInt counts units of 10^-80.
export const ONE = 10n ** 80n;
export const fixed = (value) => { const f = Fraction.of(value); return (f.top * ONE) / f.bottom; };
export const times = (a, b) => (a * b) / ONE;
export const over = (a, b) => (a * ONE) / b;
export const asFraction = (a) => new Fraction(a, ONE);
export const toNumber = (a) => asFraction(a).toNumber();

/** e^a, by halving the argument and the power series. */
export function exp(a) {
  if (a < 0n) return over(ONE, exp(-a)); // loses digits only where the result is below 10^-80 anyway
  let halvings = 0n;
  while (a >> halvings > ONE / 64n) halvings += 1n;
  const small = a >> halvings;
  let sum = ONE, term = ONE;
  for (let k = 1n; term; k += 1n) { term = times(term, small) / k; sum += term; }
  for (let k = 0n; k < halvings; k += 1n) sum = times(sum, sum);
  return sum;
}

/** ln a for a > 0, by Newton's steps on e^y = a from the double. */
export function ln(a) {
  if (a <= 0n) throw new Error("no logarithm");
  let y = fixed(Math.log(toNumber(a)));
  for (let k = 0; k < 4; k += 1) { const e = exp(y); y += (2n * ONE * (a - e)) / (a + e); }
  return y;
}

export const power = (a, b) => (a === 0n ? 0n : exp(times(b, ln(a))));
export const sum = (values) => values.reduce((a, b) => a + b, 0n);
