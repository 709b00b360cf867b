// Renders a template with data: only `{{order.id}}`, escaped for Slack. All missing data is reported together, before
// anything is sent.

import { slackRequestLimits as limits } from './fields.ts';

export interface Rendered {
  readonly text: string;
  readonly blocks?: readonly object[];
}

export type Rendering =
  | { readonly kind: 'rendered'; readonly message: Rendered }
  | { readonly kind: 'failed'; readonly code: string; readonly reason: string };

interface Template {
  readonly text: string;
  readonly blocks?: readonly object[] | undefined;
}

type Data = Readonly<Record<string, unknown>>;

const placeholder = /\{\{\s*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*\}\}/g;

export function renderTemplate({ text, blocks }: Template, data: Data): Rendering {
  const missing = new Set<string>();
  const fill = (source: string): string =>
    source.replace(placeholder, (_whole, path: string) => {
      const value = valueAt(data, path);
      if (value !== undefined) return escapeMrkdwn(value);
      missing.add(path);
      return '';
    });
  const message = {
    text: fill(text),
    ...(blocks === undefined ? {} : { blocks: blocks.map((each) => filled(each, fill) as object) }),
  };
  if (missing.size > 0) {
    const names = [...missing].toSorted().slice(0, 10).join(', ');
    return failed('template-data-missing', `the data has no ${names}`);
  }
  return checked(message);
}

/** Without a template, the data is the message in Slack's format. */
export function messageOf(data: Data): Rendering {
  const { text, blocks } = data;
  if (typeof text !== 'string') {
    return failed('template-data-missing', 'without a template the data needs a text');
  }
  if (blocks === undefined) return checked({ text });
  const isList =
    Array.isArray(blocks) && blocks.every((each) => typeof each === 'object' && each !== null);
  return isList
    ? checked({ text, blocks: blocks as object[] })
    : failed('blocks-invalid', 'blocks are a list of objects');
}

const misplaced = /\{\{.{0,40}/s;

/** Why the template cannot be rendered with any data. */
export function templateProblem({ text, blocks }: Template): string | undefined {
  const parts = [text, JSON.stringify(blocks ?? [])];
  const [wrong] = parts.flatMap((part) => part.replaceAll(placeholder, '').match(misplaced) ?? []);
  return wrong === undefined ? undefined : `Invalid placeholder "${wrong}". Use {{order.id}}.`;
}

/** Escapes `&`, `<` and `>`, so that data cannot create links, mentions or entities. */
export function escapeMrkdwn(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function checked(message: Rendered): Rendering {
  const { text, blocks = [] } = message;
  if (text.trim() === '') return failed('message-empty', 'the message has no text');
  if (text.length > limits.textCharsMax) {
    return failed('message-too-long', `more than ${limits.textCharsMax} characters`);
  }
  if (blocks.length > limits.blocksMax) {
    return failed('message-too-long', `more than ${limits.blocksMax} blocks`);
  }
  return { kind: 'rendered', message };
}

function filled(node: unknown, fill: (source: string) => string): unknown {
  if (typeof node === 'string') return fill(node);
  if (Array.isArray(node)) return node.map((each) => filled(each, fill));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([name, each]) => [name, filled(each, fill)]));
}

/** Strings, numbers and booleans; lists and objects cannot be inserted. */
function valueAt(data: Data, path: string): string | undefined {
  let value: unknown = data;
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Data)[part];
  }
  const isPlain =
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isPlain ? String(value) : undefined;
}

function failed(code: string, reason: string): Rendering {
  return { kind: 'failed', code, reason };
}
