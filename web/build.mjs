// Builds the page: sources and packages go in, the files that the server sends come out.
//
//   node build.mjs [FOLDER [REPORT_FOLDER]]
//
// FOLDER, where the page goes, is src/kubestow/web/assets unless given, and REPORT_FOLDER, where the
// picture of a plan for reports goes, src/kubestow/simulator/rebalance.
//
// The same sources and the same lock give the same bytes. Their hash is written beside the result, so
// that a test without npm finds out whether the committed files belong to the committed sources.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../src/kubestow/web/assets"));
const reportTarget = resolve(process.argv[3] ?? join(here, "../src/kubestow/simulator/rebalance"));

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === "node_modules") return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

// tests/web/test_assets.py computes the same number.
function hashOfSources() {
  const hash = createHash("sha256");
  const names = filesBelow(here).map((path) => relative(here, path).split(sep).join("/"));
  for (const name of names.sort()) {
    const content = createHash("sha256").update(readFileSync(join(here, name))).digest("hex");
    hash.update(`${content}  ${name}\n`);
  }
  return hash.digest("hex");
}

function bundledPackages(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) names.add(match[1]);
  }
  return [...names].sort();
}

function licenceOf(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} has no licence file: it cannot be bundled`);
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version} (${license})\n${"-".repeat(72)}\n${text}\n`;
}

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};
const result = await build({
  ...options,
  entryPoints: { app: "src/main.tsx", page: "src/style/page.css" },
  outdir: target,
  format: "esm",
});

mkdirSync(target, { recursive: true });
for (const name of ["index.html", "icon.svg"]) {
  copyFileSync(join(here, "src", name), join(target, name));
}
const licences = bundledPackages(result.metafile).map(licenceOf);
writeFileSync(
  join(target, "LICENSES.txt"),
  `The page is part of kubestow (Apache-2.0) and contains these packages:\n\n${licences.join("\n")}`,
);
writeFileSync(join(target, "sources.json"), `${JSON.stringify({ sha256: hashOfSources() })}\n`);

// A report is one file: its script has the licences of what it contains.
const reportOptions = {
  ...options,
  entryPoints: { plan: "src/report.tsx" },
  outdir: reportTarget,
  format: "iife",
};
const planned = await build({ ...reportOptions, write: false });
const notes = bundledPackages(planned.metafile).map(licenceOf);
await build({ ...reportOptions, banner: { js: `/*\n${notes.join("\n")}*/` } });
await build({ ...options, entryPoints: { plan: "src/style/report.css" }, outdir: reportTarget });
