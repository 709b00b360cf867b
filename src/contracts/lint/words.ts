// The words of an expression: `this.aggregateType` → this, aggregate, type.

export function wordsOf(code: string): readonly string[] {
  return code
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}
