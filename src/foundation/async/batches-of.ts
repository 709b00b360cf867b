export interface BatchLimits<T> {
  readonly countMax?: number | undefined;
  /** The limit of the sizes of a batch together; a larger item is a batch by itself. */
  readonly sizeMax?: number | undefined;
  readonly sizeOf?: ((item: T) => number) | undefined;
}

/** Splits items into batches, in their order. */
export function batchesOf<T>(items: Iterable<T>, limits: BatchLimits<T>): T[][] {
  const { countMax = Infinity, sizeMax = Infinity, sizeOf = () => 0 } = limits;
  const batches: T[][] = [];
  let size = 0;
  for (const item of items) {
    const last = batches.at(-1);
    const itemSize = sizeOf(item);
    if (last === undefined || last.length >= countMax || size + itemSize > sizeMax) {
      batches.push([item]);
      size = itemSize;
    } else {
      last.push(item);
      size += itemSize;
    }
  }
  return batches;
}
