// Every vector against this reader: `node reader.mjs` says what agrees; `check` is what the tests use.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as federated from "./federated.mjs";
import * as files from "./files.mjs";
import * as guarantees from "./guarantees.mjs";
import * as mechanisms from "./mechanisms.mjs";
import * as noise from "./noise.mjs";
import { Fraction } from "./numbers.mjs";
import * as scores from "./scores.mjs";

const OPERATIONS = {
  class_score: scores.classScore, all_scores: scores.allScores, interval_score: scores.intervalScore, sets: scores.sets, intervals: scores.intervals,
  softmax: ({ logits }) => logits.map(scores.softmax),
  scale: mechanisms.scale, statement: mechanisms.statement, utilities: mechanisms.utilities, law: mechanisms.law, law_of_weights: mechanisms.lawOfWeights, loss: mechanisms.loss,
  tail: guarantees.tail, mean_overshoot: guarantees.meanOvershoot, rivals: guarantees.rivals, marginal_coverage: guarantees.marginalCoverage,
  conditional_failure: guarantees.conditionalFailure, sharp_loss: guarantees.sharpLoss, certificate: guarantees.certificate,
  split_rank: guarantees.splitRank, zcdp: guarantees.zcdp,
  canonical: files.canonicalText, release: files.release, sets_of_release: files.setsOfRelease, seals: files.seals, chain: files.chain,
  signed_bytes: federated.signedBytes, seal: federated.seal, unseal: federated.unseal, identity: federated.identity, roster: federated.roster,
  fingerprint: federated.fingerprint, public_keys: federated.publicKeys, mask: federated.mask, open_sum: federated.openSum,
  rank_of_ranks: federated.rankOfRanks,
  noise_law: noise.noiseLaw, log_mgf: noise.logMgf, coverage_of_counts: noise.coverageOfCounts, noisy_interval: noise.noisyInterval,
  log_e_value: noise.logEValue, stake: noise.stake, evidence: noise.evidence,
};

/** Operations that this reader leaves out, and why. */
export const NOT_CHECKED = {
  plan: "which slopes, target and candidates suit a request is a search of the library; what its answer means is checked",
  release_claims: "whether claims follow needs every mechanism's certificate; checksums, kinds and schemas are checked",
  noisy_interval_secret: "the worst of all numbers of records is a search; intervals for a public number are checked",
};

const exact = (value) => (typeof value === "number" && !Number.isFinite(value) ? null : Fraction.of(value));

/** Whether a found value is the expected one, or as near as the vector asks, in every number that it holds. */
export function agrees(found, expected, tolerance) {
  if (Array.isArray(expected)) return Array.isArray(found) && found.length === expected.length && expected.every((one, i) => agrees(found[i], one, tolerance));
  if (expected !== null && typeof expected === "object") {
    const keys = Object.keys(expected);
    return found !== null && typeof found === "object" && Object.keys(found).length === keys.length && keys.every((key) => key in found && agrees(found[key], expected[key], tolerance));
  }
  if (found === Infinity || found === -Infinity) return expected === (found > 0 ? "+inf" : "-inf");
  if (tolerance === 0 || typeof found !== "number") return Object.is(found, expected) || (found === 0 && expected === 0);
  const [kind, by] = Object.entries(tolerance)[0], value = exact(expected), distance = exact(found).minus(value), most = Fraction.of(by);
  const within = (size, bound) => size.compare(bound) <= 0;
  return {
    absolute: within(distance.abs(), most),
    relative: within(distance.abs(), most.times(value.abs())),
    above: distance.top >= 0n && within(distance, most),
    below: distance.top <= 0n && within(distance.abs(), most),
  }[kind];
}

/** null for a vector that is left out, else whether it holds. */
export function check({ operation, input, expected, refused, tolerance }) {
  if (operation in NOT_CHECKED) return null;
  let found;
  try {
    found = OPERATIONS[operation](input);
  } catch (error) {
    if ([ReferenceError, SyntaxError, TypeError, RangeError].some((kind) => error instanceof kind)) throw error; // a fault of this reader
    return refused === true;
  }
  return refused !== true && agrees(found, expected, tolerance);
}

const FOLDER = new URL("../", import.meta.url);

/** All subjects with their cases. */
export function subjects() {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".json") && name !== "schema.json");
  return names.map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let wrong = 0;
  for (const { subject, cases } of subjects()) {
    const results = cases.map((one) => [one.id, check(one)]), of = (value) => results.filter(([, found]) => found === value);
    wrong += of(false).length;
    console.log(`${subject}: ${of(true).length} agree, ${of(null).length} left out${of(false).map(([id]) => `\n  differs: ${id}`).join("")}`);
  }
  process.exitCode = wrong ? 1 : 0;
}
