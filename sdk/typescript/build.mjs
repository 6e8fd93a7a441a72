// Makes dist/ anew. The same sources and lock file give the same bytes.

import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
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

for (const file of ["plugin.js", "plugin.cjs", "host.mjs", "proxy.cjs", "locales.cjs", "index.d.ts"])
  console.log(`${file}: ${Math.round(statSync(join(here, "dist", file)).size / 1024)} KiB`);
