// Who gets a message: finds the subscriptions of a subject without looking at all the others.

import { checkLength, nameInvalid } from './identifier.ts';
import { validatePattern } from './subject-match.ts';
import {
  addValue,
  collectMatch,
  createShape,
  removeValue,
  type Shape,
  type ShapeForm,
} from './subject-shape.ts';
import { subjectLimits } from './subject-tokens.ts';

/**
 * What bounds an index besides memory.
 *
 * @example
 * import { subjectIndexLimits } from 'millrace/contracts';
 *
 * console.log(subjectIndexLimits.shapesMax); // 1024
 */
export const subjectIndexLimits = {
  /**
   * Eight tokens, with or without `>` after them, have 1,021 arrangements of `*`; ours have at most
   * five. Each may cost a match one probe, so this bounds the work that hostile patterns can cause.
   */
  shapesMax: 1024,
} as const;

export interface SubjectIndex<T> {
  /** How many values were added and not removed. */
  readonly size: number;
  /** Adds a value under a pattern; the returned function takes it out again, once. */
  add(pattern: string, value: T): () => void;
  /** The values of all patterns that take the subject, in no particular order. */
  match(subject: string): T[];
  /**
   * As `match`, without the array. All values are found before the first visit: the visitor may add
   * and remove, and changes nothing for the visits to come.
   */
  forEachMatch(subject: string, visit: (value: T) => void): void;
}

/**
 * Patterns and what to do for them: of hundreds of thousands, those that take a subject are found
 * in about a microsecond. An invalid pattern throws. A subject with an empty token matches nothing,
 * as in NATS; one that is longer or deeper than `subjectLimits` throws.
 *
 * @example
 * import { createSubjectIndex, subjects } from 'millrace/contracts';
 *
 * const index = createSubjectIndex<string>();
 * const remove = index.add(subjects.notify.everyCustomer.alert, 'pager');
 * index.add(subjects.notify.customer('c1').all, 'inbox of c1');
 * console.log(index.match('gbe.notify.customer.c1.alert')); // both
 * remove();
 */
export function createSubjectIndex<T>(): SubjectIndex<T> {
  const { tokensMax, charsMax } = subjectLimits;
  // Secret, so that nobody can choose tokens which all fall into one slot.
  const seed = crypto.getRandomValues(new Int32Array(1))[0] as number;
  const noShapes = (): Shape<T>[][] => Array.from({ length: tokensMax + 1 }, () => []);
  /** By their number of tokens: those that end there, and those that go on with `>`. */
  const closed = noShapes();
  const open = noShapes();
  const tokenHashes = new Int32Array(tokensMax);
  // A stack, since a visitor may match again while the outer match still visits.
  const found: (T | undefined)[] = [];
  let top = 0;
  let shapeCount = 0;
  let size = 0;

  /** Fills `tokenHashes` and returns their number; 0 if a token is empty. */
  function hashTokens(text: string): number {
    const { length } = text;
    let tokens = 0;
    let tokenStart = 0;
    let hash = seed;
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i);
      if (code !== 0x2e) {
        hash = mix(hash, code);
        continue;
      }
      if (i === tokenStart) return 0;
      tokenHashes[tokens] = hash;
      tokens += 1;
      if (tokens === tokensMax) throw tooDeep(text);
      tokenStart = i + 1;
      hash = seed;
    }
    if (tokenStart === length) return 0;
    tokenHashes[tokens] = hash;
    return tokens + 1;
  }

  function hashFor({ tokens, stars }: ShapeForm): number {
    let hash = seed;
    for (let i = 0; i < tokens; i += 1) {
      if (((stars >>> i) & 1) === 0) hash = mix(hash, tokenHashes[i] as number);
    }
    return hash;
  }

  function collect(shapes: readonly Shape<T>[], subject: string): void {
    for (const shape of shapes) {
      top = collectMatch(shape, { hash: hashFor(shape), subject }, found, top);
    }
  }

  function forEachMatch(subject: string, visit: (value: T) => void): void {
    checkLength(subject, charsMax);
    const tokens = hashTokens(subject);
    if (tokens === 0) return;
    const base = top;
    collect(closed[tokens] as Shape<T>[], subject);
    for (let before = 0; before < tokens; before += 1) collect(open[before] as Shape<T>[], subject);
    const end = top;
    try {
      for (let i = base; i < end; i += 1) visit(found[i] as T);
    } finally {
      // Cleared, so that the stack keeps no removed value alive.
      while (top > base) {
        top -= 1;
        found[top] = undefined;
      }
    }
  }

  function shapesLike(form: PatternForm): Shape<T>[] {
    return (form.isOpen ? open : closed)[form.tokens] as Shape<T>[];
  }

  function shapeOf(form: PatternForm): Shape<T> {
    const shapes = shapesLike(form);
    const known = shapes.find((shape) => shape.stars === form.stars);
    if (known !== undefined) return known;
    if (shapeCount === subjectIndexLimits.shapesMax) throw tooManyShapes(form.pattern);
    const shape = createShape<T>(form);
    shapes.push(shape);
    shapeCount += 1;
    return shape;
  }

  function remove(form: PatternForm, value: T): void {
    const shape = shapeOf(form);
    hashTokens(form.pattern);
    removeValue(shape, { hash: hashFor(shape), key: form.key, value });
    size -= 1;
    if (shape.size > 0) return;
    const shapes = shapesLike(form);
    shapes.splice(shapes.indexOf(shape), 1);
    shapeCount -= 1;
  }

  return {
    get size() {
      return size;
    },
    add(pattern, value) {
      validatePattern(pattern);
      const form = formOf(pattern);
      const shape = shapeOf(form);
      hashTokens(pattern);
      addValue(shape, { hash: hashFor(shape), key: form.key, value });
      size += 1;
      let isIn = true;
      return () => {
        // The form is worked out again: kept, it would outweigh the pattern itself.
        if (isIn) remove(formOf(pattern), value);
        isIn = false;
      };
    },
    match(subject) {
      const values: T[] = [];
      forEachMatch(subject, (value) => void values.push(value));
      return values;
    },
    forEachMatch,
  };
}

/** The shift after each multiplication makes every later step depend on the whole seed. */
function mix(hash: number, code: number): number {
  const mixed = Math.imul(hash ^ code, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

interface PatternForm extends ShapeForm {
  readonly pattern: string;
  readonly isOpen: boolean;
  readonly key: string;
}

function formOf(pattern: string): PatternForm {
  const tokens = pattern.split('.');
  const isOpen = tokens.at(-1) === '>';
  let stars = 0;
  for (const [i, token] of tokens.entries()) if (token === '*') stars |= 1 << i;
  const common = { pattern, isOpen, stars, tokens: tokens.length - (isOpen ? 1 : 0) };
  if (stars !== 0) return { ...common, keyKind: 'pattern', key: pattern };
  if (!isOpen) return { ...common, keyKind: 'subject', key: pattern };
  // Joined, not sliced: a slice is a second object that still leads to the whole pattern.
  tokens[tokens.length - 1] = '';
  return { ...common, keyKind: 'beginning', key: tokens.join('.') };
}

function tooDeep(subject: string): Error {
  return nameInvalid('subject', subject, `has more than ${subjectLimits.tokensMax} tokens`);
}

function tooManyShapes(pattern: string): Error {
  return nameInvalid(
    'subject pattern',
    pattern,
    `has its wildcards in places where no other has them, and ${subjectIndexLimits.shapesMax} such arrangements are in use: use fewer tokens, or ">"`,
  );
}
