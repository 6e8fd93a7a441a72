// Attempts to get out from Node, each of which gives something truthy if it got out. What throws was held.
import { createRequire } from "node:module";
import childProcess from "node:child_process";
import dgram from "node:dgram";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import { Worker } from "node:worker_threads";

function wallsStand() {
  if (process.env.TOOLCRIB_TEST_CANARY !== "behind walls" || !process.env.TOOLCRIB_TEST_MARKER) return false;
  try {
    fs.readFileSync(process.env.TOOLCRIB_TEST_MARKER);
    return false;
  } catch {}
  const status = fs.readFileSync("/proc/self/status", "utf8");
  return /^Seccomp:\t2$/m.test(status) && /^NoNewPrivs:\t1$/m.test(status) && /^CapEff:\t0+$/m.test(status);
}

if (!wallsStand()) {
  process.stderr.write("no walls, no attack\n");
  process.exit(99);
}
console.log("canary\theld\t");

const at = JSON.parse(process.env.TOOLCRIB_TEST_PLACES);
const tmp = process.env.TMPDIR;
const read = (path) => fs.readFileSync(path);
const soon = (start) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("nothing came of it")), 3000);
    start(
      (value) => (clearTimeout(timer), resolve(value)),
      (error) => (clearTimeout(timer), reject(error)),
    );
  });
const connected = (options) =>
  soon((yes, no) => {
    const socket = net.connect(options, () => (socket.destroy(), yes(true)));
    socket.on("error", no);
  });

const attempts = {
  node_read_a_secret: () => read(at.secret),
  node_read_a_secret_by_promise: () => fs.promises.readFile(at.secret),
  node_list_the_home: () => fs.readdirSync(at.home),
  node_read_the_cribs_database: () => read(at.crib + "/store.db"),
  node_read_the_cribs_environment: () => read(`/proc/${at.crib_pid}/environ`),
  node_read_the_parents_environment: () => read(`/proc/${process.ppid}/environ`),
  node_look_through_proc_self_root: () => read("/proc/self/root" + at.secret),
  node_write_elsewhere: () => (fs.writeFileSync(at.home + "/planted", "x"), true),
  node_write_the_project: () => (fs.appendFileSync(at.project + "/data.txt", "x"), true),
  node_write_the_tool_itself: () => (fs.appendFileSync(new URL(import.meta.url), "//"), true),
  node_copy_into_the_project: () => (fs.copyFileSync("/etc/passwd", at.project + "/planted"), true),
  node_delete_from_the_project: () => (fs.rmSync(at.project + "/data.txt"), true),
  node_change_a_mode: () => (fs.chmodSync(at.project + "/data.txt", 0o666), (fs.statSync(at.project + "/data.txt").mode & 0o777) === 0o666),
  node_change_times: () => (fs.utimesSync(at.project + "/data.txt", 1, 1), fs.statSync(at.project + "/data.txt").mtimeMs === 1000),
  node_follow_a_link: () => (fs.symlinkSync(at.secret, tmp + "/node-link"), read(tmp + "/node-link")),
  node_link_hard: () => (fs.linkSync(at.secret, tmp + "/node-hard"), read(tmp + "/node-hard")),
  node_signal_another: () => process.kill(at.victim, "SIGTERM"),
  node_debug_another: () => (process._debugProcess(at.victim), true),
  node_slow_another_down: () => (os.setPriority(at.victim, 19), true),
  node_run_a_shell: () => childProcess.execSync("echo out").toString(),
  node_spawn_a_program: () => childProcess.spawnSync("/bin/true").status === 0,
  node_fork_itself: () =>
    soon((yes, no) => {
      const child = childProcess.fork(at.project + "/nothing.js", { silent: true });
      child.on("error", no);
      child.on("exit", (code, signal) => (code === null || code === 127 ? no(new Error(signal)) : yes(true)));
    }),
  node_load_a_library_from_tmp: () => {
    fs.writeFileSync(tmp + "/x.node", read("/bin/true"));
    process.dlopen({ exports: {} }, tmp + "/x.node");
    return true;
  },
  node_connect_to_loopback: () => connected({ host: "127.0.0.1", port: at.tcp }),
  node_request_loopback: () =>
    soon((yes, no) => http.get(`http://127.0.0.1:${at.tcp}/`, () => yes(true)).on("error", no)),
  node_fetch_loopback: () => fetch(`http://127.0.0.1:${at.tcp}/`).then(() => true),
  node_send_a_datagram: () =>
    soon((yes, no) => {
      const socket = dgram.createSocket("udp4");
      socket.on("error", no);
      socket.send("out", at.udp, "127.0.0.1", (error) => (error ? no(error) : yes(true)));
    }),
  node_reach_the_cribs_socket: () => connected({ path: at.crib + "/crib.sock" }),
  node_reach_an_abstract_socket: () => connected({ path: "\0" + at.abstract }),
  node_listen: () => soon((yes, no) => net.createServer().on("error", no).listen(0, "127.0.0.1", () => yes(true))),
  node_read_in_a_worker: () =>
    soon((yes, no) => {
      const code = "require('fs').readFileSync(require('worker_threads').workerData)";
      const worker = new Worker(code, { eval: true, workerData: at.secret });
      worker.on("error", no);
      worker.on("exit", (code) => (code === 0 ? yes(true) : no(new Error(code))));
    }),
  node_require_a_secret: () => createRequire(import.meta.url)(at.secret),
  node_become_root: () => process.getuid() !== 0 && (process.setuid(0), true),
  node_find_a_secret_variable: () => Object.keys(process.env).filter((name) => name.includes("SECRET")).length,
  node_watch_a_folder: () => (fs.watch(at.home).close(), true),
};

for (const [name, attempt] of Object.entries(attempts)) {
  let word = "held";
  let shown = "";
  try {
    const got = await attempt();
    if (got) [word, shown] = ["ESCAPED", String(got)];
  } catch (error) {
    shown = String(error);
  }
  console.log(`${name}\t${word}\t${shown.replace(/[\n\t]/g, " ").slice(0, 120)}`);
}
console.log("end\theld\t");
process.exit(0);
