// Files of releases and ledgers: canonical text, checksum, the chain of seals (docs/vectors.md).
import { createHash } from "node:crypto";
import { canonical, parse } from "./json.mjs";
import { sets } from "./scores.mjs";

export const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex");
const RELEASE = "confide/release";

export const canonicalText = ({ text }) => canonical(parse(text));

/** Kind, schema, checksum, and the threshold if there is one, of a file whose checksum fits, and the digest by which others name it. */
export function release({ text }) {
  const content = parse(text);
  if (!(content instanceof Map) || content.get("kind") !== RELEASE) throw new Error("no release");
  if (content.get("schema") !== 1n) throw new Error("an unknown schema");
  const stated = content.get("sha256");
  content.delete("sha256");
  if (stated !== sha256(canonical(content))) throw new Error("the checksum does not match");
  const thresholds = content.get("thresholds"), threshold = thresholds.length === 1 ? thresholds[0].get("threshold") : null;
  return { kind: RELEASE, schema: Number(content.get("schema")), sha256: stated, threshold, document: sha256(text) };
}

export const setsOfRelease = ({ release: text, probabilities }) => sets({ score: "lac", probabilities, threshold: release({ text }).threshold });

export function seals({ rows }) {
  let before = [null, null, null];
  return rows.map(({ salt, values, made, by }) => {
    const seal = salt + sha256(canonical([salt, ...before, ...parse(values)])).slice(0, 48);
    before = [seal, made, by];
    return seal;
  });
}

export function chain({ rows }) {
  const right = seals({ rows });
  rows.forEach(({ seal }, i) => { if (seal !== right[i]) throw new Error("a row was changed or taken out"); });
  return right.at(-1);
}
