// Reads a subject, literal or computed, against the hierarchy: is it in there, and which builder
// makes it?

import { isSubjectToken, type SubjectTokenKind } from '../subject-tokens.ts';
import { subjectActions } from '../subjects.ts';
import { hasHole } from './text.ts';

/** One kind of subject: its tokens behind the root, and the builder's code for them. */
interface Kind {
  readonly tokens: readonly Slot[];
  readonly code: (argument: string, last: string) => string;
}

type Slot = string | readonly string[] | { readonly kind: SubjectTokenKind };

const { notify, events, tasks } = subjectActions;
const kinds: readonly Kind[] = [
  {
    tokens: ['notify', 'customer', { kind: 'customer id' }, notify.customer],
    code: (id, last) =>
      id === '*' ? `.notify.everyCustomer${last}` : `.notify.customer(${id})${last}`,
  },
  {
    tokens: ['notify', 'broadcast', notify.broadcast],
    code: (_, last) => `.notify.broadcast${last}`,
  },
  {
    tokens: ['notify', 'topic', { kind: 'topic' }],
    code: (name) => (name === '*' ? '.notify.everyTopic' : `.notify.topic(${name})`),
  },
  ...Object.entries(events).map(([entity, actions]): Kind => ({
    tokens: ['events', entity, actions],
    code: (_, last) => `.events.${entity}${last}`,
  })),
  { tokens: ['tasks', '_control', tasks.control], code: (_, last) => `.tasks.control${last}` },
  {
    tokens: ['tasks', { kind: 'task type' }, tasks.type],
    code: (type, last) =>
      type === '*' ? `.tasks.everyType${last}` : `.tasks.type(${type})${last}`,
  },
];

export const subjectDomains: ReadonlySet<string> = new Set(Object.keys(subjectActions));

/** Whether any subject of the hierarchy could match these tokens, wildcards and holes included. */
export function isInHierarchy(tokens: readonly string[]): boolean {
  return kinds.some((kind) => fits(kind, tokens));
}

/**
 * The builder's code behind the root, such as `.tasks.type(name).queue`. `codeOf` gives the code of
 * one token; `undefined` where no single builder makes the text.
 */
export function subjectCode(
  tokens: readonly string[],
  codeOf: (token: string) => string,
): string | undefined {
  const [domain, only] = tokens;
  if (tokens.length === 2 && only === '>' && subjectDomains.has(domain ?? ''))
    return `.${domain}.all`;
  const kind = kinds.find(
    (candidate) => fits(candidate, tokens) && fixedAreWritten(candidate, tokens),
  );
  if (kind === undefined) return undefined;
  const variable = kind.tokens.findIndex((slot) => isVariable(slot));
  const argument = tokens[variable];
  const last = Array.isArray(kind.tokens.at(-1)) ? (tokens.at(-1) ?? '') : '';
  // `…customer.>` has fewer tokens than its kind: the wildcard is not an argument then.
  if (argument === '>' || (last !== '>' && tokens.length !== kind.tokens.length)) return undefined;
  if (last === '*' || (argument === '*' && last === '>')) return undefined;
  const member = last === '>' ? '.all' : hasHole(last) ? `[${codeOf(last)}]` : `.${last}`;
  return kind.code(argument === '*' ? '*' : codeOf(argument ?? ''), last === '' ? '' : member);
}

/** The nearest tokens that are in the hierarchy, as far as `closestTo` can tell. */
export function mendTokens(
  tokens: readonly string[],
  closestTo: (token: string, options: readonly string[]) => string | undefined,
): readonly string[] | undefined {
  const candidates = kinds.filter((kind) => kind.tokens.length === tokens.length);
  for (const kind of candidates) {
    const mended = kind.tokens.map((slot, index) => {
      const token = tokens[index] ?? '';
      if (accepts(slot, token)) return token;
      return isVariable(slot)
        ? closestTo(token, [])
        : closestTo(token, typeof slot === 'string' ? [slot] : slot);
    });
    if (mended.every((token) => token !== undefined) && isInHierarchy(mended)) return mended;
  }
  return undefined;
}

function fits({ tokens: slots }: Kind, tokens: readonly string[]): boolean {
  for (const [index, token] of tokens.entries()) {
    const slot = slots[index];
    if (slot === undefined) return false;
    if (token === '>') return index === tokens.length - 1;
    if (token !== '*' && !hasHole(token) && !accepts(slot, token)) return false;
  }
  return tokens.length === slots.length;
}

/** A hole where the hierarchy wants a fixed word could be any kind of subject. */
function fixedAreWritten({ tokens: slots }: Kind, tokens: readonly string[]): boolean {
  return slots.every((slot, index) => typeof slot !== 'string' || slot === tokens[index]);
}

function accepts(slot: Slot, token: string): boolean {
  if (typeof slot === 'string') return slot === token;
  return isVariable(slot) ? isSubjectToken(slot.kind, token) : slot.includes(token);
}

function isVariable(slot: Slot): slot is { readonly kind: SubjectTokenKind } {
  return typeof slot === 'object' && 'kind' in slot;
}
