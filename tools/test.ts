// `npm test`: every check and every test, one summary line. `--fast` leaves out what needs servers
// or packs the package; `--slowest` tells which files took longest; words after `--` pick test
// files by path and leave out the checks.

import { globSync } from 'node:fs';
import { dirname } from 'node:path';
import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import { keepTestFilesInMemory } from './test-folder.ts';
import { createTestRun, root } from './test-run.ts';

/** Half a minute each, or more. */
const longest = [
  'test/packed-package.',
  'test/kurrent/adapter-on-sqlite.',
  'test/store/postgres-order.',
  'test/tasks/busy.',
  'test/tasks/kill-servers.',
  'test/projections/redis-outage.',
  'redis-bus-cluster.',
  'redis-tasks-cluster.',
  'src/adapters/postgres/',
  'src/adapters/sqlite/',
];
/** A process takes half a second before its first test. */
const sharedMax = 4;
/** The suites of the adapters, each of which closes what it opens. */
const mayShare = (path: string): boolean => path.startsWith('src/adapters/');

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
  // Twice as many as cores: tests of servers wait for a good part of their time.
  lanes: 4,
  groupTimeoutMs: 600_000,
  slowest: words.includes('--slowest') ? 40 : 0,
});
// Two cores: more checkers would learn the same types once more each.
const checks: readonly Promise<void>[] =
  picked.length > 0
    ? []
    : [
        run.check('types', ['tsc', '-p', '.', '--checkers', '1']),
        run.check('lint', ['oxlint', '--type-aware', '--deny-warnings']),
        run.check('format', ['oxfmt', '--check']),
        run.check('dead exports', ['knip', '--no-progress']),
      ];
// Files that lie together take about the same time: dealt out like cards.
const hands = Array.from({ length: 3 }, (_, hand) => plain.filter((_file, at) => at % 3 === hand));
const servers = heavy.length > 0 ? await hostSharedServers() : undefined;
try {
  await Promise.all([
    ...checks,
    plain.length > 0 &&
      run.test(
        'tests',
        hands.filter((hand) => hand.length > 0),
      ),
    heavy.length > 0 && run.test('tests with servers', groupsOf(heavy)),
  ]);
} finally {
  await servers?.[Symbol.asyncDispose]();
}
run.finish();

/** Those that take longest first: nobody waits for one of them at the end. */
function groupsOf(paths: readonly string[]): readonly (readonly string[])[] {
  const groups: string[][] = [];
  for (const path of paths) {
    const last = groups.at(-1);
    const [before = ''] = last ?? [];
    if (
      last !== undefined &&
      last.length < sharedMax &&
      mayShare(path) &&
      mayShare(before) &&
      dirname(before) === dirname(path)
    ) {
      last.push(path);
    } else {
      groups.push([path]);
    }
  }
  const isLong = (group: readonly string[]): boolean =>
    group.some((path) => longest.some((word) => path.includes(word)));
  return [...groups.filter(isLong), ...groups.filter((group) => !isLong(group))];
}
