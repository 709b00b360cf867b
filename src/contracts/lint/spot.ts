// A syntax node together with the way to it, so that rules can ask what a text is used for.

import type { Node } from 'oxc-parser';

export type { Node };

export interface Spot {
  readonly node: Node;
  readonly parent: Spot | undefined;
  /** The field of the parent that holds the node. */
  readonly key: string;
}

/** What an expression, a key or a pattern is called; the last part of a dotted one. */
export function nameOf(node: Node | null | undefined): string | undefined {
  switch (node?.type) {
    case 'Identifier':
    case 'JSXIdentifier':
    case 'PrivateIdentifier':
      return node.name;
    case 'Literal':
      return typeof node.value === 'string' ? node.value : undefined;
    case 'MemberExpression':
      return nameOf(node.property);
    case 'ChainExpression':
    case 'TSNonNullExpression':
    case 'TSAsExpression':
      return nameOf(node.expression);
    default:
      return undefined;
  }
}

/** `redisKeys.snapshot` or `buildEventType`; `undefined` for anything that is computed. */
export function dottedName(node: Node): string | undefined {
  if (node.type === 'Identifier') return node.name;
  if (node.type !== 'MemberExpression' || node.computed) return undefined;
  const [object, property] = [dottedName(node.object), nameOf(node.property)];
  return object === undefined || property === undefined ? undefined : `${object}.${property}`;
}
