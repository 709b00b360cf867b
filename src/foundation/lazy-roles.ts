// The handle of an engine: each role is created when it is first used, and all of them are closed together.

export type Factories<Roles extends object> = { readonly [Role in keyof Roles]: () => Roles[Role] };

export interface Lifetime {
  readonly close: () => Promise<void>;
  readonly closedError: () => Error;
}

/**
 * Returns an object whose properties are created on first access. Disposing it closes the created roles, the last one
 * first, and then calls `close`. A disposed handle creates no further role.
 */
export function lazyRoles<Roles extends object>(
  factories: Factories<Roles>,
  options: Lifetime,
): Roles & AsyncDisposable {
  const created = new Map<PropertyKey, unknown>();
  let closing: Promise<void> | undefined;

  function roleOf<Role extends keyof Roles>(name: Role): Roles[Role] {
    if (!created.has(name)) {
      if (closing !== undefined) throw options.closedError();
      created.set(name, factories[name]());
    }
    // The map has the result of this role's factory.
    return created.get(name) as Roles[Role];
  }

  async function closeAll(): Promise<void> {
    await using closed = new AsyncDisposableStack();
    closed.defer(options.close);
    for (const role of created.values()) if (isDisposable(role)) closed.use(role);
  }

  const handle = {
    [Symbol.asyncDispose]: (): Promise<void> => (closing ??= closeAll()),
  };
  for (const name of Object.keys(factories) as (keyof Roles)[]) {
    Object.defineProperty(handle, name, { enumerable: true, get: () => roleOf(name) });
  }
  return handle as Roles & AsyncDisposable;
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return typeof value === 'object' && value !== null && Symbol.asyncDispose in value;
}
