// A string as the code puts it together (literal, template, `+`, `[…].join`), in one form: its
// fixed characters, and a placeholder for every expression. Rules match that form with plain regexes.

import type { Node, Spot } from './spot.ts';

/** Beyond this many expressions, it is a document and not a name. */
const holesMax = 64;
const firstHole = 0xe000;

/** One placeholder, for use inside a character class of a regex. */
export const holeRange = `\\u{e000}-\\u{${(firstHole + holesMax - 1).toString(16)}}`;
const hole = new RegExp(`[${holeRange}]`, 'u');
const allHoles = new RegExp(`[${holeRange}]`, 'gu');
const onlyHole = new RegExp(`^[${holeRange}]$`, 'u');

export interface Text {
  readonly spot: Spot;
  readonly start: number;
  readonly end: number;
  /** The characters, each expression as one private-use character. */
  readonly form: string;
  /** The source code of the expressions, in order. */
  readonly holes: readonly string[];
  /** Nothing in it is computed. */
  readonly constant: boolean;
}

export interface ReadText {
  readonly text: Text | undefined;
  /** Expressions inside, which may hold texts of their own. */
  readonly inner: readonly Node[];
}

/**
 * Reads the text that starts at this node; `undefined` when the node does not make a string.
 * `constants` are the file's own string constants: one at the front of a text is read through,
 * because `${PREFIX}:{…}` goes past the builders as well.
 */
export function readText(
  spot: Spot,
  source: string,
  constants: ReadonlyMap<string, string>,
): ReadText | undefined {
  if (!startsText(spot.node)) return undefined;
  const inner: Node[] = [];
  const holes: string[] = [];
  let form = '';
  let hasString = false;
  // Worked off from the front; not by recursion, since generated code nests thousands of `+`.
  const pending: (Node | string)[] = [spot.node];
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if (typeof part === 'string') {
      form += part;
      continue;
    }
    const pieces = piecesOf(part);
    if (pieces !== undefined) {
      hasString ||= makesString(part);
      for (let index = pieces.length - 1; index >= 0; index -= 1) {
        pending.push(pieces[index] as Node | string);
      }
      continue;
    }
    const constant = form === '' && part.type === 'Identifier' && constants.get(part.name);
    if (typeof constant === 'string') {
      form += constant;
    } else {
      form += String.fromCodePoint(firstHole + Math.min(holes.length, holesMax));
      holes.push(codeOf(part, source));
      inner.push(part);
    }
  }
  if (!hasString) return undefined;
  const { start, end } = spot.node;
  // Source text with private-use characters of its own would be taken for placeholders.
  const readable = holes.length < holesMax && (form.match(allHoles)?.length ?? 0) === holes.length;
  return {
    inner,
    text: readable ? { spot, start, end, form, holes, constant: holes.length === 0 } : undefined,
  };
}

export function hasHole(fragment: string): boolean {
  return hole.test(fragment);
}

/** The code of a piece of a text: `'currency'`, `tenant`, or a template of both. */
export function fragmentCode(fragment: string, { holes }: Text): string {
  const codeAt = (placeholder: string): string =>
    holes[(placeholder.codePointAt(0) ?? 0) - firstHole] ?? '';
  if (onlyHole.test(fragment)) return codeAt(fragment);
  if (!hasHole(fragment)) return quote(fragment);
  const body = fragment
    .replace(/[\\`]|\$(?=\{)/g, '\\$&')
    .replace(allHoles, (placeholder) => `\${${codeAt(placeholder)}}`);
  return `\`${body}\``;
}

/** `1` for a written version, the expression for a computed one; `undefined` for a mixture. */
export function versionCode(fragment: string, text: Text): string | undefined {
  if (onlyHole.test(fragment)) return fragmentCode(fragment, text);
  return /^0*[1-9]\d{0,8}$/.test(fragment) ? String(Number(fragment)) : undefined;
}

export function quote(value: string): string {
  const json = JSON.stringify(value).slice(1, -1);
  return `'${json.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function startsText(node: Node): boolean {
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string';
    case 'TemplateLiteral':
    case 'BinaryExpression':
    case 'CallExpression':
      return piecesOf(node) !== undefined;
    default:
      return false;
  }
}

/** What a node joins, in order; `undefined` when it is an expression like any other. */
function piecesOf(node: Node): readonly (Node | string)[] | undefined {
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string' || isNumber(node) ? [String(node.value)] : undefined;
    case 'TemplateLiteral':
      return node.quasis.flatMap((quasi, index) => {
        const expression = node.expressions[index];
        const cooked = quasi.value.cooked ?? '';
        return expression === undefined ? [cooked] : [cooked, expression];
      });
    case 'BinaryExpression':
      return node.operator === '+' ? [node.left, node.right] : undefined;
    case 'CallExpression':
      return joinedPieces(node);
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
      return piecesOf(node.expression) === undefined ? undefined : [node.expression];
    default:
      return undefined;
  }
}

/** `[a, b].join(':')` reads as `a + ':' + b`. */
function joinedPieces(
  node: Extract<Node, { type: 'CallExpression' }>,
): (Node | string)[] | undefined {
  const { callee } = node;
  if (callee.type !== 'MemberExpression' || callee.computed) return undefined;
  if (callee.object.type !== 'ArrayExpression' || callee.property.type !== 'Identifier')
    return undefined;
  const separator = node.arguments[0];
  if (callee.property.name !== 'join' || separator?.type !== 'Literal') return undefined;
  if (typeof separator.value !== 'string') return undefined;
  const pieces: (Node | string)[] = [];
  for (const element of callee.object.elements) {
    if (element === null || element.type === 'SpreadElement') return undefined;
    if (pieces.length > 0) pieces.push(separator.value);
    pieces.push(element);
  }
  return pieces;
}

/** A sum is a string only when something in it is. */
function makesString(node: Node): boolean {
  if (node.type === 'Literal') return typeof node.value === 'string';
  return node.type === 'TemplateLiteral' || node.type === 'CallExpression';
}

function isNumber(node: Node): boolean {
  return node.type === 'Literal' && typeof node.value === 'number';
}

function codeOf(node: Node, source: string): string {
  const code = source.slice(node.start, node.end);
  return node.type === 'SequenceExpression' ? `(${code})` : code;
}
