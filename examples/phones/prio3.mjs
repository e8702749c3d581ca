// Prio3Histogram with two aggregators in one process. It reads {length, measurements, noises} and writes a collection.
//
// A measurement is the bin of one client. Each aggregator adds its own noise to its share of the sum, as an aggregator
// of DAP with a differential-privacy strategy does. Nothing here is secure: one process sees all shares.
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Prio3Histogram } from "@divviup/prio3";

const { length, measurements, noises } = JSON.parse(readFileSync(0, "utf8"));
const vdaf = new Prio3Histogram({ shares: 2, length, chunkLength: Math.ceil(Math.sqrt(length)) });
const key = Buffer.from(randomBytes(vdaf.verifyKeySize));
const outputs = [[], []];

for (const measurement of measurements) {
  const nonce = Buffer.from(randomBytes(vdaf.nonceSize));
  const randomness = Buffer.from(randomBytes(vdaf.randSize));
  const { publicShare, inputShares } = await vdaf.shard(measurement, nonce, randomness);
  const prepared = await Promise.all(
    inputShares.map((share, who) => vdaf.prepareInit(key, who, null, nonce, publicShare, share)),
  );
  const message = await vdaf.unshardPreparationShares(null, prepared.map((one) => one.preparationShare));
  prepared.forEach((one, who) => outputs[who].push(vdaf.prepareNext(one.preparationState, message).outputShare));
}

const p = vdaf.flp.field.modulus;
const noisy = outputs.map((own, who) =>
  vdaf.aggregate(null, own).map((share, bin) => (share + BigInt(noises[who][bin]) + p) % p),
);
const result = noisy[0].map((share, bin) => ((share + noisy[1][bin]) % p).toString());
console.log(JSON.stringify({ report_count: measurements.length, aggregate_result: result }));
