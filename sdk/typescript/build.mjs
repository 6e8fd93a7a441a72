// Makes dist/ anew. The same sources and lock file give the same bytes.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  keepNames: false,
  legalComments: "eof",
  platform: "node",
  target: "node20",
  logLevel: "warning",
};

/** The licence of a package, for the head of a bundle that holds it. */
function licence(name) {
  const place = join(here, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  return { js: `/*! With ${name} ${version}:\n${readFileSync(join(place, "LICENSE"), "utf8").trim()}\n*/` };
}

// Zod's languages are half of it, and few tools ask for one: they lie in a file of their own, read at the first use.
const index = readFileSync(join(here, "node_modules/zod/v4/locales/index.js"), "utf8");
const names = [...index.matchAll(/default as (\w+)/g)].map(([, name]) => name).filter((name) => name !== "en");
if (names.length < 40) throw new Error("Zod's list of languages reads differently now");
const lazyLanguages = {
  name: "lazy-languages",
  setup(build) {
    build.onLoad({ filter: /zod[/]v4[/]locales[/]index\.js$/ }, ({ path }) => {
      const lines = [
        'export { default as en } from "./en.js";',
        'import { createRequire } from "node:module";',
        "let all;",
        "const words = (name) => () => (all ??= createRequire(FILE)(\"./locales.cjs\"))[name]();",
        ...names.map((name) => `export const ${name} = words("${name}");`),
      ];
      return { contents: lines.join("\n"), resolveDir: dirname(path) };
    });
  },
};
const plugin = { ...shared, banner: licence("zod"), entryPoints: ["src/bundle.ts"], plugins: [lazyLanguages] };

/**
 * The bundles hold Zod, so dist/zod holds its types, and the package depends on nothing. They are those for `require`, which
 * `import` can use too. What `tsc` wrote is for `import`; its twin for `require` differs in the names of its neighbours only.
 */
function carryTypes() {
  const zod = join(here, "node_modules/zod");
  const to = join(here, "dist/zod");
  const waiting = [join(zod, "index.d.cts")];
  for (const file of waiting) {
    const copy = join(to, relative(zod, file));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(file, copy);
    for (const [, name] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"([^"]+)"/g)) {
      const next = join(dirname(file), name.replace(/\.cjs$/, ".d.cts"));
      if (!name.startsWith(".") || !existsSync(next)) throw new Error(`Zod's types name ${name}, which is not there`);
      if (!waiting.includes(next)) waiting.push(next);
    }
  }
  copyFileSync(join(zod, "LICENSE"), join(to, "LICENSE"));
  for (const name of ["index", "types"]) {
    const file = join(here, "dist", `${name}.d.ts`);
    const text = readFileSync(file, "utf8").replaceAll('"zod"', '"./zod/index.cjs"');
    writeFileSync(file, text);
    writeFileSync(join(here, "dist", `${name}.d.cts`), text.replaceAll(/"\.\/(\w+)\.js"/g, '"./$1.cjs"'));
  }
}

rmSync(join(here, "dist"), { recursive: true, force: true });
await build({ ...plugin, format: "esm", outfile: "dist/plugin.js", define: { FILE: "import.meta.url" } });
await build({ ...plugin, format: "cjs", outfile: "dist/plugin.cjs", define: { FILE: "__filename" } });
await build({
  ...shared,
  banner: licence("zod"),
  stdin: { contents: 'export * from "zod/v4/locales";', resolveDir: here },
  format: "cjs",
  outfile: "dist/locales.cjs",
});
await build({
  ...shared,
  entryPoints: ["src/host/main.ts"],
  format: "esm",
  outfile: "dist/host.mjs",
  external: ["./plugin.js", "./plugin.cjs", "./proxy.cjs"],
});
await build({ ...shared, banner: licence("undici"), entryPoints: ["src/proxy.ts"], format: "cjs", outfile: "dist/proxy.cjs" });

const compiler = join(here, "node_modules", "typescript", "bin", "tsc");
// Only what a tool file sees: the host's types are in no file.
const done = spawnSync(process.execPath, [compiler, "-p", "tsconfig.types.json"], { cwd: here, stdio: "inherit" });
if (done.status !== 0) process.exit(done.status ?? 1);
carryTypes();

for (const file of ["plugin.js", "plugin.cjs", "host.mjs", "proxy.cjs", "locales.cjs", "index.d.ts"])
  console.log(`${file}: ${Math.round(statSync(join(here, "dist", file)).size / 1024)} KiB`);
