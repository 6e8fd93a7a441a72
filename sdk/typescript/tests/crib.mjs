// Plays the crib for the tests: reads a tool file and its relative imports, strips their types, starts the host on a
// runtime and speaks the protocol with it.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
export const host = join(here, "../dist/host.mjs");
const installed = join(here, "../../../target/test-tools/runtimes/node_modules");

/** THE LIST of runtimes, with the flags that the crib gives them. */
const all = [
  { name: "node", command: [process.execPath, "--experimental-vm-modules"] },
  { name: "node22", command: [join(installed, "node/bin/node")] },
  { name: "bun", command: [join(installed, ".bin/bun"), "--no-install", "--config=/dev/null", "--env-file=/dev/null", "--tsconfig-override=/dev/null"] },
  { name: "deno", command: [join(installed, ".bin/deno"), "run", "--allow-all", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--quiet"] },
];
const only = process.env.TOOLCRIB_TEST_RUNTIMES?.split(",");
export const runtimes = all.filter(({ name }) => !only || only.includes(name));
for (const { command } of runtimes)
  if (!existsSync(command[0])) throw new Error(`${command[0]} is missing: run scripts/setup-runtimes first`);

/** A folder with these files; it goes at the end of the test. */
export function folder(t, files) {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-sdk-")));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const ENDS = ["", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js"];

function find(importer, specifier) {
  const path = resolve(dirname(importer), specifier);
  const typed = path.replace(/\.([mc]?)js$/, ".$1ts");
  for (const candidate of [...ENDS.map((end) => path + end), typed])
    if (statSync(candidate, { throwIfNoEntry: false })?.isFile()) return candidate;
  return undefined;
}

function formatOf(path, text) {
  const end = extname(path);
  if (end === ".json") return "json";
  if (end === ".cjs" || end === ".cts") return "commonjs";
  if (end === ".mjs" || end === ".mts") return "module";
  const esm = /^\s*(?:import\b(?!\s*\()|export\b)/m.test(text);
  return !esm && /\bmodule\.exports\b|\bexports\.\w+\s*=|\brequire\(/.test(text) ? "commonjs" : "module";
}

/** The script of a file as the crib sends it. */
export function scriptOf(file, fields = {}) {
  const texts = {};
  const resolved = {};
  const waiting = [file];
  for (const path of waiting) {
    const text = readFileSync(path, "utf8");
    const format = formatOf(path, text);
    if (format === "json") {
      texts[path] = { text, format };
      continue;
    }
    let code = text;
    if (/\.[mc]?ts$/.test(path)) {
      const options = { loader: "ts", sourcemap: "inline", sourcefile: path, sourcesContent: false, target: "es2022" };
      code = transformSync(text, { ...options, ...(extname(path) === ".cts" ? { format: "cjs" } : {}), tsconfigRaw: "{}" }).code;
    }
    texts[path] = { text: code, format };
    resolved[path] = {};
    for (const [, double, single] of code.matchAll(/(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*(?:"(\.{1,2}\/[^"]+)"|'(\.{1,2}\/[^']+)')/g)) {
      const specifier = double ?? single;
      const found = find(path, specifier);
      if (!found) continue;
      resolved[path][specifier] = found;
      if (!waiting.includes(found)) waiting.push(found);
    }
  }
  return { file, directory: dirname(file), texts, resolved, ...fields };
}

/** A host that runs. The pipes are real ones, as the crib's are; Node's own would be sockets. */
export class Worker {
  #child;
  #answers = new Map();
  #next = 1;
  #rest = "";
  stderr = "";
  notices = [];
  strange = [];

  constructor(t, runtime, { env = {}, pipes = true } = {}) {
    const words = [...runtime.command, host];
    const [program, ...given] = pipes ? ["bash", "-c", '{ cat | "$@" 2>&3 | cat; exit ${PIPESTATUS[1]}; } 3> >(cat >&2)', "bash", ...words] : words;
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/proxy|^NODE_/i.test(name)));
    this.#child = spawn(program, given, { stdio: "pipe", env: { ...inherited, NO_COLOR: "1", ...env } });
    this.exit = new Promise((done) => this.#child.on("close", (code, signal) => done(signal ?? code)));
    this.#child.stderr.on("data", (data) => (this.stderr += data));
    this.#child.stdout.setEncoding("utf8").on("data", (data) => this.#read(data));
    this.#child.stdin.on("error", () => {});
    void this.exit.then((code) => {
      for (const { fail } of this.#answers.values()) fail(new Error(`the host ended (${code}): ${this.stderr}`));
    });
    t.after(() => this.end());
  }

  #read(data) {
    const lines = (this.#rest + data).split("\n");
    this.#rest = lines.pop();
    for (const line of lines) {
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        this.strange.push(line);
        continue;
      }
      if (message.method) this.notices.push(message);
      else this.#answers.get(message.id)?.done(message);
    }
  }

  get pid() {
    return this.#child.pid;
  }

  write(text) {
    this.#child.stdin.write(text);
  }

  kill(signal) {
    this.#child.kill(signal);
  }

  /** Sends a request; the promise is its answer, result or error. */
  ask(method, params = {}) {
    const id = String(this.#next++);
    const answer = new Promise((done, fail) => this.#answers.set(id, { done, fail }));
    this.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return Object.assign(answer, { id });
  }

  answerTo(id) {
    return new Promise((done, fail) => this.#answers.set(id, { done, fail }));
  }

  tell(method, params) {
    this.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
  }

  initialize(script) {
    return this.ask("initialize", { protocolVersion: "1.0", supported: ["1.0", "1.1"], script });
  }

  call(tool, input = {}, context = {}) {
    return this.ask("execute", { tool, input, context: { callId: "c-1", timeout: 30000, ...context } });
  }

  /** The result of a call that must succeed. */
  async result(tool, input, context) {
    const answer = await this.call(tool, input, context);
    if (answer.error) throw new Error(`${tool}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  /** The error of a call that must fail. */
  async error(tool, input, context) {
    const answer = await this.call(tool, input, context);
    if (!answer.error) throw new Error(`${tool} did not fail: ${JSON.stringify(answer.result)}`);
    return answer.error;
  }

  end() {
    this.#child.stdin.end();
    return this.exit;
  }
}

/** A host with this file loaded, and what it said of it. */
export async function start(t, runtime, file, { fields, ...options } = {}) {
  const worker = new Worker(t, runtime, options);
  const answer = await worker.initialize(scriptOf(file, fields));
  if (answer.error) throw new Error(`${file}: ${JSON.stringify(answer.error)}\n${worker.stderr}`);
  return { worker, ...answer.result };
}

/** Waits until it holds. */
export async function until(holds, what = "it") {
  for (let tries = 0; tries < 1000; tries++) {
    if (holds()) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`${what} never came`);
}
