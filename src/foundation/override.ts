// An object with some members replaced.

/** Unlike a spread, it keeps inherited members: an engine may be a wrapper that was made the same way. */
export function override<T extends object>(base: T, members: Partial<T>): T {
  return Object.create(base, Object.getOwnPropertyDescriptors(members)) as T;
}
