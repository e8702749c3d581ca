// Signed messages, identities, masks, shares and boxes of a federation, and ranks of ranks (docs/vectors.md).
import { createCipheriv, createDecipheriv, createPrivateKey, createPublicKey, diffieHellman, hkdfSync, sign, verify } from "node:crypto";
import { canonical, indented, parse } from "./json.mjs";
import { sha256 } from "./files.mjs";
import { Fraction } from "./numbers.mjs";

const hex = (text) => Buffer.from(text, "hex");
const DER = { ed25519: "70", x25519: "6e" };
const privateKey = (kind, raw) => createPrivateKey({ key: Buffer.concat([hex(`302e020100300506032b65${DER[kind]}04220420`), raw]), format: "der", type: "pkcs8" });
const publicKey = (kind, raw) => createPublicKey({ key: Buffer.concat([hex(`302a300506032b65${DER[kind]}032100`), raw]), format: "der", type: "spki" });
const publicOf = (key) => createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

// Values of a vector's JSON are integers, texts and words: no float stands in a message here.
const asMap = (value) => {
  if (Array.isArray(value)) return value.map(asMap);
  if (value !== null && typeof value === "object") return new Map(Object.entries(value).map(([key, one]) => [key, asMap(one)]));
  return typeof value === "number" ? BigInt(value) : value;
};

const head = (kind, content) => new Map([["kind", `confide/federated.${kind}`], ["schema", 1n], ["content", content]]);

export const signedBytes = ({ kind, content }) => canonical(head(kind, asMap(content)));

export function seal({ kind, content, signing }) {
  const key = privateKey("ed25519", hex(signing)), message = head(kind, asMap(content));
  const signature = sign(null, Buffer.from(canonical(message)), key).toString("hex");
  return `${indented(new Map([...message, ["signer", publicOf(key)], ["signature", signature]]), 1)}\n`;
}

export function unseal({ kind, text }) {
  const message = parse(text), content = message.get("content"), right = head(kind, content);
  if ([...message.keys()].sort().join() !== "content,kind,schema,signature,signer") throw new Error("other fields");
  if (message.get("kind") !== right.get("kind") || message.get("schema") !== right.get("schema")) throw new Error("another kind or schema");
  const signer = message.get("signer");
  if (!verify(null, Buffer.from(canonical(right)), publicKey("ed25519", hex(signer)), hex(message.get("signature")))) throw new Error("altered");
  return { signer, silo: content.get("silo") };
}

export const publicKeys = ({ signing, agreement }) => [publicOf(privateKey("ed25519", hex(signing))), publicOf(privateKey("x25519", hex(agreement)))];
export const identity = ({ name, signing, agreement }) => sha256(`confide/federated/identity/1\n${name}\n`, hex(signing), hex(agreement));
export const roster = ({ identities }) => sha256("confide/federated/roster/1\n", ...[...identities].sort().map(hex));

export function fingerprint({ digest, groups }) {
  const digits = (BigInt(`0x${digest}`) % 10n ** BigInt(5 * groups)).toString().padStart(5 * groups, "0");
  return digits.match(/.{5}/g).join(" ");
}

const agreed = (own, other) => diffieHellman({ privateKey: privateKey("x25519", hex(own)), publicKey: publicKey("x25519", hex(other)) });
const derived = (secret, info) => Buffer.from(hkdfSync("sha256", secret, "", info, 32));

export function mask({ values, agreement, own, roster: keys, context, bits }) {
  if (!keys.includes(own) || new Set(keys).size !== keys.length) throw new Error("the roster names every silo once");
  const size = bits / 8, total = values.map(BigInt);
  for (const other of keys.filter((key) => key !== own)) {
    const pair = [own, other].sort().map(hex);
    const info = Buffer.concat([Buffer.from(`confide/federated/secure-sum/1|${context}|`), pair[0], Buffer.from("|"), pair[1]]);
    const stream = createCipheriv("chacha20", derived(agreed(agreement, other), info), Buffer.alloc(16)).update(Buffer.alloc(size * values.length));
    values.forEach((_, i) => { const word = size === 4 ? BigInt(stream.readUInt32LE(4 * i)) : stream.readBigUInt64LE(8 * i); total[i] += own < other ? word : -word; });
  }
  return total.map((one) => String(BigInt.asUintN(bits, one)));
}

