// Parses Go's template language, as far as ntfy allows it to publishers. Pure.

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly pipe: TemplatePipe }
  | {
      readonly kind: 'if' | 'with' | 'range';
      readonly pipe: TemplatePipe;
      readonly body: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    }
  | { readonly kind: 'break' | 'continue' };

export interface TemplatePipe {
  /** `$i, $each := …` */
  readonly variables: readonly string[];
  readonly isAssignment: boolean;
  readonly commands: readonly TemplateCommand[];
}

/** A value, or a function and its arguments. */
export type TemplateCommand = readonly [TemplateTerm, ...(readonly TemplateTerm[])];

export type TemplateTerm =
  | { readonly kind: 'dot' }
  | { readonly kind: 'value'; readonly value: string | number | bigint | boolean | undefined }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'pipe'; readonly pipe: TemplatePipe }
  | { readonly kind: 'field'; readonly of: TemplateTerm; readonly names: readonly string[] };

/** Why a template cannot be used; `disallowed`: it uses features that publishers may not use. */
export class TemplateProblem extends Error {
  readonly kind: 'syntax' | 'disallowed' | 'failed' | 'endless';
  constructor(kind: TemplateProblem['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

interface Piece {
  readonly isAction: boolean;
  readonly text: string;
}

const depthMax = 100;

export function parseTemplate(
  text: string,
  isFunction: (name: string) => boolean,
): readonly TemplateNode[] {
  const pieces = cut(text);
  let at = 0;
  const wrong = (message: string): TemplateProblem => new TemplateProblem('syntax', message);

  function list(depth: number): { nodes: TemplateNode[]; end: string; rest: string } {
    if (depth > depthMax) throw wrong('too deep');
    const nodes: TemplateNode[] = [];
    for (; at < pieces.length;) {
      const { isAction, text: piece } = pieces[at] as Piece;
      at += 1;
      if (!isAction) {
        if (piece !== '') nodes.push({ kind: 'text', text: piece });
        continue;
      }
      const [, word = ''] = /^\s*([a-z]+)\b/.exec(piece) ?? [];
      const rest = piece.slice(piece.indexOf(word) + word.length);
      if (piece.trim() === '' && !/^\s*\/\*/.test(piece)) throw wrong('missing value for command');
      if (/^\s*\/\*[\s\S]*\*\/\s*$/.test(piece)) continue;
      if (word === 'end' || word === 'else') return { nodes, end: word, rest };
      if (word === 'if' || word === 'with' || word === 'range') {
        nodes.push(block(word, rest, depth + 1));
      } else if (word === 'define' || word === 'template' || word === 'block') {
        throw new TemplateProblem('disallowed', word);
      } else if ((word === 'break' || word === 'continue') && rest.trim() === '') {
        nodes.push({ kind: word });
      } else nodes.push({ kind: 'print', pipe: parsePipe(piece, isFunction) });
    }
    return { nodes, end: '', rest: '' };
  }

  function block(kind: 'if' | 'with' | 'range', head: string, depth: number): TemplateNode {
    const pipe = parsePipe(head, isFunction);
    const { nodes: body, end, rest } = list(depth);
    if (end === '') throw wrong('unexpected EOF');
    if (end === 'end') return { kind, pipe, body, otherwise: [] };
    const [, chained] = /^\s+(if|with)\b/.exec(rest) ?? [];
    if (chained !== undefined) {
      const inner = rest.slice(rest.indexOf(chained) + chained.length);
      return { kind, pipe, body, otherwise: [block(chained as 'if' | 'with', inner, depth + 1)] };
    }
    const other = list(depth);
    if (other.end !== 'end') throw wrong('unexpected {{else}} or EOF');
    return { kind, pipe, body, otherwise: other.nodes };
  }

  const { nodes, end } = list(0);
  if (end !== '') throw wrong(`unexpected {{${end}}}`);
  return nodes;
}

/** Separates text and actions, and removes white space next to `{{-` and `-}}`. */
function cut(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  let trimNext = false;
  const addText = (part: string, trimEnd: boolean): void => {
    const start = trimNext ? part.trimStart() : part;
    pieces.push({ isAction: false, text: trimEnd ? start.trimEnd() : start });
  };
  for (;;) {
    const open = text.indexOf('{{', at);
    if (open === -1) {
      addText(text.slice(at), false);
      return pieces;
    }
    const trims = /^-\s/.test(text.slice(open + 2, open + 4));
    addText(text.slice(at, open), trims);
    const start = open + 2 + (trims ? 1 : 0);
    const close = closeOf(text, start);
    const trimsAfter = /\s-$/.test(text.slice(Math.max(start, close - 2), close));
    pieces.push({ isAction: true, text: text.slice(start, close - (trimsAfter ? 1 : 0)) });
    trimNext = trimsAfter;
    at = close + 2;
  }
}

function closeOf(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (text.startsWith('}}', at)) return at;
    if (character === '`') {
      const end = text.indexOf('`', at + 1);
      if (end === -1) break;
      at = end;
    } else if (character === '"' || character === "'") {
      at += 1;
      while (at < text.length && text[at] !== character) at += text[at] === '\\' ? 2 : 1;
    } else if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at);
      if (end === -1) break;
      at = end + 1;
    }
  }
  throw new TemplateProblem('syntax', 'unclosed action');
}

