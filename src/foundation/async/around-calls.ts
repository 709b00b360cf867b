// One rule for all methods of an object.

/** The same object, with `around` running each of its methods, all of which return promises. */
export function aroundCalls<T extends object>(
  methods: T,
  around: <R>(work: () => Promise<R>) => Promise<R>,
): T {
  const wrapped = Object.entries(methods).map(([name, member]) => [
    name,
    typeof member === 'function'
      ? (...given: unknown[]) => around(async () => member(...given) as unknown)
      : (member as unknown),
  ]);
  return Object.fromEntries(wrapped) as T;
}
