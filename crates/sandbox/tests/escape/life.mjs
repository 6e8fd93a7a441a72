// What honest tools do in Node, under the default policy.
import crypto from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import zlib from "node:zlib";
import { Worker } from "node:worker_threads";
import { setTimeout as sleep } from "node:timers/promises";

const places = JSON.parse(process.env.TOOLCRIB_TEST_PLACES);
const attempts = {
  "reads the project": () => fs.readFileSync(places.project + "/data.txt", "utf8") === "data",
  "reads by promise": async () => (await fs.promises.readFile("data.txt", "utf8")) === "data",
  "temp files": () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "x-"));
    fs.writeFileSync(folder + "/a", "x");
    fs.copyFileSync(folder + "/a", folder + "/b");
    fs.renameSync(folder + "/b", folder + "/c");
    const names = fs.readdirSync(folder).join();
    fs.rmSync(folder, { recursive: true });
    return names === "a,c";
  },
  "workers": () =>
    new Promise((resolve) => {
      const worker = new Worker("require('worker_threads').parentPort.postMessage(42)", { eval: true });
      worker.on("message", (value) => resolve(value === 42));
      worker.on("error", () => resolve(false));
    }),
  "hash in the pool": () =>
    new Promise((resolve) => crypto.scrypt("a", "b", 16, (error, key) => resolve(!error && key.length === 16))),
  "compression": () => zlib.gunzipSync(zlib.gzipSync("x")).toString() === "x",
  "timers": async () => (await sleep(1), true),
  "memory": () => process.memoryUsage().rss > 0,
  "processors": () => os.cpus().length >= 1,
  "zones": () => new Date(Date.UTC(2026, 6, 1)).toLocaleString("en", { timeZone: "Europe/Berlin", hour: "numeric" }).startsWith("2"),
  "home is its own": () => (fs.mkdirSync(os.homedir() + "/.cache"), true),
  "modules": async () => (await import("node:url")).URL === URL,
};
for (const [name, attempt] of Object.entries(attempts)) {
  let [word, shown] = ["BROKEN", ""];
  try {
    if (await attempt()) word = "held";
  } catch (error) {
    shown = String(error).replace(/[\n\t]/g, " ");
  }
  console.log(`${name}\t${word}\t${shown}`);
}
console.log("end\theld\t");
