// Examples in the sources and in the documents. test/packed-package.full.test.ts compiles them.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { findExamples, type Example } from './examples.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

test('every exported value of a public folder carries an example', async () => {
  const missing: string[] = [];
  for (const index of globSync(['src/*/index.ts', 'src/{engines,destinations,nest}/*/index.ts'], {
    cwd: root,
  })) {
    const source = readFileSync(join(root, index), 'utf8');
    for (const [, names = '', file = ''] of source.matchAll(/export \{([^}]+)\} from '(.+?)';/g)) {
      const declaring = readFileSync(join(root, index, '..', file), 'utf8');
      const values = names.split(',').map((name) => name.trim());
      for (const name of values.filter((value) => value !== '' && !value.startsWith('type '))) {
        if (!documented(declaring, name)) missing.push(`${index}: ${name}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});

test('only the Nest examples use decorators, and no example uses syntax that Node cannot strip', () => {
  const isNest = ({ code }: Example): boolean => code.includes("'@nestjs/");
  const examples = findExamples().filter((each) => !isNest(each));
  assert.ok(examples.length > 30, `only ${examples.length} examples found`);
  const found = examples.filter(({ code }) => !isErasable(code));
  assert.deepEqual(
    found.map(({ where }) => where),
    [],
  );
  assert.ok(isErasable('class A { readonly a: number = 1; readonly b = 1n; }'));
  assert.ok(!isErasable('class A { constructor(private readonly a: number) {} }'));
  assert.ok(!isErasable('enum A { B }'));
  assert.ok(!isErasable('namespace A { export const b = 1; }'));
  assert.ok(!isErasable("import a = require('a');"));
  assert.ok(!isErasable('class A { @b c() {} }'));
});

const notErasable =
  /"type":"(?:TSEnumDeclaration|TSParameterProperty|TSModuleDeclaration|TSImportEqualsDeclaration|TSExportAssignment|Decorator)"/;

function isErasable(code: string): boolean {
  const { program, errors } = parseSync('example.ts', code);
  assert.deepEqual(errors, [], code);
  const text = JSON.stringify(program, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return !notErasable.test(text);
}

/** Constants of plain data need no example; functions, classes and composed values do. */
function documented(source: string, name: string): boolean {
  const declaration = new RegExp(
    `(/\\*\\*(?:(?!\\*/)[^])*\\*/\\s*)?export (?:async |abstract )?(function\\*?|class|const) ${name}\\b`,
  ).exec(source);
  if (declaration === null) return false;
  const [, comment = '', kind] = declaration;
  const isData =
    kind === 'const' &&
    /^[a-z]\w*(Limits|Backoff|Codes|JsonSchema|Rules|Header|Position)$/.test(name);
  return isData || comment.includes('@example');
}
