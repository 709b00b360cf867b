// A workflow runs only actions of a fixed commit, with read permission, and keeps no credentials.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
}

interface Step {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

test('workflows pin their actions, and get no more than read permission', () => {
  const folder = fileURLToPath(new URL('../../.github/workflows/', import.meta.url));
  const files = globSync('*.{yml,yaml}', { cwd: folder });
  assert.ok(files.length > 0);
  for (const file of files) {
    const { permissions, jobs } = parse(readFileSync(`${folder}${file}`, 'utf8')) as Workflow;
    assert.deepEqual(permissions, { contents: 'read' }, file);
    for (const { uses, with: given } of Object.values(jobs).flatMap(({ steps }) => steps)) {
      if (uses === undefined) continue;
      assert.match(uses, /@[0-9a-f]{40}$/, file);
      const isCheckout = uses.startsWith('actions/checkout@');
      if (isCheckout) assert.equal(given?.['persist-credentials'], false, file);
    }
  }
});
