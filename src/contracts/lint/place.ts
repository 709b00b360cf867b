// What a text is used for: the name that it is given, what it is compared with, whose argument it is.

import { nameOf, type Node, type Spot } from './spot.ts';

export interface Place {
  /** The property, variable, field or enum member that gets the text. */
  readonly name: string | undefined;
  /** The name is a property's: the text goes into an object, to be read under that name. */
  readonly isProperty: boolean;
  /** What stands around it: the variable of its object, its enum, the function that returns it. */
  readonly holders: readonly string[];
  /** The other side of `===`, or the value that a `switch` looks at. */
  readonly comparedWith: string | undefined;
  readonly argument: Argument | undefined;
  /** Where only some code may stand: a type, an object's key, an attribute in JSX. */
  readonly slot: 'expression' | 'type' | 'key' | 'enum' | 'attribute';
}

interface Argument {
  readonly callee: string;
  readonly index: number;
  readonly count: number;
}

interface Draft {
  name: string | undefined;
  isProperty: boolean;
  readonly holders: string[];
  comparedWith: string | undefined;
  argument: Argument | undefined;
  slot: Place['slot'];
  returned: boolean;
}

/** Climbs from the text through whatever only passes it on. */
export function placeOf(spot: Spot): Place {
  const draft: Draft = {
    name: undefined,
    isProperty: false,
    holders: [],
    comparedWith: undefined,
    argument: undefined,
    slot: 'expression',
    returned: false,
  };
  for (let at: Spot | undefined = spot; at?.parent !== undefined; at = at.parent) {
    if (!climb(at, at.parent, draft)) break;
  }
  return draft;
}

/** Notes what the parent says about its child; `true` while there is more to learn further up. */
function climb({ node: child, key }: Spot, { node, parent }: Spot, draft: Draft): boolean {
  switch (node.type) {
    case 'Property':
    case 'PropertyDefinition':
    case 'TSPropertySignature':
    case 'MethodDefinition':
      if (key === 'key') draft.slot = node.computed ? 'expression' : 'key';
      else {
        draft.isProperty ||= draft.name === undefined && !draft.returned;
        called(draft, nameOf(node.key));
      }
      return true;
    case 'TSEnumMember':
      draft.slot = 'enum';
      called(draft, nameOf(node.id));
      return true;
    case 'JSXAttribute':
      if (child.type !== 'JSXExpressionContainer') draft.slot = 'attribute';
      called(draft, nameOf(node.name));
      return false;
    case 'VariableDeclarator':
    case 'TSEnumDeclaration':
    case 'TSTypeAliasDeclaration':
      called(draft, nameOf(node.id));
      return false;
    case 'AssignmentExpression':
    case 'AssignmentPattern':
      called(draft, nameOf(node.left));
      return false;
    case 'ArrowFunctionExpression':
    case 'FunctionDeclaration':
    case 'FunctionExpression':
      // What a function returns is not what its caller is given as an argument.
      draft.returned = true;
      if (node.id !== null) draft.holders.push(node.id.name);
      return node.id === null;
    case 'BinaryExpression':
      if (/^[!=]==?$/.test(node.operator)) {
        draft.comparedWith = nameOf(key === 'left' ? node.right : node.left);
      }
      return false;
    case 'SwitchCase':
      if (key === 'test' && parent?.node.type === 'SwitchStatement') {
        draft.comparedWith = nameOf(parent.node.discriminant);
      }
      return false;
    case 'CallExpression':
    case 'NewExpression':
      return key === 'arguments' && asArgument(child, node, draft);
    case 'MemberExpression':
      // `['payment.completed.v1'].includes(event.type)` compares as well.
      if (parent?.node.type === 'CallExpression' && nameOf(node.property) === 'includes') {
        draft.comparedWith = nameOf(parent.node.arguments[0]);
      }
      return false;
    case 'TSLiteralType':
      draft.slot = 'type';
      return true;
    default:
      return passesOn.has(node.type) && key !== 'test';
  }
}

const passesOn = new Set<Node['type']>([
  'ArrayExpression',
  'BlockStatement',
  'ChainExpression',
  'ConditionalExpression',
  'JSXExpressionContainer',
  'LogicalExpression',
  'ObjectExpression',
  'ParenthesizedExpression',
  'ReturnStatement',
  'TSAsExpression',
  'TSEnumBody',
  'TSInterfaceBody',
  'TSSatisfiesExpression',
  'TSTypeAnnotation',
  'TSTypeLiteral',
  'TSUnionType',
]);

function called(draft: Draft, name: string | undefined): void {
  if (name === undefined) return;
  if (draft.name === undefined) draft.name = name;
  else draft.holders.push(name);
}

function asArgument(
  child: Node,
  node: Extract<Node, { type: 'CallExpression' | 'NewExpression' }>,
  draft: Draft,
): boolean {
  const callee = nameOf(node.callee);
  // These hand their argument on: `Object.freeze({…})`, `new Set([…])`.
  if (callee === 'freeze' || callee === 'Set') return true;
  if (draft.name === undefined && callee !== undefined && !draft.returned) {
    const index = node.arguments.findIndex((argument) => argument === child);
    draft.argument = { callee, index, count: node.arguments.length };
  }
  return false;
}
