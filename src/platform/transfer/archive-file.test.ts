import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { openArchiveFile } from './archive-file.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-archive-'));
after(() => rm(folder, { recursive: true, force: true }));

const batch = (name: string): string =>
  ['1', '2'].map((at) => `${JSON.stringify({ id: `${name}${at}` })}\n`).join('');
const [one, two, three] = [batch('one'), batch('two'), batch('three')];

async function append(path: string, lines: string): Promise<number> {
  await using file = await openArchiveFile(path);
  await file.append(lines);
  return (await stat(path)).size;
}

async function textOf(path: string): Promise<string> {
  const bytes = await readFile(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
}

for (const name of ['sent.ndjson', 'sent.ndjson.gz']) {
  test(`${name} is continued, wherever the last write was interrupted`, async () => {
    const path = join(folder, name);
    const begun = await append(path, one);
    const whole = await append(path, two);
    const bytes = await readFile(path);
    assert.equal(await textOf(path), one + two);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    for (let cut = begun; cut <= whole; cut += 1) {
      await writeFile(path, bytes.subarray(0, cut));
      await append(path, three);
      const text = await textOf(path);
      // Only the complete lines of an interrupted batch remain.
      assert.ok(text.startsWith(one) && text.endsWith(three), `cut at ${cut}`);
      const between = text.slice(one.length, -three.length);
      assert.ok(two.startsWith(between) && /^$|\n$/.test(between), `cut at ${cut}`);
      assert.equal(between === two, cut === whole);
    }
  });

  test(`${name} is rejected and unchanged if it is not an archive`, async () => {
    const path = join(folder, `other-${name}`);
    const texts = ['hello', 'hello\n', '{"hello":1}\n', '{"id":1}\nhello\n'];
    for (const content of [...texts, gzipSync('hello')]) {
      if (path.endsWith('.gz') && content === '{"id":1}\nhello\n') continue;
      await writeFile(path, content);
      await assert.rejects(openArchiveFile(path), { code: 'CONFIG_INVALID' });
      assert.deepEqual(await readFile(path), Buffer.from(content));
    }
  });
}

test('an incomplete compressed batch is truncated', async () => {
  const path = join(folder, 'holes.ndjson.gz');
  const begun = await append(path, one);
  const whole = await append(path, two);
  // The header with the length was written, but not the whole member.
  await truncate(path, whole - 12);
  await truncate(path, whole);
  await append(path, three);
  assert.equal(await textOf(path), one + three);
  await truncate(path, begun);
  await truncate(path, begun + 50);
  await append(path, three);
  assert.equal(await textOf(path), one + three);
});

test('a file that cannot be written is reported with its path', async () => {
  const path = join(folder, 'nowhere', 'sent.ndjson');
  await assert.rejects(openArchiveFile(path), { code: 'CONFIG_INVALID', message: /nowhere/ });
});
