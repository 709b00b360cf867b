import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { lintLimits, lintPaths } from './lint-paths.ts';

const bad = "get('app:core:banking:currency:v1:USD');\n";

/** A temporary folder with these files. */
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
  test('lints the code files below a folder in order, without node_modules, dist and hidden folders', async () => {
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

  test('reports the skipped files with the reason', async () => {
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

  test('lints a file once even if several paths contain it', async () => {
    await using folder = await folderWith({ 'a/b.ts': bad });
    const paths = [folder.path, join(folder.path, 'a'), join(folder.path, 'a', 'b.ts')];
    assert.equal((await lintPaths(paths)).findings.length, 1);
  });

  test('the payments module of this repository has no findings', async () => {
    const { findings } = await lintPaths([join(import.meta.dirname, '../../../modules/payments')]);
    assert.deepEqual(findings, []);
  });

  test('a path that does not exist is an error', async () => {
    await assert.rejects(lintPaths(['no/such/path']), (error) => hasCode(error, 'USAGE'));
  });

  test('reports its progress and stops when it is aborted', async () => {
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

  test('stops at the limit of findings and reports it', async () => {
    await using folder = await folderWith({
      'a.ts': bad.trim().repeat(9_999),
      'b.ts': bad.repeat(2),
      'c.ts': bad,
    });
    const { findings, files, truncated } = await lintPaths([folder.path]);
    assert.deepEqual([findings.length, files, truncated], [lintLimits.findingsMax, 2, true]);
  });
});
