// Which test files there are, which of them a run takes, and in which order.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { engines, type TestOptions } from './test-options.ts';
import { root } from './test-worker.ts';

/** The functions by which a test file gets a server of its engine. */
const serverCalls: Readonly<Record<string, RegExp>> = {
  postgres: /\b(?:shared|start)Postgres\b/,
  redis: /\b(?:shared|start)Redis(?:Cluster)?\b/,
  nats: /\b(?:shared|start)Nats\b/,
  kurrent: /\bstartKurrentServer\b/,
};

export function findTestFiles(): readonly string[] {
  return globSync('{src,test,tools,bench,modules}/**/*.test.ts', {
    cwd: root,
    exclude: (path) => path.includes('node_modules'),
  })
    .filter((file) => !file.endsWith('.engines.test.ts'))
    .toSorted();
}

/** Whether a file needs servers or is slow, and so is left out of `npm run check`. */
export function isHeavy(file: string): boolean {
  return /\.(?:servers|full)\.test\.ts$/.test(file);
}

export function selectTestFiles(
  files: readonly string[],
  options: TestOptions & { readonly failedBefore: readonly string[] },
): readonly string[] {
  const { words, fast, rerunFailed, failedBefore } = options;
  return files
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .filter((file) => !fast || !isHeavy(file))
    .filter((file) => !rerunFailed || failedBefore.includes(file))
    .filter((file) => isOfEngines(file, options.engines));
}

/** A file belongs to the engines that its path names and whose servers it starts. */
function isOfEngines(file: string, chosen: readonly string[] | undefined): boolean {
  if (chosen === undefined) return true;
  const source = readFileSync(join(root, file), 'utf8');
  const needed = engines.filter(
    (engine) => file.includes(engine) || serverCalls[engine]?.test(source) === true,
  );
  return needed.every((engine) => chosen.includes(engine));
}
