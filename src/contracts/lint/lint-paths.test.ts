import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { lintLimits, lintPaths } from './lint-paths.ts';

const bad = "get('app:core:banking:currency:v1:USD');\n";

/** A folder with these files, gone at the end of the test. */
async function folderWith(
  files: Readonly<Record<string, string>>,
): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'millrace-lint-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), text);
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

describe('linting paths', () => {
  test('reads all code below a folder, in a stable order, and nothing that is not ours', async () => {
    await using folder = await folderWith({
      'b.ts': bad,
      'a.mjs': bad,
      'deep/er/c.tsx': bad,
      'deep/d.cts': bad,
      'node_modules/x/index.js': bad,
      'deep/node_modules/y.js': bad,
      'dist/z.js': bad,
      '.git/hook.js': bad,
      'notes.md': bad,
    });
    await symlink(folder.path, join(folder.path, 'deep', 'circle'));
    const { findings, files, skipped, truncated } = await lintPaths([folder.path]);
    assert.deepEqual(
      findings.map(({ file }) => relative(folder.path, file)),
      ['a.mjs', 'b.ts', 'deep/d.cts', 'deep/er/c.tsx'],
    );
    assert.deepEqual([files, skipped, truncated], [4, [], false]);
  });

  test('says which files it skipped and why', async () => {
    await using folder = await folderWith({
      'big.ts': `// ${'x'.repeat(lintLimits.fileBytesMax)}`,
      'video.ts': 'G\0\u0011\u0000',
      'notes.md': bad,
      'broken.ts': 'const = ;',
    });
    const paths = [folder.path, join(folder.path, 'notes.md')];
    const { findings, files, skipped } = await lintPaths(paths);
    assert.deepEqual(
      skipped.map(({ file, reason }) => [relative(folder.path, file), reason]),
      [
        ['big.ts', 'larger than 1048576 bytes'],
        ['video.ts', 'not text'],
        ['notes.md', 'not TypeScript or JavaScript'],
      ],
    );
    assert.deepEqual([findings.length, findings[0]?.rule, files], [1, 'syntax', 1]);
  });

  test('reads a file once though two paths lead to it', async () => {
    await using folder = await folderWith({ 'a/b.ts': bad });
    const paths = [folder.path, join(folder.path, 'a'), join(folder.path, 'a', 'b.ts')];
    assert.equal((await lintPaths(paths)).findings.length, 1);
  });

  test('a path that does not exist is an error, not a clean run', async () => {
    await assert.rejects(lintPaths(['no/such/path']), (error) => hasCode(error, 'USAGE'));
  });

  test('tells its progress and stops when asked', async () => {
    await using folder = await folderWith({ 'a.ts': bad, 'b.ts': bad, 'c.ts': bad });
    const stopping = new AbortController();
    const seen: string[] = [];
    const run = lintPaths([folder.path], {
      signal: stopping.signal,
      onProgress: ({ file, files, findings }) => {
        seen.push(`${relative(folder.path, file)} ${files} ${findings}`);
        if (files === 1) stopping.abort();
      },
    });
    await assert.rejects(run, (error) => hasCode(error, 'ABORTED'));
    assert.deepEqual(seen, ['a.ts 0 0', 'b.ts 1 1']);
  });

  test('ends at the limit of findings and says so', async () => {
    await using folder = await folderWith({
      'a.ts': bad.repeat(9_999),
      'b.ts': bad.repeat(2),
      'c.ts': bad,
    });
    const { findings, files, truncated } = await lintPaths([folder.path]);
    assert.deepEqual([findings.length, files, truncated], [lintLimits.findingsMax, 2, true]);
  });
});
