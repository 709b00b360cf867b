// The filters, updates and order of MongoDB, as far as our adapter uses them: the fake server evaluates them.

import type { Document } from 'mongodb';

type Comparable = string | number | boolean | null | undefined;

export function matches(document: Document, filter: Document): boolean {
  return Object.entries(filter).every(([field, wanted]) => {
    if (field === '$and') return (wanted as Document[]).every((each) => matches(document, each));
    if (field === '$or') return (wanted as Document[]).some((each) => matches(document, each));
    const value: unknown = document[field];
    if (!isOperators(wanted)) return isEqual(value, wanted);
    return Object.entries(wanted).every(([operator, operand]) => holds(operator, value, operand));
  });
}

function isOperators(value: unknown): value is Document {
  if (typeof value !== 'object' || value === null || value instanceof Date) return false;
  const [first] = Object.keys(value);
  return first?.startsWith('$') === true;
}

function holds(operator: string, value: unknown, operand: unknown): boolean {
  switch (operator) {
    case '$in':
      return (operand as unknown[]).some((each) => isEqual(value, each));
    case '$nin':
      return !(operand as unknown[]).some((each) => isEqual(value, each));
    case '$ne':
      return !isEqual(value, operand);
    case '$exists':
      return (value !== undefined) === operand;
    case '$gt':
      return isSameType(value, operand) && compare(value, operand) > 0;
    case '$gte':
      return isSameType(value, operand) && compare(value, operand) >= 0;
    case '$lt':
      return isSameType(value, operand) && compare(value, operand) < 0;
    case '$lte':
      return isSameType(value, operand) && compare(value, operand) <= 0;
    default:
      throw new Error(`the fake has no operator ${operator}`);
  }
}

/** Ranges match values of the same type only. */
function isSameType(a: unknown, b: unknown): boolean {
  return typeof keyOf(a) === typeof keyOf(b) && a instanceof Date === b instanceof Date;
}

function isEqual(a: unknown, b: unknown): boolean {
  return (a ?? null) === (b ?? null) || keyOf(a) === keyOf(b);
}

/** Dates compare as numbers, other objects by their content. */
function keyOf(value: unknown): Comparable {
  if (value instanceof Date) return value.getTime();
  return typeof value === 'object' && value !== null
    ? JSON.stringify(value)
    : ((value ?? null) as Comparable);
}

function compare(a: unknown, b: unknown): number {
  const [x, y] = [keyOf(a), keyOf(b)];
  if (x === y) return 0;
  return x === null || x === undefined || (y !== null && y !== undefined && x < y) ? -1 : 1;
}

export function sorted(documents: readonly Document[], order: Document): readonly Document[] {
  const fields = Object.entries(order) as [string, number][];
  return documents.toSorted((a, b) => {
    for (const [field, direction] of fields) {
      const result = compare(a[field], b[field]);
      if (result !== 0) return result * direction;
    }
    return 0;
  });
}

export function updated(
  before: Document | undefined,
  filter: Document,
  update: Document,
): Document {
  const isReplacement = !Object.keys(update).some((key) => key.startsWith('$'));
  const equal = Object.entries(filter).filter(
    ([field, value]) => !field.startsWith('$') && !isOperators(value),
  );
  const base: Document = before ?? Object.fromEntries(equal);
  if (isReplacement) return { _id: base['_id'], ...update };
  const { $set = {}, $inc = {}, $max = {}, $setOnInsert = {}, $unset = {} } = update;
  const next: Document = { ...base, ...(before === undefined ? $setOnInsert : {}), ...$set };
  for (const [field, by] of Object.entries($inc as Record<string, number>)) {
    next[field] = ((next[field] as number | undefined) ?? 0) + by;
  }
  for (const [field, value] of Object.entries($max as Document)) {
    if (next[field] === undefined || compare(next[field], value) < 0)
      next[field] = value as unknown;
  }
  for (const field of Object.keys($unset as Document)) delete next[field];
  return next;
}
