// The tables of engines in the README and of settings in docs/engines.md agree with the table that the platform uses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { EngineName } from '../src/contracts/engine-url.ts';
import { engineTable, roleTable, type RoleName } from '../src/platform/engines/engine-table.ts';

const roles = Object.entries(roleTable) as [RoleName, (typeof roleTable)[RoleName]][];

function rowsAfter(file: string, heading: string): readonly (readonly string[])[] {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  const [, after = ''] = text.split(heading);
  const table = /\n(\|[^\n]*\n)+/.exec(after)?.[0] ?? assert.fail(`no table after ${heading}`);
  return table
    .trim()
    .split('\n')
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

test('the README lists the roles of each engine', () => {
  const [titles = [], , ...rows] = rowsAfter('README.md', '## Engines');
  const engines = titles.slice(1).map((title) => {
    const found = Object.entries(engineTable).find(([, row]) => row.title === title);
    return (found?.[0] ?? assert.fail(title)) as EngineName;
  });
  assert.deepEqual(new Set(engines), new Set(Object.keys(engineTable)));
  const listed = new Set<RoleName>();
  for (const [names = '', ...cells] of rows) {
    for (const title of names.replace(/\(.*\)/, '').split(',')) {
      const role = roles.find(([, row]) => row.title === title.trim())?.[0];
      // Circuit breakers are roles of handles, which the platform does not use.
      if (role === undefined) continue;
      listed.add(role);
      for (const [at, engine] of engines.entries()) {
        assert.equal(
          cells[at] === '✓',
          engineTable[engine].roles.includes(role),
          `${engine}: ${role}`,
        );
      }
    }
  }
  assert.deepEqual([...listed].toSorted(), roles.map(([role]) => role).toSorted());
});

test('docs/engines.md lists the settings of each role', () => {
  const [, , ...rows] = rowsAfter('docs/engines.md', '## Which engine has a role');
  for (const [role, { fields }] of roles) {
    const row = rows.find((cells) => cells[1] === `\`${role}\``) ?? assert.fail(role);
    const settings = [...(row[2] ?? '').matchAll(/MILLRACE_([A-Z]+)/g)].map(([, name = '']) =>
      name.toLowerCase(),
    );
    assert.deepEqual(settings, fields, role);
  }
});