// The closing quote is optional: searching for it again from each quote would take quadratic time.
const token =
  /\s+|"(?:[^"\\\n]|\\.)*"?|`[^`]*`|'(?:[^'\\\n]|\\.)'|:=|[|(),=]|\$[A-Za-z0-9_]*|\.[A-Za-z_]\w*|\.|[-+]?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:e[-+]?\d+)?)|[A-Za-z_]\w*|./gsy;

function parsePipe(text: string, isFunction: (name: string) => boolean): TemplatePipe {
  const tokens = text.match(token) ?? [];
  let at = 0;
  const wrong = (message: string): TemplateProblem => new TemplateProblem('syntax', message);
  const skip = (): void => {
    while (at < tokens.length && /^\s+$/.test(tokens[at] ?? '')) at += 1;
  };

  function pipe(close: boolean, depth: number): TemplatePipe {
    if (depth > depthMax) throw wrong('too deep');
    const { variables, isAssignment } = declared();
    const commands: TemplateCommand[] = [];
    let command: TemplateTerm[] = [];
    for (;;) {
      skip();
      const next = tokens[at];
      if (next === undefined || next === ')' || next === '|') {
        const [head, ...rest] = command;
        if (head === undefined) throw wrong('missing value for command');
        commands.push([head, ...rest]);
        command = [];
        at += 1;
        if (next === '|') continue;
        if ((next === ')') !== close)
          throw wrong(close ? 'unclosed left paren' : 'unexpected right paren');
        return { variables, isAssignment, commands };
      }
      command.push(term(depth));
    }
  }

  function declared(): Pick<TemplatePipe, 'variables' | 'isAssignment'> {
    const from = at;
    const variables: string[] = [];
    for (;;) {
      skip();
      const name = tokens[at];
      if (name === undefined || !/^\$\w+$/.test(name)) break;
      variables.push(name);
      at += 1;
      skip();
      if (tokens[at] === ',') {
        at += 1;
        continue;
      }
      if (tokens[at] === ':=' || tokens[at] === '=') {
        const isAssignment = tokens[at] === '=';
        at += 1;
        return { variables, isAssignment };
      }
      break;
    }
    at = from;
    return { variables: [], isAssignment: false };
  }

  function term(depth: number): TemplateTerm {
    const first = tokens[at] ?? '';
    at += 1;
    const isField = /^\.[A-Za-z_]/.test(first);
    const of: TemplateTerm = isField ? { kind: 'dot' } : base(first, depth);
    const names = isField ? [first.slice(1)] : [];
    // Fields follow without white space.
    for (; /^\.[A-Za-z_]/.test(tokens[at] ?? ''); at += 1) names.push((tokens[at] ?? '').slice(1));
    return names.length === 0 ? of : { kind: 'field', of, names };
  }

  function base(first: string, depth: number): TemplateTerm {
    if (first === '(') return { kind: 'pipe', pipe: pipe(true, depth + 1) };
    if (first === '.') return { kind: 'dot' };
    if (first.startsWith('$')) return { kind: 'variable', name: first };
    if (first.startsWith('`')) return { kind: 'value', value: first.slice(1, -1) };
    if (/^"(?:[^"\\]|\\.)*"$|^'../s.test(first)) return { kind: 'value', value: unquoted(first) };
    if (/^[-+]?\d/.test(first)) return { kind: 'value', value: numberOf(first) };
    if (first === 'true' || first === 'false') return { kind: 'value', value: first === 'true' };
    if (first === 'nil') return { kind: 'value', value: undefined };
    if (first === 'call') throw new TemplateProblem('disallowed', 'call');
    if (!/^[A-Za-z_]/.test(first)) throw wrong(`unexpected "${first}" in command`);
    if (!isFunction(first)) throw wrong(`function "${first}" not defined`);
    return { kind: 'function', name: first };
  }

  const result = pipe(false, 0);
  if (at <= tokens.length - 1) throw wrong('unexpected right paren');
  return result;
}

function numberOf(text: string): number | bigint {
  if (!/^[-+]?(?:0x[0-9a-f]+|\d+)$/i.test(text)) return Number(text);
  // More digits than a 64-bit integer has are not parsed.
  const size = text.length > 21 ? undefined : BigInt(text.replace(/^[-+]/, ''));
  const value = size !== undefined && text.startsWith('-') ? -size : size;
  if (value !== undefined && value === BigInt.asIntN(64, value)) return value;
  throw new TemplateProblem('syntax', `integer overflow "${text.slice(0, 30)}"`);
}

function unquoted(text: string): string | bigint {
  const inner = text
    .slice(1, -1)
    .replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/gs, (_, code: string) => escapeOf(code));
  return text.startsWith("'") ? BigInt(inner.codePointAt(0) ?? 0) : inner;
}

function escapeOf(code: string): string {
  const simple: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0' };
  if (code.length > 1) return String.fromCharCode(parseInt(code.slice(1), 16));
  return simple[code] ?? code;
}
