// `npm test`: every check and every test, one summary line. `--fast` leaves out what needs servers
// or packs the package; `--slowest` tells which files took longest; words after `--` pick test
// files by path and leave out the checks.

import { globSync } from 'node:fs';
import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import { keepTestFilesInMemory } from './test-folder.ts';
import { createTestRun, root } from './test-run.ts';

const words = process.argv.slice(2);
const fast = words.includes('--fast');
const picked = words.filter((word) => !word.startsWith('-'));

const files = globSync('{src,test,tools,bench,modules}/**/*.test.ts', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
})
  .filter((file) => !file.endsWith('.engines.test.ts'))
  .filter((file) => picked.length === 0 || picked.some((word) => file.includes(word)))
  .toSorted();
const needsMore = (file: string): boolean => /\.(servers|full)\.test\.ts$/.test(file);
const plain = files.filter((file) => !needsMore(file));
const heavy = fast ? [] : files.filter(needsMore);

keepTestFilesInMemory();
const run = createTestRun({
  lanes: 3,
  groupTimeoutMs: 600_000,
  slowest: words.includes('--slowest') ? 40 : 0,
});
if (picked.length === 0) {
  // Two cores: the checks in pairs, each a process of its own. More checkers learn the same types once more each.
  await Promise.all([
    run.check('types', ['tsc', '-p', '.', '--checkers', '1']),
    run.check('lint', ['oxlint', '--type-aware', '--deny-warnings']),
  ]);
  await Promise.all([
    run.check('format', ['oxfmt', '--check']),
    run.check('dead exports', ['knip', '--no-progress']),
  ]);
}
// Files that lie together take about the same time: dealt out like cards.
const hands = Array.from({ length: 3 }, (_, hand) => plain.filter((_file, at) => at % 3 === hand));
if (plain.length > 0) {
  await run.test(
    'tests',
    hands.filter((hand) => hand.length > 0),
  );
}
if (heavy.length > 0) {
  const servers = await hostSharedServers();
  try {
    const groups = heavy.map((file) => [file]);
    await run.test('tests with servers', groups);
  } finally {
    await servers[Symbol.asyncDispose]();
  }
}
run.finish();
