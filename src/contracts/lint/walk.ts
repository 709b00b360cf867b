// The one walk over a syntax tree: it finds the texts and the calls, and the rules judge them.

import type { Node, Spot } from './spot.ts';
import { readText, type Text } from './text.ts';

type VisitorKeys = Readonly<Record<string, readonly string[]>>;

export interface Visitor {
  text(text: Text): void;
  call(spot: Spot): void;
}

export interface WalkInput {
  readonly program: Node;
  readonly source: string;
  readonly keys: VisitorKeys;
  readonly constants: ReadonlyMap<string, string>;
}

/** Iterative: a long chain of `+` or of calls is as deep a tree as it is long. */
export function walk({ program, source, keys, constants }: WalkInput, visitor: Visitor): void {
  const pending: Spot[] = [{ node: program, parent: undefined, key: '' }];
  for (let spot = pending.pop(); spot !== undefined; spot = pending.pop()) {
    const { node } = spot;
    const read = readText(spot, source, constants);
    if (read !== undefined) {
      if (read.text !== undefined && !isTagged(spot)) visitor.text(read.text);
      for (const inner of read.inner) pending.push({ node: inner, parent: spot, key: 'hole' });
      continue;
    }
    if (node.type === 'CallExpression' || node.type === 'NewExpression') visitor.call(spot);
    for (const key of keys[node.type] ?? []) {
      if (isModuleName(node, key)) continue;
      const child = (node as unknown as Readonly<Record<string, unknown>>)[key];
      if (Array.isArray(child)) {
        for (const item of child as readonly unknown[]) push(pending, item, spot, key);
      } else {
        push(pending, child, spot, key);
      }
    }
  }
}

function push(pending: Spot[], child: unknown, parent: Spot, key: string): void {
  if (typeof child === 'object' && child !== null) {
    pending.push({ node: child as Node, parent, key });
  }
}

/** The tag decides what its template becomes: SQL, a regex, a query; not a name of ours. */
function isTagged({ parent }: Spot): boolean {
  return parent?.node.type === 'TaggedTemplateExpression';
}

/** Texts that name a module, and directives, are never names of ours. */
function isModuleName(node: Node, key: string): boolean {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return key === 'source';
    case 'ImportAttribute':
    case 'TSExternalModuleReference':
      return true;
    case 'TSModuleDeclaration':
      return key === 'id';
    case 'ExpressionStatement':
      return 'directive' in node && typeof node.directive === 'string';
    default:
      return false;
  }
}
