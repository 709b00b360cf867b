// What a file says about itself, gathered before its rules run.

import type { Node } from 'oxc-parser';
import type { Imported } from './rule.ts';

interface StaticImport {
  readonly moduleRequest: { readonly value: string };
  readonly entries: readonly {
    readonly importName: { readonly name: string | null };
    readonly localName: { readonly value: string };
  }[];
}

/** Local name → what it is called where it comes from. */
export function importsOf(statements: readonly StaticImport[]): ReadonlyMap<string, Imported> {
  return new Map(
    statements.flatMap(({ moduleRequest, entries }) =>
      entries.map(({ importName, localName: { value: local } }): [string, Imported] => [
        local,
        { name: importName.name ?? local, module: moduleRequest.value },
      ]),
    ),
  );
}

/** Constants that can begin a name; others stay expressions, which read better in a suggestion. */
const beginsName = /[.:]|^(?:app|mq|job|sub|checkpoint)$/;

/** The strings that the file's top level gives a name to, and that names may begin with. */
export function constantsOf(
  body: readonly Node[],
  roots: readonly string[],
): ReadonlyMap<string, string> {
  const constants = new Map<string, string>();
  for (const statement of body) {
    const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (node?.type !== 'VariableDeclaration' || node.kind !== 'const') continue;
    for (const { id, init } of node.declarations) {
      const literal = init?.type === 'TSAsExpression' ? init.expression : init;
      if (id.type !== 'Identifier' || literal?.type !== 'Literal') continue;
      const { value } = literal;
      if (typeof value !== 'string') continue;
      if (beginsName.test(value) || roots.includes(value)) constants.set(id.name, value);
    }
  }
  return constants;
}