export function openSum({ masked, bits }) {
  return masked[0].map((_, i) => Number(BigInt.asIntN(bits, masked.reduce((total, row) => total + BigInt(row[i]), 0n))));
}

// Shamir's shares modulo 2^61 - 1.
const P = 2n ** 61n - 1n, modulo = (a) => ((a % P) + P) % P;

function inverse(a) {
  let [result, base, power] = [1n, modulo(a), P - 2n];
  for (; power; power >>= 1n) { if (power & 1n) result = (result * base) % P; base = (base * base) % P; }
  return result;
}

/** The polynomial through the shares at these points, at x (Lagrange). */
function at(shares, points, x) {
  const weights = points.map((p) => points.filter((q) => q !== p).reduce((w, q) => modulo(w * modulo(x - q) * inverse(p - q)), 1n));
  return shares.get(points[0]).map((_, i) => points.reduce((total, p, k) => modulo(total + weights[k] * shares.get(p)[i]), 0n));
}

export function combine({ shares: given, threshold }) {
  const shares = new Map(Object.entries(given).map(([x, row]) => [BigInt(x), row.map(BigInt)]));
  const points = [...shares.keys()].sort((a, b) => Number(a - b));
  if (points.length < threshold) throw new Error("too few shares");
  const fit = (some) => some.slice(threshold).every((x) => at(shares, some.slice(0, threshold), x).join() === shares.get(x).join());
  const without = (x) => points.filter((other) => other !== x);
  let [kept, wrong] = [points, null];
  if (!fit(points)) {
    const suspects = points.length >= threshold + 2 ? points.filter((x) => fit(without(x))) : [];
    if (suspects.length !== 1) throw new Error("the shares contradict each other");
    [kept, wrong] = [without(suspects[0]), Number(suspects[0])];
  }
  const values = at(shares, kept.slice(0, threshold), 0n).map((v) => Number(v > P / 2n ? v - P : v));
  return { values, wrong };
}

export function readShare({ box, size, own, agreement, dealer, ephemeral, context }) {
  const secret = Buffer.concat([agreed(agreement, ephemeral), agreed(agreement, dealer)]);
  const info = `confide/federated/sum-share/1|${context}|${ephemeral}|${dealer}|${own}`;
  const sealed = Buffer.from(box, "base64"), cipher = createDecipheriv("chacha20-poly1305", derived(secret, info), Buffer.alloc(12), { authTagLength: 16 });
  cipher.setAuthTag(sealed.subarray(-16));
  const plain = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
  if (plain.length !== 8 * size) throw new Error("another number of elements");
  return Array.from({ length: size }, (_, i) => { const v = plain.readBigUInt64LE(8 * i); if (v >= P) throw new Error("no element"); return String(v); });
}

// Polynomials in t with exact coefficients.
const ZERO = new Fraction(0n), choose = (n, k) => Array.from({ length: k }, (_, i) => BigInt(i)).reduce((c, i) => (c * (BigInt(n) - i)) / (i + 1n), 1n);
const plus = (a, b) => Array.from({ length: Math.max(a.length, b.length) }, (_, i) => (a[i] ?? ZERO).plus(b[i] ?? ZERO));
const product = (a, b) => a.reduce((made, x, i) => plus(made, [...Array(i).fill(ZERO), ...b.map((y) => x.times(y))]), []);

/** 1 - int_0^1 P(at least k replies are at most t) dt; a reply is the rank-th smallest of n uniform numbers. */
export function rankOfRanks({ replies, k }) {
  let number = [[new Fraction(1n)]]; // how likely 0, 1, 2, ... replies are at most t
  for (const { n, rank } of replies) {
    let low = [ZERO];
    for (let i = rank; i <= n; i += 1) for (let j = 0; j <= n - i; j += 1) low = plus(low, [...Array(i + j).fill(ZERO), new Fraction(choose(n, i) * choose(n - i, j) * (j % 2 ? -1n : 1n))]);
    const high = plus([new Fraction(1n)], low.map((c) => ZERO.minus(c)));
    number = Array.from({ length: number.length + 1 }, (_, i) => plus(i < number.length ? product(number[i], high) : [ZERO], i ? product(number[i - 1], low) : [ZERO]));
  }
  const missed = number.slice(k).flat(0).map((one) => one.reduce((total, c, power) => total.plus(c.over(BigInt(power + 1))), ZERO)).reduce((a, b) => a.plus(b), ZERO);
  return new Fraction(1n).minus(missed).toNumber();
}

