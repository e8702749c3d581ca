// Conformity scores, sets and intervals, from the formulas of the papers and of docs/vectors.md.
import { nextUp } from "./numbers.mjs";

const REGRESSION = ["absolute_residual", "normalised_residual", "gamma", "cqr", "cqr_low", "cqr_high"];
const RANDOMISED = ["aps", "raps", "saps"];

/** A score's name: its family, its parameters, and whether records have random numbers. */
function named(score) {
  const found = /^([a-z_]+?)(_deterministic)?(?:\((.*)\))?$/.exec(score);
  const parameters = Object.fromEntries((found[3] ?? "").split(",").filter(Boolean).map((one) => one.split("=").map((x, i) => (i ? Number(x) : x))));
  return { family: found[1], randomised: RANDOMISED.includes(found[1]) && !found[2], penalty: 0, k_reg: 0, ...parameters };
}

export function softmax(row) {
  const largest = Math.max(...row), powers = row.map((z) => Math.exp(z - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

const tempered = (row, temperature) => softmax(row.map((p) => Math.log(p) / temperature));

/** A probability as a multiple of 2^(b-52), K < 2^b: sums of such are exact, so their order does not matter. */
function rounded(p, classes) {
  const magic = 2 ** classes.toString(2).length;
  return p + magic - magic;
}

function refuseRow(row) {
  if (!row.every((p) => p >= 0 && p <= 1)) throw new Error("probabilities lie in [0, 1]");
  if (Math.abs(row.reduce((a, b) => a + b, 0) - 1) > 1e-3) throw new Error("probabilities sum to one");
}

function ofClass(kind, row, label, u) {
  const own = row[label], rank = row.filter((p) => p >= own).length, share = kind.randomised ? u : 1;
  const add = (values) => values.reduce((a, p) => a + rounded(p, row.length), 0);
  if (kind.family === "lac") return 1 - own;
  if (kind.family === "top_k") return rank;
  if (kind.family === "margin") return Math.max(...row.filter((_, k) => k !== label)) - own;
  const largest = Math.max(...row);
  if (kind.family === "saps") return rank === 1 ? share * largest : largest + (rank - 2 + share) * kind.penalty;
  const group = add(row.filter((p) => p === own));
  return add(row.filter((p) => p >= own)) - group + share * group + Math.max(rank - kind.k_reg, 0) * kind.penalty;
}

export function allScores({ score, probabilities, u = [] }) {
  const kind = named(score);
  if (REGRESSION.includes(kind.family)) throw new Error("a score for numbers");
  return probabilities.map((row, i) => {
    refuseRow(row);
    if (kind.family === "margin" && row.length < 2) throw new Error("a margin needs two classes");
    if (kind.randomised && !(u[i] >= 0 && u[i] <= 1)) throw new Error("u lies in [0, 1]");
    const warm = kind.temperature === undefined ? row : tempered(row, kind.temperature);
    return warm.map((_, label) => ofClass(kind, warm, label, u[i]));
  });
}

export function classScore({ labels, ...given }) {
  const all = allScores(given);
  if (labels.length !== all.length) throw new Error("one label for each record");
  return all.map((row, i) => {
    if (!Number.isInteger(labels[i]) || !(labels[i] in row)) throw new Error("a label is a class");
    return row[labels[i]];
  });
}

const limit = (threshold) => (threshold === "+inf" ? Infinity : threshold);

export function sets({ threshold, class_thresholds, ...given }) {
  return allScores(given).map((row) => row.flatMap((score, k) => (score <= limit(class_thresholds ? class_thresholds[k] : threshold) ? [k] : [])));
}

function divisor(score, prediction, difficulty) {
  if (!REGRESSION.includes(score)) throw new Error("a score for classes");
  const by = { normalised_residual: difficulty, gamma: prediction }[score];
  if (by !== undefined && !(by > 0)) throw new Error("a divisor is positive");
  return by;
}

export function intervalScore({ score, predictions, targets, difficulty = [] }) {
  return predictions.map((prediction, i) => {
    const y = targets[i], by = divisor(score, prediction, difficulty[i]);
    if (!score.startsWith("cqr")) return Math.abs(y - prediction) / (by ?? 1);
    const [below, above] = [prediction[0] - y, y - prediction[1]];
    return { cqr: Math.max(below, above), cqr_low: below, cqr_high: above }[score];
  });
}

export function intervals({ score, threshold, predictions, difficulty = [] }) {
  return predictions.map((prediction, i) => {
    const by = divisor(score, prediction, difficulty[i]), [low, high] = [prediction].flat().length === 2 ? prediction : [prediction, prediction];
    let reach = nextUp(limit(threshold));
    if (by !== undefined) reach = nextUp(reach * by);
    return [score === "cqr_high" ? -Infinity : low - reach, score === "cqr_low" ? Infinity : high + reach];
  });
}
