// The strings of a source file: literals, templates and concatenations, each with its usage.

import type { Node } from 'oxc-parser';

export interface SourceText {
  readonly start: number;
  readonly end: number;
  /** The characters of the string, with one placeholder character for each expression in it. */
  readonly form: string;
  /** The source code of the expressions, in order. */
  readonly expressions: readonly string[];
  readonly usage: Usage;
}

/** How the code uses a string. */
export interface Usage {
  /** Names of the property, variable or enum that contains it, or of the value it is compared with; innermost first. */
  readonly names: readonly string[];
  /** It is a key of an object. */
  readonly isKey: boolean;
  /** The object property whose value it is. */
  readonly property: string | undefined;
  /** The call that it is an argument of. */
  readonly call: { readonly callee: string; readonly index: number } | undefined;
}

/** Placeholders are private-use characters; in a literal, such a character becomes a space. */
const firstPlaceholder = 0xe000;
const placeholders = /[\ue000-\uf8ff]/g;
/** A string of more pieces is not a name. */
const piecesMax = 100;

interface Position {
  readonly node: Node;
  readonly parent: Position | undefined;
  /** The field of the parent that contains the node. */
  readonly key: string;
}

export function sourceTexts(
  program: Node,
  source: string,
  visitorKeys: Readonly<Record<string, readonly string[]>>,
): readonly SourceText[] {
  const texts: SourceText[] = [];
  const pending: Position[] = [{ node: program, parent: undefined, key: '' }];
  // Iterative: generated code can nest deeper than the stack allows.
  for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
    const { node, parent } = position;
    const pieces = piecesOf(node);
    if (pieces === undefined) {
      pending.push(...childrenOf(position, visitorKeys[node.type] ?? []));
      continue;
    }
    const expressions = pieces.filter((piece) => typeof piece !== 'string');
    pending.push(...expressions.map((child) => ({ node: child, parent: position, key: '' })));
    // The tag function defines the meaning of a tagged template: SQL, for example.
    if (pieces.length > piecesMax || parent?.node.type === 'TaggedTemplateExpression') continue;
    const form = pieces.map((piece) =>
      typeof piece === 'string'
        ? piece.replace(placeholders, ' ')
        : String.fromCharCode(firstPlaceholder + expressions.indexOf(piece)),
    );
    texts.push({
      start: node.start,
      end: node.end,
      form: form.join(''),
      expressions: expressions.map(({ start, end }) => source.slice(start, end)),
      usage: usageOf(position),
    });
  }
  return texts;
}

export function hasPlaceholder(fragment: string): boolean {
  return fragment.search(placeholders) !== -1;
}

/** Code for a part of a form: `'currency'`, `tenant`, or a template of both. */
export function fragmentCode(fragment: string, { expressions }: SourceText): string {
  const expressionAt = (placeholder: string): string =>
    expressions[placeholder.charCodeAt(0) - firstPlaceholder] ?? '';
  if (!hasPlaceholder(fragment)) return quote(fragment);
  if (fragment.length === 1) return expressionAt(fragment);
  const body = fragment
    .replace(/[\\`]|\$(?=\{)/g, '\\$&')
    .replace(placeholders, (placeholder) => `\${${expressionAt(placeholder)}}`);
  return `\`${body}\``;
}

export function quote(value: string): string {
  const json = JSON.stringify(value).slice(1, -1);
  return `'${json.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** Literal text and expressions that the node joins; `undefined` if it is not known to be a string. */
function piecesOf(node: Node): readonly (string | Node)[] | undefined {
  if (node.type === 'Literal') return typeof node.value === 'string' ? [node.value] : undefined;
  if (node.type === 'TemplateLiteral') {
    return node.quasis.flatMap(({ value }, index) => {
      const expression = node.expressions[index];
      return expression === undefined ? [value.cooked ?? ''] : [value.cooked ?? '', expression];
    });
  }
  const operands: Node[] = [];
  let left: Node = node;
  for (; left.type === 'BinaryExpression' && left.operator === '+'; left = left.left) {
    operands.push(left.right);
  }
  if (operands.length === 0) return undefined;
  const pieces = [left, ...operands.toReversed()].flatMap(
    (operand) => piecesOf(operand) ?? [operand],
  );
  return pieces.some((piece) => typeof piece === 'string') ? pieces : undefined;
}

function childrenOf(parent: Position, keys: readonly string[]): readonly Position[] {
  const fields = parent.node as unknown as Readonly<Record<string, unknown>>;
  return keys.flatMap((key) =>
    [fields[key]]
      .flat()
      .filter((child) => typeof child === 'object' && child !== null)
      .map((child) => ({ node: child as Node, parent, key })),
  );
}

const boundary = /Statement$|Declaration$|Function|^TemplateLiteral$|^MemberExpression$|^Program$/;

/** Follows the parents of a string up to the statement or call that uses it. */
function usageOf(text: Position): Usage {
  const names: string[] = [];
  let property: string | undefined;
  let isKey = false;
  const usage = (call?: Usage['call']): Usage => ({ names, isKey, property, call });
  const addName = (node: Node | null): void => {
    const name = nameOf(node);
    if (name !== undefined) names.push(name);
  };
  for (let child = text; child.parent !== undefined; child = child.parent) {
    const { node, parent } = child.parent;
    switch (node.type) {
      case 'Property':
      case 'PropertyDefinition':
      case 'TSPropertySignature':
        if (child.key === 'key') {
          isKey ||= child === text;
          break;
        }
        if (node.type === 'Property' && names.length === 0) property = nameOf(node.key);
        addName(node.key);
        break;
      case 'JSXAttribute':
        addName(node.name);
        break;
      case 'TSEnumMember':
      case 'TSEnumDeclaration':
      case 'TSTypeAliasDeclaration':
      case 'VariableDeclarator':
        addName(node.id);
        break;
      case 'AssignmentExpression':
      case 'AssignmentPattern':
        addName(node.left);
        break;
      case 'BinaryExpression':
        if (/^[!=]==?$/.test(node.operator)) addName(child.key === 'left' ? node.right : node.left);
        return usage();
      case 'SwitchCase':
        if (child.key === 'test' && parent?.node.type === 'SwitchStatement') {
          addName(parent.node.discriminant);
        }
        return usage();
      case 'CallExpression':
      case 'NewExpression': {
        const callee = nameOf(node.callee);
        if (callee === 'Set' || callee === 'freeze') break;
        const index = node.arguments.findIndex((argument) => argument === child.node);
        const isArgument = callee !== undefined && index >= 0 && names.length === 0;
        return usage(isArgument ? { callee, index } : undefined);
      }
      default:
        if (boundary.test(node.type)) return usage();
    }
  }
  return usage();
}

/** The identifier of an expression, key or pattern; the last one of `event.type`. */
function nameOf(node: Node | null): string | undefined {
  switch (node?.type) {
    case 'Identifier':
    case 'JSXIdentifier':
      return node.name;
    case 'Literal':
      return typeof node.value === 'string' ? node.value : undefined;
    case 'MemberExpression':
      return nameOf(node.property);
    case 'ChainExpression':
      return nameOf(node.expression);
    default:
      return undefined;
  }
}
