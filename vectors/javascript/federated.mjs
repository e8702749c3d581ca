// Signed messages, identities and masks of a federation, and ranks of ranks (docs/vectors.md).
import { createCipheriv, createPrivateKey, createPublicKey, diffieHellman, hkdfSync, sign, verify } from "node:crypto";
import { sha256 } from "./files.mjs";
import { Fraction } from "./numbers.mjs";

const hex = (text) => Buffer.from(text, "hex");
const DER = { ed25519: "70", x25519: "6e" };
const privateKey = (kind, raw) => createPrivateKey({ key: Buffer.concat([hex(`302e020100300506032b65${DER[kind]}04220420`), raw]), format: "der", type: "pkcs8" });
const publicKey = (kind, raw) => createPublicKey({ key: Buffer.concat([hex(`302a300506032b65${DER[kind]}032100`), raw]), format: "der", type: "spki" });
const publicOf = (key) => createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

const typeOf = (kind) => `application/vnd.confide.federated.${kind}+json; schema=1`;
const bytesOf = (kind, payload) => {
  const type = Buffer.from(typeOf(kind));
  return Buffer.concat([Buffer.from(`DSSEv1 ${type.length} `), type, Buffer.from(` ${payload.length} `), payload]);
};

export const signedBytes = ({ kind, payload }) => bytesOf(kind, Buffer.from(payload)).toString();

export function seal({ kind, payload, signing }) {
  const key = privateKey("ed25519", hex(signing)), bytes = Buffer.from(payload);
  const signatures = [{ keyid: publicOf(key), sig: sign(null, bytesOf(kind, bytes), key).toString("base64") }];
  return `${JSON.stringify({ payloadType: typeOf(kind), payload: bytes.toString("base64"), signatures }, null, 1)}\n`;
}

export function unseal({ kind, text }) {
  const message = JSON.parse(text);
  if (Object.keys(message).sort().join() !== "payload,payloadType,signatures") throw new Error("other fields");
  if (message.payloadType !== typeOf(kind)) throw new Error("another kind or schema");
  if (message.signatures.length !== 1) throw new Error("another number of signatures");
  const [{ keyid: signer, sig }] = message.signatures, payload = Buffer.from(message.payload, "base64");
  if (!verify(null, bytesOf(kind, payload), publicKey("ed25519", hex(signer)), Buffer.from(sig, "base64"))) throw new Error("altered");
  return { signer, silo: JSON.parse(payload).silo };
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

