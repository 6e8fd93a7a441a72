// The protocol's two ends. Tools may write to stdout and read stdin as they like: both lead elsewhere by then.

import fs from "node:fs";
import net from "node:net";
import { bun, deno, exit } from "./runtime.js";

const NEWLINE = 0x0a;

/** Where messages come from and go to; stdin and stdout until `takeOver`. */
let input = 0;
let output = 1;

/**
 * Keeps the protocol's pipes under new numbers, points fd 0 at /dev/null and fd 1 at stderr. Node has no dup2: a
 * number that was closed is the next that an open gives.
 */
export function takeOver(): void {
  try {
    const copies = deno ? copiesOf([0, 1]) : [];
    const reader = fs.openSync("/proc/self/fd/0", "r");
    const writer = fs.openSync("/proc/self/fd/1", "a");
    if (deno) moveByLibc(copies);
    else moveByNumber();
    input = reader;
    output = writer;
  } catch {
    // A socket can't be opened a second time, and without /proc nothing can. What goes through the runtime is led
    // to stderr at least; Toolcrib takes other lines on stdout for logs.
    leadToStderr();
  }
}

function leadToStderr(): void {
  Object.defineProperty(process, "stdout", { configurable: true, get: () => process.stderr });
  // The console of Bun and of Deno does not ask for process.stdout.
  if (bun || deno) for (const name of ["log", "info", "debug", "dir", "table"] as const) console[name] = console.error;
}

function moveByNumber(): void {
  let log = "/proc/self/fd/2";
  try {
    fs.closeSync(fs.openSync(log, "a"));
  } catch {
    log = "/dev/null";
    leadToStderr();
  }
  fs.closeSync(0);
  fs.openSync("/dev/null", "r");
  fs.closeSync(1);
  fs.openSync(log, "a");
}

/** Which numbers lead to the same places as these: Deno keeps copies for its children. */
function copiesOf(numbers: number[]): number[][] {
  const place = (number: number | string): string => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${number}`);
    } catch {
      return "";
    }
  };
  const open = fs.readdirSync("/proc/self/fd");
  return numbers.map((number) => open.filter((other) => place(other) === place(number)).map(Number));
}

/** Deno's own numbers are not those of the system. */
function moveByLibc([inputs = [], outputs = []]: number[][]): void {
  const name = process.arch === "arm64" ? "aarch64" : "x86_64";
  const shape = { dup2: { parameters: ["i32", "i32"], result: "i32" } };
  let libc;
  try {
    libc = deno!.dlopen("libc.so.6", shape);
  } catch {
    libc = deno!.dlopen(`libc.musl-${name}.so.1`, shape);
  }
  const nothing = fs.openSync("/dev/null", "r");
  for (const number of inputs) libc.symbols.dup2(nothing, number);
  for (const number of outputs) libc.symbols.dup2(2, number);
  fs.closeSync(nothing);
}

let waiting = "";

/** Sends one message, in one write with others that are ready at the same moment. */
export function sendSoon(line: string): void {
  if (waiting === "") queueMicrotask(flush);
  waiting += line + "\n";
}

/** Sends one message now. */
export function send(line: string): void {
  waiting += line + "\n";
  flush();
}

function flush(): void {
  if (waiting === "") return;
  const bytes = Buffer.from(waiting);
  waiting = "";
  let sent = 0;
  while (sent < bytes.length) {
    try {
      sent += fs.writeSync(output, bytes, sent);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") pause();
      else exit(code === "EPIPE" ? 0 : 1);
    }
  }
}

const nobody = new Int32Array(new SharedArrayBuffer(4));

/** The other side does not read: a millisecond later it may. */
function pause(): void {
  Atomics.wait(nobody, 0, 0, 1);
}

/** Reads messages until the input ends, and then ends the process. */
export function listen(take: (line: string) => void): void {
  const chunk = splitter(take);
  const end = (): never => {
    flush();
    exit(0);
  };
  if (!bun && !deno && input !== 0 && fs.fstatSync(input).isFIFO()) {
    // One buffer for all reads, and no stream in between: a read costs half as much.
    const buffer = Buffer.allocUnsafe(65536);
    const callback = (count: number): boolean => {
      chunk(buffer.subarray(0, count));
      return true;
    };
    const options = { fd: input, readable: true, writable: false, onread: { buffer, callback } };
    new net.Socket(options).on("end", end).on("close", end).on("error", end).resume();
    return;
  }
  if (input === 0) {
    process.stdin.on("data", chunk).on("end", end).on("error", end);
    return;
  }
  const buffer = Buffer.allocUnsafe(65536);
  const next = (): void =>
    fs.read(input, buffer, 0, buffer.length, null, (error, count) => {
      if (error ?? count === 0) end();
      chunk(buffer.subarray(0, count));
      next();
    });
  next();
}

/** Splits at \n and at nothing else: U+2028 may stand in a string. */
function splitter(take: (line: string) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  return (chunk) => {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) break;
      const last = chunk.subarray(start, end);
      start = end + 1;
      const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
      parts = [];
      take(line.toString("utf8"));
    }
    // A copy: the buffer that it came in is used again.
    if (start < chunk.length) parts.push(Buffer.from(chunk.subarray(start)));
  };
}
